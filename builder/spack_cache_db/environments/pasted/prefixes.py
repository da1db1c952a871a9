"""Reads the folders into which Spack installs, and messages that name them.

Such a folder is a prefix: `/opt/spack/hdf5-1.14.5-nekvq6z…` has the name, the version
and the hash of a spec. This is the default projection `{name}-{version}-{hash}` (Spack
1.2 `directory_layout.py`); others are `{name}/{version}-{hash}` and
`{name}-{version}/{hash}`. A projection may have only the beginning of the hash.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from spack_cache_db.environments.known_names import ANY_NAME, KnownNames
from spack_cache_db.environments.pasted.model import PastedSpec
from spack_cache_db.environments.pasted.modules import (
    HASH,
    spec_of_module,
    version_position,
)

_FOLDER = re.compile(r"(?:(?P<name>[\w.+-]+)-)?(?P<hash>[a-z2-7]{32})")
"""A folder with a whole hash, and perhaps the name and version before it."""
_SHORT = re.compile(r"(?:(?P<name>[\w.+-]+)-)?(?P<hash>[a-z2-7]{7,31})")
"""A folder with the beginning of a hash."""
_STATE = re.compile(r"\[[^\]]\]\s+")
"""The state of a spec before its prefix, such as `[+] `."""
_INSTALLING = re.compile(r"==> Installing (?P<folder>\S+-[a-z2-7]{32})(?:\s.*)?")
_EXTERNAL = re.compile(
    rf"(?:\[.\]\s+)?(?P<prefix>/\S*) \(external (?P<name>[\w.+-]+-{HASH})\)"
)
"""A message about a package that the system provides, such as
`[e] /usr (external cmake-3.26-nekvq6z)`.
"""
_VERSION = re.compile(r"v?\d[\w.]*|develop|main|master|head|trunk|git\.\S+")
_BEGINNINGS_OF_A_PATH = ("/", "~/", "./", "../", "$", "opt/")


class Prefix(NamedTuple):
    """An installation prefix.

    Attributes:
        hash: its hash, whole or in part.
        package: the package, if the path has it; else empty.
        version: the version, if the path has it; else empty.
    """

    hash: str
    package: str = ""
    version: str = ""


def spec_of_prefix_line(text: str, known_names: KnownNames) -> PastedSpec | None:
    """Return the spec of a line that is a prefix, or a message that names one.

    The spec is the hash if a binary has it, else name and version as the path has them.
    None for other lines.
    """
    # An external needs no binary, so its name and hash need not be known.
    external = _EXTERNAL.fullmatch(text)
    if external is not None:
        name = external["name"]
        module = spec_of_module(name, ANY_NAME)
        spec = name if module is None else module.spec
        return PastedSpec(spec, external=external["prefix"], is_certain=True)

    # `==> Installing zlib-1.3.1-…`, or a path, perhaps behind a state.
    installing = _INSTALLING.fullmatch(text)
    if installing is not None:
        path = installing["folder"]
    else:
        path = _STATE.sub("", text, count=1)
        if "/" not in path:
            return None
    if " " in path:
        return None

    # `hdf5/1.14.5-gcc-13.2.0-nekvq6z` is a module, so the beginning of a hash counts
    # only in what is certainly a path.
    prefix = read_prefix(path, known_names)
    if prefix is None and path.startswith(_BEGINNINGS_OF_A_PATH):
        prefix = short_prefix(path, known_names)
    if prefix is None:
        return None
    return _spec_of(prefix, known_names)


def read_prefix(path: str, known_names: KnownNames = ANY_NAME) -> Prefix | None:
    """Return the prefix in the path of an installed file; None for other paths.

    `/opt/zlib-1.3.1-nekvq6z…/lib/libz.so` has zlib, 1.3.1 and the whole hash.
    """
    folders = path.split("/")
    for position, folder in enumerate(folders):
        match = _FOLDER.fullmatch(folder)
        if match is not None:
            return _prefix_of(match, folders[:position], known_names)
    return None


def short_prefix(path: str, known_names: KnownNames) -> Prefix | None:
    """Return the prefix in a path with the beginning of a hash; None for other paths.

    Its package has to be known. A hash that no binary has needs a digit, because
    `patched` in `zlib-1.3.1-patched` is a word.
    """
    folders = path.split("/")
    for position, folder in enumerate(folders):
        match = _SHORT.fullmatch(folder)
        if match is None:
            continue
        prefix = _prefix_of(match, folders[:position], known_names)
        is_hash = known_names.is_hash(prefix.hash) or not prefix.hash.isalpha()
        if is_hash and prefix.package and known_names.is_package(prefix.package):
            return prefix
    return None


def _prefix_of(
    match: re.Match[str], folders_above: list[str], known_names: KnownNames
) -> Prefix:
    """Return the prefix whose last folder is a match of `_FOLDER` or `_SHORT`.

    In `zlib/1.3.1-nekvq6z…`, the folder has the version, and the one above it the name.
    """
    # Put the names of at most two folders above before the name of the folder, until
    # it has a name and a version.
    name = match["name"] or ""
    above = folders_above[-2:]
    while above and not _has_name_and_version(name):
        folder_above = above.pop()
        # Without a name, the dash is removed again.
        name = f"{folder_above}-{name}".rstrip("-")

    # A path of a hash alone has no package.
    words = name.split("-")
    start = version_position(words, _VERSION, known_names)
    if start is None:
        return Prefix(match["hash"])
    package = "-".join(words[:start])
    version = "-".join(words[start:])
    return Prefix(match["hash"], package, version)


def _has_name_and_version(text: str) -> bool:
    """Return whether a text begins with a name and has a version behind it."""
    name, *others = text.split("-")
    if _VERSION.fullmatch(name):
        return False
    return any(_VERSION.fullmatch(word) for word in others)


def _spec_of(prefix: Prefix, known_names: KnownNames) -> PastedSpec:
    """Return the hash of a prefix if a binary has it, else the package and the
    version.
    """
    spec = f"/{prefix.hash}"
    if prefix.package and not known_names.is_hash(prefix.hash):
        spec = f"{prefix.package}@{prefix.version}"
    return PastedSpec(spec, is_certain=True, hash=prefix.hash)
