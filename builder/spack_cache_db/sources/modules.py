"""Reads which environment modules there are: Spack's `module-index.yaml`, and Lmod's software page.

Spack names the spec of each module by its hash (Spack 1.2 `modules/common.py`). Lmod, asked by
`spider -o jsonSoftwarePage`, knows names and versions as the site has written them (Lmod 8
`docs/source/136_spider.rst`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct

from spack_cache_db.bounded_yaml import YamlBounds, compose, entries_of, fault_at, text_of
from spack_cache_db.errors import LineFault, faults_of
from spack_cache_db.sources import (
    BROKEN,
    MAX_TEXT,
    RawFile,
    message_of,
    printable_name,
    require_name,
    require_short,
    require_text,
)
from spack_cache_db.sources.columns import ModuleFacts
from spack_cache_db.spack.nodes import require_hash

_BOUNDS = YamlBounds(size=2**26, parts=2_000_000)
"""Limits of a module index; that of a thousand specs has two hundred thousand characters."""

_COMPILER = re.compile(r".*/([A-Za-z][\w+-]*)/(\d[\w.-]*)")
"""The folders that a module hierarchy has for what a compiler built, such as `gcc/13.2.0`."""


class _Version(Struct):
    full: str
    path: str = ""
    versionName: str = ""  # noqa: N815 - as Lmod calls it
    hidden: bool = False


class _Package(Struct):
    package: str
    versions: list[_Version]


_SOFTWARE_PAGE = msgspec.json.Decoder(list[_Package])


def read_modules(file: RawFile) -> list[ModuleFacts]:
    """Return the modules of a file; `InputError` with its first fault."""
    is_json = file.data[:64].lstrip().startswith((b"[", b"{"))
    with faults_of(file.location):
        require_text(file.data)
        try:
            return [*(_of_lmod(file) if is_json else _of_spack(file))]
        except BROKEN as error:
            words = f"{message_of(error)}, expected what Lmod's spider -o jsonSoftwarePage prints"
            raise LineFault(0, words) from None


def _of_spack(file: RawFile) -> Iterator[ModuleFacts]:
    node = compose(file.data.decode(), _BOUNDS, file.location)
    expected = "Spack's module-index.yaml"
    top = {} if node is None else entries_of(node, expected)
    if top.keys() != {"module_index"}:
        keys = ", ".join(map(printable_name, top))
        raise LineFault(1, f"has the keys {keys}, expected {expected}")
    for dag_hash, entry in entries_of(top["module_index"], "hashes with modules").items():
        fields = entries_of(entry, "path and use_name")
        if fields.keys() != {"path", "use_name"}:
            keys = ", ".join(map(printable_name, fields)) or "no keys"
            raise fault_at(entry, f"has {keys}, expected path and use_name")
        name, path = (text_of(fields[key], key) for key in ("use_name", "path"))
        try:
            require_hash(dag_hash)
            yield _module(file, name, path)._replace(hash=dag_hash)
        except ValueError as error:
            raise fault_at(entry, str(error)) from None


def _of_lmod(file: RawFile) -> Iterator[ModuleFacts]:
    for package in _SOFTWARE_PAGE.decode(file.data):
        for entry in package.versions:
            version = entry.full.removeprefix(f"{package.package}/")
            version = entry.versionName if version == entry.full else version.lstrip(".")
            words = {"package": package.package, "version": version}
            for word, text in words.items():
                require_short(word, text, MAX_TEXT)
            module = _module(file, entry.full, entry.path)
            yield module._replace(**words, is_hidden=entry.hidden)


def _module(file: RawFile, name: str, path: str) -> ModuleFacts:
    """Return a module; the folder of its file up to its name is its tree."""
    require_name("module", name)
    require_short("path", path, MAX_TEXT)
    if " " in name:
        raise ValueError(f"has the module {name!r:.60}, expected a name without blanks")
    below = path.removesuffix(".lua")
    is_below = below.endswith(f"/{name}")
    tree = below.removesuffix(f"/{name}") if is_below else str(PurePosixPath(path).parent)
    compiler = _COMPILER.fullmatch(tree)
    text = f"{compiler[1]}@{compiler[2]}" if compiler else None
    return ModuleFacts(file.path, file.release, name, text, tree if path else None)
