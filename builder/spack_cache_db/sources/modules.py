"""Reads lists of environment modules, the names that `module load` takes.

There are three forms:

1. Spack's `module-index.yaml` (Spack 1.2 `modules/common.py`). It has the hash of the
   spec of each module.
2. Lmod's software page, from `spider -o jsonSoftwarePage` (Lmod 8
   `docs/source/136_spider.rst`): a list of packages with their versions.
3. Lmod's own table, from `spider -o spider-json` (`src/Spider.lua`): modules by the
   paths of their files.

Lmod knows no hashes, only the names and versions that the site has chosen. In a
hierarchy of modules, where a module appears only after others are loaded, it also knows
these others: the key is `parent` in the software page, and `parentAA` in the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec
from msgspec import Struct

from spack_cache_db.bounded_yaml import (
    YamlBounds,
    compose,
    entries_of,
    fault_at,
    text_of,
)
from spack_cache_db.errors import LineFault, faults_of
from spack_cache_db.sources.bounds import (
    MAX_TEXT,
    require_name,
    require_short,
    require_text,
)
from spack_cache_db.sources.facts import ModuleFacts
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.texts import BROKEN, as_json, message_of, printable_name
from spack_cache_db.spack.nodes import require_hash

_BOUNDS = YamlBounds(size=2**26, parts=2_000_000)
"""Limits of a module index; that of a thousand specs has two hundred thousand
characters.
"""

_FOLDER_OF_COMPILER = re.compile(r".*/(?P<name>[A-Za-z][\w+-]*)/(?P<version>\d[\w.-]*)")
"""The folder that a hierarchy has for the modules of one compiler: `…/gcc/13.2.0`."""

_BYTE_ESCAPE = re.compile(rb"(?<!\\)((?:\\\\)*)\\x([0-9A-Fa-f]{2})")
r"""The escape of a byte, such as `\xe2`, which Lmod writes and JSON does not have.

Before it, there may be pairs of backslashes, each of which stands for a backslash.
"""

_Parents = list[list[str] | str]
"""The modules to load first, as alternatives.

Each is a list of modules, or in Lmod 6 a text: `default:gcc/4.8.5:openmpi/1.10`.
"""


# The objects of Lmod's lists, with its own names of keys.


class _PageVersion(Struct):
    full: str
    path: str = ""
    versionName: str = ""  # noqa: N815
    hidden: bool = False
    parent: _Parents = []
    parentAA: _Parents = []  # noqa: N815


class _PagePackage(Struct):
    package: str
    versions: list[_PageVersion]


class _TableEntry(Struct):
    fullName: str = ""  # noqa: N815
    full: str = ""
    Version: str | bool | None = None
    hidden: bool = False
    parent: _Parents = []
    parentAA: _Parents = []  # noqa: N815


_SOFTWARE_PAGE = msgspec.json.Decoder(list[_PagePackage])
# The modules of each package, by the paths of their files.
_TABLE = msgspec.json.Decoder(dict[str, dict[str, _TableEntry]])


class _LmodModule(NamedTuple):
    """A module in either list of Lmod."""

    package: str
    name: str
    version: str
    path: str
    is_hidden: bool
    parents: _Parents


def read_modules(file: RawFile) -> list[ModuleFacts]:
    """Return the modules of a file.

    Raises:
        InputError: the file is not such a list; it has the first fault.
    """
    is_json = file.data[:64].lstrip().startswith((b"[", b"{"))
    with faults_of(file.location):
        require_text(file.data)
        try:
            return list(_lmod_modules(file) if is_json else _spack_modules(file))
        except BROKEN as error:
            commands = "spider -o jsonSoftwarePage or spider -o spider-json prints"
            message = f"{message_of(error)}, expected what Lmod's {commands}"
            raise LineFault(0, message) from None


def _spack_modules(file: RawFile) -> Iterator[ModuleFacts]:
    """Yield the modules of `module_index: {HASH: {path: …, use_name: …}}`."""
    # The outermost key, which is the only one.
    node = compose(file.data.decode(), _BOUNDS, file.location)
    expected = "Spack's module-index.yaml"
    top = {} if node is None else entries_of(node, expected)
    if top.keys() != {"module_index"}:
        keys = ", ".join(printable_name(key) for key in top)
        raise LineFault(1, f"has the keys {keys}, expected {expected}")

    # The module of each hash.
    modules = entries_of(top["module_index"], "hashes with modules")
    for dag_hash, entry in modules.items():
        fields = entries_of(entry, "path and use_name")
        if fields.keys() != {"path", "use_name"}:
            keys = ", ".join(printable_name(key) for key in fields) or "no keys"
            raise fault_at(entry, f"has {keys}, expected path and use_name")
        name = text_of(fields["use_name"], "use_name")
        path = text_of(fields["path"], "path")
        try:
            require_hash(dag_hash)
            module = _module(file, name, path)
        except ValueError as error:
            raise fault_at(entry, str(error)) from None
        yield module._replace(hash=dag_hash)


def _lmod_modules(file: RawFile) -> Iterator[ModuleFacts]:
    """Yield the modules of a list of Lmod, which is a software page or a table."""
    data = _as_json(file.data)
    is_page = data.lstrip().startswith(b"[")
    for entry in _of_software_page(data) if is_page else _of_table(data):
        # The version follows the package: hdf5/1.14, or hdf5/.1.14 for a hidden one.
        version = entry.version
        start = f"{entry.package}/"
        if entry.name.startswith(start):
            version = entry.name.removeprefix(start).lstrip(".")
        require_short("package", entry.package, MAX_TEXT)
        require_short("version", version, MAX_TEXT)
        module = _module(file, entry.name, entry.path)
        yield module._replace(
            package=entry.package,
            version=version,
            is_hidden=entry.is_hidden,
            parents=_alternatives(entry.parents),
        )


def _as_json(data: bytes) -> bytes:
    r"""Return data with bytes in place of escapes such as `\xe2`."""
    if b"\\x" not in data:
        return data

    def character(escape: re.Match[bytes]) -> bytes:
        backslashes = escape[1]
        byte = int(escape[2], 16)
        # JSON reads some ASCII characters, such as quotes, as its own signs. So they
        # stay escapes, in JSON's form.
        if byte < 0x80:
            return backslashes + b"\\u%04x" % byte
        return backslashes + bytes([byte])

    # Bytes that are no text remain visible as replacement characters.
    text = _BYTE_ESCAPE.sub(character, data).decode(errors="replace")
    return text.encode()


def _of_software_page(data: bytes) -> Iterator[_LmodModule]:
    for package in _SOFTWARE_PAGE.decode(data):
        for entry in package.versions:
            yield _LmodModule(
                package.package,
                entry.full,
                entry.versionName,
                entry.path,
                entry.hidden,
                entry.parentAA or entry.parent,
            )


def _of_table(data: bytes) -> Iterator[_LmodModule]:
    for package, files in _TABLE.decode(data).items():
        for path, entry in files.items():
            name = entry.fullName or entry.full
            # Not a text if the module has no version.
            version = entry.Version if isinstance(entry.Version, str) else ""
            parents = entry.parentAA or entry.parent
            yield _LmodModule(package, name, version, path, entry.hidden, parents)


def _alternatives(parents: Sequence[list[str] | str]) -> str | None:
    """Return the modules to load first as JSON; None if there are none.

    The alternative with the fewest modules comes first.
    """
    alternatives = set()
    for entry in parents:
        names = entry.split(":") if isinstance(entry, str) else entry
        # The texts of Lmod 6 begin with the word default.
        modules = tuple(name for name in names if name not in ("", "default"))
        for name in modules:
            _require_module(name)
        if modules:
            alternatives.add(modules)
    if not alternatives:
        return None
    in_order = sorted(alternatives)
    in_order.sort(key=len)
    return as_json(in_order)


def _module(file: RawFile, name: str, path: str) -> ModuleFacts:
    """Return a module with its tree and compiler, which its path shows.

    The path is the tree and the name: `/modules/gcc/13.2.0/hdf5/1.14.lua` is the module
    hdf5/1.14 in the tree `/modules/gcc/13.2.0`, which is that of a compiler.
    """
    _require_module(name)
    require_short("path", path, MAX_TEXT)
    if not path:
        return ModuleFacts(file.path, file.release, name, compiler=None, tree=None)
    path_and_name = path.removesuffix(".lua")
    end = f"/{name}"
    if path_and_name.endswith(end):
        tree = path_and_name.removesuffix(end)
    else:
        tree = str(PurePosixPath(path).parent)
    folder = _FOLDER_OF_COMPILER.fullmatch(tree)
    compiler = None
    if folder is not None:
        compiler = f"{folder['name']}@{folder['version']}"
    return ModuleFacts(file.path, file.release, name, compiler, tree)


def _require_module(name: str) -> None:
    """Raise `ValueError` if a text is not the name of a module."""
    require_name("module", name)
    if " " in name:
        raise ValueError(f"has the module {name!r:.60}, expected a name without blanks")
