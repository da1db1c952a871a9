"""Reads the names of environment modules, as `module load`, `avail` and `list` have
them.

Spack names its modules `{name}/{version}-{compiler.name}-{compiler.version}`, or a part
of it, with seven characters of the hash at the end (Spack 1.2 `modules/common.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from spack_cache_db.environments.known_names import ANY_NAME, KnownNames
from spack_cache_db.environments.pasted.model import PastedSpec

HASH = r"(?:[a-z2-7]{32}|[a-z2-7]{7})"

_COMMAND = re.compile(
    r"(?:.*?[$>%]\s+)?(?:module|ml)(?:\s+-\S+)*"
    r"(?:(?<=module)\s+(?:load|add|try-load)|(?<=ml)(?:\s+load)?|\s+(?:load|add|try-load))"
    r"(?:\s+-\S+)*\s+(?=\S)"
)
_NAME = re.compile(r"\w[\w.+-]*(?:/\.?[\w.+-]+)*")
_VERSION = re.compile(
    r"v?\d[\w.]*|develop|main|master|head|trunk|nightly|stable|latest"
)
_PRERELEASE = re.compile(r"(?:alpha|beta|rc)\d*")
_MARK = re.compile(r"[(<][A-Za-z:,@]+[>)]|\d+\)")
"""A word beside a module: loaded `(L)`, default `(D)`, or its number in
`module list`.
"""
_MARK_AT_END = re.compile(r"(?:\((?:default|[A-Z](?:,[A-Z])*)\)|<[A-Za-z]+>|@)\Z")
_COLUMNS = re.compile(r"\S\s{2,}\S")
_LONGEST = 200
"""Maximum of characters in the name of a module."""


def specs_of_modules(
    text: str, known_names: KnownNames, *, is_list: bool = False
) -> tuple[PastedSpec, ...]:
    """Return what each word of a line of modules is; empty for other lines.

    A word that cannot be read as a module is returned as it is. A line is one of
    modules if a command loads them, if each word is one, or if it has the columns or
    the marks of `module avail` and one of them is a module.

    Args:
        text: the line.
        known_names: the packages and hashes by which names are read.
        is_list: whether a heading of `module avail` is above the line.
    """
    command = _COMMAND.match(text)
    arguments = text if command is None else text[command.end() :]
    words = arguments.split()
    names = [_MARK_AT_END.sub("", word) for word in words if not _MARK.fullmatch(word)]
    if not names or not all(_NAME.fullmatch(name) for name in names):
        return ()
    # A command loads each of its arguments.
    if command is not None:
        return tuple(_loaded(name, known_names) for name in names)
    # Each word is a module.
    specs = [spec_of_module(name, known_names) for name in names]
    modules = [spec for spec in specs if spec is not None]
    if len(modules) == len(names):
        return tuple(modules)
    # The line looks like one of `module avail`, and a word is a module with its
    # version.
    has_marks = len(names) < len(words)
    looks_like_list = is_list or has_marks or _COLUMNS.search(text) is not None
    specs_of_names = list(zip(names, specs, strict=True))
    has_version = any(spec is not None and "/" in name for name, spec in specs_of_names)
    if has_version and looks_like_list:
        return tuple(spec or PastedSpec(name) for name, spec in specs_of_names)
    return ()


def _loaded(name: str, known_names: KnownNames) -> PastedSpec:
    """Return the spec of an argument of `module load`, even if its package is
    unknown.
    """
    spec = spec_of_module(name, known_names) or spec_of_module(name, ANY_NAME)
    return spec or PastedSpec(name)


def spec_of_module(name: str, known_names: KnownNames) -> PastedSpec | None:
    """Return the spec of a module: its hash if that is known, else package and version.

    `hdf5/1.14.5-gcc-13.2.0-nekvq6z` is `hdf5/nekvq6z`, or `hdf5@1.14.5` if no binary
    has this hash. Of `gcc/13.2.0/hdf5/1.14.5`, the last package counts.
    """
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        return None
    parts = name.split("/")
    if len(parts) == 1:
        return _spec_of_dashes(name, known_names)
    if len(parts) == 2:
        return _spec_of(parts[0], parts[1], known_names)
    # Folders of a hierarchy: the last of them that are a known package and its version.
    for package, version in reversed(list(pairwise(parts))):
        if known_names.is_package(package):
            spec = _spec_of(package, version, known_names)
            if spec is not None:
                return spec
    return None


def _spec_of_dashes(name: str, known_names: KnownNames) -> PastedSpec | None:
    """Return the spec of a name such as `hdf5-1.14.5-gcc-13.2.0-nekvq6z`."""
    if "." not in name:
        return None
    words = name.split("-")
    start = version_position(words, _VERSION, known_names)
    if start is None:
        return None
    return _spec_of("-".join(words[:start]), "-".join(words[start:]), known_names)


def version_position(
    words: Sequence[str], version: re.Pattern[str], known_names: KnownNames
) -> int | None:
    """Return the position of the version in the words of a name; None if it has none.

    A name may have a word that looks like a version, as `py-2to3`. So the first version
    behind the name of a known package counts, or else the first one.
    """
    positions = [
        position
        for position, word in enumerate(words)
        if position > 0 and version.fullmatch(word)
    ]
    for position in positions:
        if known_names.is_package("-".join(words[:position])):
            return position
    return positions[0] if positions else None


def _spec_of(package: str, details: str, known_names: KnownNames) -> PastedSpec | None:
    """Return the spec of a package's module.

    `details` are the version, and perhaps the compiler, options and the hash, with
    dashes between them. A dot before the version hides the module.
    """
    version, *suffixes = details.removeprefix(".").split("-")
    if not _VERSION.fullmatch(version):
        return None
    # `main` in `hdf5/main` may also be the beginning of a hash: the parser of specs
    # reads it.
    if not suffixes and re.fullmatch("[a-z2-7]+", version):
        return None
    # A compiler is a name and its version, or `none`.
    has_compiler = any(
        _VERSION.fullmatch(word) or word == "none" for word in suffixes[1:]
    )
    has_hash = bool(suffixes) and re.fullmatch(HASH, suffixes[-1]) is not None
    dag_hash = suffixes[-1] if has_hash else ""
    if not (has_compiler or known_names.is_package(package)):
        return None
    if dag_hash and known_names.is_hash(dag_hash):
        return PastedSpec(f"{package}/{dag_hash}", is_certain=True, hash=dag_hash)
    if suffixes and _PRERELEASE.fullmatch(suffixes[0]):
        version = f"{version}-{suffixes[0]}"
    return PastedSpec(f"{package}@{version}", is_certain=True)
