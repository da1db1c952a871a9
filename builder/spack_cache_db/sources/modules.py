"""Reads which environment modules there are: Spack's `module-index.yaml`, and the lists
of Lmod.

Spack names the spec of each module by its hash (Spack 1.2 `modules/common.py`). Lmod,
asked by `spider -o jsonSoftwarePage` or `spider -o spider-json`, knows names and
versions as the site has written them (Lmod 8 `docs/source/136_spider.rst`,
`src/Spider.lua`). In a hierarchy it also knows which modules must be loaded first: the
software page has them as `parent`, the other as `parentAA`.
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

_COMPILER = re.compile(r".*/([A-Za-z][\w+-]*)/(\d[\w.-]*)")
"""The folders that a module hierarchy has for what a compiler built, such as
`gcc/13.2.0`.
"""


_Parents = list[list[str] | str]
"""Alternatives: a list of modules, or in Lmod 6 a text such as
`default:gcc/4.8.5:openmpi/1.10`.
"""


class _Version(Struct):
    full: str
    path: str = ""
    versionName: str = ""  # noqa: N815 - as Lmod calls it
    hidden: bool = False
    parent: _Parents = []
    parentAA: _Parents = []  # noqa: N815 - as Lmod calls it


class _Package(Struct):
    package: str
    versions: list[_Version]


class _File(Struct):
    """An entry of `spider -o spider-json`: a module by the path of its file."""

    fullName: str = ""  # noqa: N815 - as Lmod calls it
    full: str = ""
    Version: str | bool | None = None
    hidden: bool = False
    parent: _Parents = []
    parentAA: _Parents = []  # noqa: N815 - as Lmod calls it


class _LmodModule(NamedTuple):
    """A module in a list of Lmod."""

    package: str
    name: str
    version: str
    path: str
    is_hidden: bool
    parents: _Parents


_SOFTWARE_PAGE = msgspec.json.Decoder(list[_Package])
_SPIDER = msgspec.json.Decoder(dict[str, dict[str, _File]])
_BYTE = re.compile(rb"(?<!\\)((?:\\\\)*)\\x([0-9A-Fa-f]{2})")
"""An escape that JSON does not have: Lmod writes bytes beyond ASCII so."""


def read_modules(file: RawFile) -> list[ModuleFacts]:
    """Return the modules of a file; `InputError` with its first fault."""
    is_json = file.data[:64].lstrip().startswith((b"[", b"{"))
    with faults_of(file.location):
        require_text(file.data)
        try:
            return list(_of_lmod(file) if is_json else _of_spack(file))
        except BROKEN as error:
            printed = "spider -o jsonSoftwarePage or spider -o spider-json prints"
            words = f"{message_of(error)}, expected what Lmod's {printed}"
            raise LineFault(0, words) from None


def _of_spack(file: RawFile) -> Iterator[ModuleFacts]:
    """Yield the modules of `module_index: {HASH: {path: …, use_name: …}}`."""
    node = compose(file.data.decode(), _BOUNDS, file.location)
    expected = "Spack's module-index.yaml"
    top = {} if node is None else entries_of(node, expected)
    if top.keys() != {"module_index"}:
        keys = ", ".join(printable_name(key) for key in top)
        raise LineFault(1, f"has the keys {keys}, expected {expected}")
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
            yield _module(file, name, path)._replace(hash=dag_hash)
        except ValueError as error:
            raise fault_at(entry, str(error)) from None


def _of_lmod(file: RawFile) -> Iterator[ModuleFacts]:
    data = _as_json(file.data)
    is_page = data.lstrip().startswith(b"[")
    for entry in _of_software_page(data) if is_page else _of_spider(data):
        # The version follows the package: hdf5/1.14, or hdf5/.1.14 for a hidden one.
        version = entry.version
        start = f"{entry.package}/"
        if entry.name.startswith(start):
            version = entry.name.removeprefix(start).lstrip(".")
        require_short("package", entry.package, MAX_TEXT)
        require_short("version", version, MAX_TEXT)
        yield _module(file, entry.name, entry.path)._replace(
            package=entry.package,
            version=version,
            is_hidden=entry.is_hidden,
            parents=_alternatives(entry.parents),
        )


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


def _of_spider(data: bytes) -> Iterator[_LmodModule]:
    for package, files in _SPIDER.decode(data).items():
        for path, entry in files.items():
            name = entry.fullName or entry.full
            version = entry.Version if isinstance(entry.Version, str) else ""
            parents = entry.parentAA or entry.parent
            yield _LmodModule(package, name, version, path, entry.hidden, parents)


def _as_json(data: bytes) -> bytes:
    r"""Return data with bytes in place of escapes such as `\xe2`."""
    if b"\\x" not in data:
        return data

    def character(escape: re.Match[bytes]) -> bytes:
        backslashes = escape[1]
        number = int(escape[2], 16)
        if number < 0x80:
            return backslashes + b"\\u%04x" % number
        return backslashes + bytes([number])

    # Bytes that are no text remain visible as replacement characters.
    return _BYTE.sub(character, data).decode(errors="replace").encode()


def _alternatives(parents: Sequence[list[str] | str]) -> str | None:
    """Return the modules to load first as JSON, the alternative with the fewest modules
    first.
    """
    alternatives = set()
    for entry in parents:
        names = entry.split(":") if isinstance(entry, str) else entry
        modules = tuple(name for name in names if name not in ("", "default"))
        for name in modules:
            _require_module(name)
        if modules:
            alternatives.add(modules)
    if not alternatives:
        return None
    return as_json(sorted(alternatives, key=lambda modules: (len(modules), modules)))


def _module(file: RawFile, name: str, path: str) -> ModuleFacts:
    """Return a module; the folder of its file up to its name is its tree."""
    _require_module(name)
    require_short("path", path, MAX_TEXT)
    if not path:
        return ModuleFacts(file.path, file.release, name, compiler=None, tree=None)
    # /modules/gcc/13.2.0/hdf5/1.14.lua: the tree is /modules/gcc/13.2.0.
    stem = path.removesuffix(".lua")
    end = f"/{name}"
    tree = str(PurePosixPath(path).parent)
    if stem.endswith(end):
        tree = stem.removesuffix(end)
    folders = _COMPILER.fullmatch(tree)
    compiler = f"{folders[1]}@{folders[2]}" if folders else None
    return ModuleFacts(file.path, file.release, name, compiler, tree)


def _require_module(name: str) -> None:
    """Raise `ValueError` if a text is not the name of a module."""
    require_name("module", name)
    if " " in name:
        raise ValueError(f"has the module {name!r:.60}, expected a name without blanks")
