"""Reads the names of environment modules, as `module load`, `avail` and `list` have
them.

Spack names a module `{name}/{version}-{compiler.name}-{compiler.version}`, or a part of
it, with seven characters of the hash at the end (Spack 1.2 `modules/common.py`). So
`hdf5/1.14.5-gcc-13.2.0-nekvq6z` is the spec `hdf5/nekvq6z`, or `hdf5@1.14.5` if no
binary has this hash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from spack_cache_db.environments.known_names import ANY_NAME, KnownNames
from spack_cache_db.environments.pasted.model import PastedSpec

HASH = r"(?:[a-z2-7]{32}|[a-z2-7]{7})"
"""A whole hash, or the beginning that Spack prints, in the characters of base32."""

_LOAD = "load|add|try-load"
_OPTIONS = r"(?:\s+-\S+)*"
# `module` needs a verb before the modules, its short form `ml` may have one.
_COMMAND = re.compile(
    rf"(?:.*?[$>%]\s+)?(?:module|ml){_OPTIONS}"
    rf"(?:(?<=module)\s+(?:{_LOAD})|(?<=ml)(?:\s+load)?|\s+(?:{_LOAD}))"
    rf"{_OPTIONS}\s+(?=\S)"
)
"""The beginning of a line up to the modules that it loads, such as
`$ module -q load -f ` or `ml `: a prompt, the command with options, and the verb with
options.
"""
_NAME = re.compile(r"\w[\w.+-]*(?:/\.?[\w.+-]+)*")
"""The name of a module: words with slashes between them."""
_VERSION = re.compile(
    r"v?\d[\w.]*|develop|main|master|head|trunk|nightly|stable|latest"
)
_PRERELEASE = re.compile(r"(?:alpha|beta|rc)\d*")
"""The second part of a version such as `1.14.5-rc1`."""
_MARK = re.compile(r"[(<][A-Za-z:,@]+[>)]|\d+\)")
"""A word beside a module: loaded `(L)`, default `(D)`, or its number in `module list`
(`3)`).
"""
_MARK_AT_END = re.compile(r"(?:\((?:default|[A-Z](?:,[A-Z])*)\)|<[A-Za-z]+>|@)\Z")
"""A mark without a blank before it, as in `hdf5/1.14.5(default)`."""
_COLUMNS = re.compile(r"\S\s{2,}\S")
"""Two columns of a line, with two blanks between them."""
_LONGEST = 200
"""Maximum of characters in the name of a module."""


def specs_of_modules(
    text: str, known_names: KnownNames, *, is_list: bool = False
) -> tuple[PastedSpec, ...]:
    """Return the spec of each word of a line of modules; empty for other lines.

    A line is one of modules if a command loads them, if each word is one, or if it has
    the columns or the marks of `module avail` and one of them is a module. In such a
    line, a word that cannot be read as a module is returned as it is.

    Args:
        text: the line.
        known_names: the packages and hashes by which names are read.
        is_list: whether a heading of `module avail` is above the line.
    """
    # The names of modules, without their marks such as `(L)`.
    command = _COMMAND.match(text)
    arguments = text if command is None else text[command.end() :]
    words = arguments.split()
    without_marks = [word for word in words if not _MARK.fullmatch(word)]
    names = [_MARK_AT_END.sub("", word) for word in without_marks]
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
    has_marks = len(without_marks) < len(words)
    has_columns = _COLUMNS.search(text) is not None
    if not (is_list or has_marks or has_columns):
        return ()
    pasted_specs = []
    has_version = False
    for name, spec in zip(names, specs, strict=True):
        if spec is None:
            spec = PastedSpec(name)
        elif "/" in name:
            # `hdf5/1.14.5`: a package alone has no slash.
            has_version = True
        pasted_specs.append(spec)
    return tuple(pasted_specs) if has_version else ()


def _loaded(name: str, known_names: KnownNames) -> PastedSpec:
    """Return the spec of an argument of `module load`.

    Its package may be unknown, because whoever loads it knows that it is a module.
    """
    spec = spec_of_module(name, known_names)
    if spec is None:
        spec = spec_of_module(name, ANY_NAME)
    if spec is None:
        spec = PastedSpec(name)
    return spec


def spec_of_module(name: str, known_names: KnownNames) -> PastedSpec | None:
    """Return the spec of a module; None if the name is not that of a module.

    `hdf5/1.14.5-gcc-13.2.0-nekvq6z` is `hdf5/nekvq6z`, or `hdf5@1.14.5` if no binary
    has this hash.
    """
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        return None
    parts = name.split("/")
    if len(parts) == 1:
        return _spec_of_dashes(name, known_names)
    if len(parts) == 2:
        return _spec_of(parts[0], parts[1], known_names)
    # A hierarchy of folders, such as `gcc/13.2.0/hdf5/1.14.5`: the last known package
    # and the version below it.
    pairs = list(pairwise(parts))
    for package, version in reversed(pairs):
        if known_names.is_package(package):
            spec = _spec_of(package, version, known_names)
            if spec is not None:
                return spec
    return None


def _spec_of_dashes(name: str, known_names: KnownNames) -> PastedSpec | None:
    """Return the spec of a name such as `hdf5-1.14.5-gcc-13.2.0-nekvq6z`."""
    # Without a dot, it is more likely the name of a package, such as `py-2to3`.
    if "." not in name:
        return None
    words = name.split("-")
    start = version_position(words, _VERSION, known_names)
    if start is None:
        return None
    package = "-".join(words[:start])
    details = "-".join(words[start:])
    return _spec_of(package, details, known_names)


def version_position(
    words: Sequence[str], version: re.Pattern[str], known_names: KnownNames
) -> int | None:
    """Return the position of the version in the words of a name; None if it has none.

    In `py-2to3-1.0`, `2to3` looks like a version as well. So the first version behind
    the name of a known package counts, or else the first one.

    Args:
        words: the words of the name, `["py", "2to3", "1.0"]`.
        version: the pattern of a version.
        known_names: the known packages.
    """
    first = None
    for position, word in enumerate(words):
        # The first word is a name.
        if position == 0 or not version.fullmatch(word):
            continue
        if known_names.is_package("-".join(words[:position])):
            return position
        if first is None:
            first = position
    return first


def _spec_of(package: str, details: str, known_names: KnownNames) -> PastedSpec | None:
    """Return the spec of a package's module; None if it is not one.

    `details` has the version, and perhaps the compiler, options and the hash, with
    dashes between them: `1.14.5-gcc-13.2.0-openmpi-nekvq6z`. A dot before the version
    hides the module from `module avail`.
    """
    version, *suffixes = details.removeprefix(".").split("-")
    if not _VERSION.fullmatch(version):
        return None
    # `main` in `hdf5/main` may also be the beginning of a hash: the parser of specs
    # reads it.
    if not suffixes and re.fullmatch("[a-z2-7]+", version):
        return None

    # An unknown package counts only with a compiler, which is a name and its version,
    # or `none`.
    has_compiler = any(
        _VERSION.fullmatch(word) or word == "none" for word in suffixes[1:]
    )
    if not has_compiler and not known_names.is_package(package):
        return None

    # The hash is better than the version, if a binary has it.
    last = suffixes[-1] if suffixes else ""
    if re.fullmatch(HASH, last) and known_names.is_hash(last):
        return PastedSpec(f"{package}/{last}", is_certain=True, hash=last)
    if suffixes and _PRERELEASE.fullmatch(suffixes[0]):
        version = f"{version}-{suffixes[0]}"
    return PastedSpec(f"{package}@{version}", is_certain=True)
