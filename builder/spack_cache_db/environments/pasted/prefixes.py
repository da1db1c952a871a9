"""Reads the folders into which Spack installs, and messages that name them.

The default projection is `{name}-{version}-{hash}` (Spack 1.2 `directory_layout.py`);
others are `{name}/{version}-{hash}` and `{name}-{version}/{hash}`.
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
_SHORT = re.compile(r"(?:(?P<name>[\w.+-]+)-)?(?P<hash>[a-z2-7]{7,31})")
"""A folder of a projection such as `{name}-{version}-{hash:7}`."""
_STATE = re.compile(r"\[[^\]]\]\s+")
_INSTALLING = re.compile(r"==> Installing (?P<folder>\S+-[a-z2-7]{32})(?:\s.*)?")
_EXTERNAL = re.compile(
    rf"(?:\[.\]\s+)?(?P<prefix>/\S*) \(external (?P<name>[\w.+-]+-{HASH})\)"
)
_VERSION = re.compile(r"v?\d[\w.]*|develop|main|master|head|trunk|git\.\S+")


class Prefix(NamedTuple):
    """An installation prefix: its hash, and the name and version if the path has
    them.
    """

    hash: str
    package: str = ""
    version: str = ""


def spec_of_prefix_line(text: str, known_names: KnownNames) -> PastedSpec | None:
    """Return the spec of a line that is an installation prefix, or a message that names
    one.

    The spec is the hash if a binary has it, else name and version as the path has them.
    """
    external = _EXTERNAL.fullmatch(text)
    if external:
        pasted = spec_of_module(external["name"], ANY_NAME)
        spec = pasted.spec if pasted is not None else external["name"]
        return PastedSpec(spec, external=external["prefix"], is_certain=True)
    installing = _INSTALLING.fullmatch(text)
    path = installing["folder"] if installing else _STATE.sub("", text, count=1)
    if " " in path or not (installing or "/" in path):
        return None
    prefix = read_prefix(path, known_names)
    # Without a slash or the like before it, `hdf5/1.14.5-gcc-13.2.0-nekvq6z` is a
    # module.
    if prefix is None and path.startswith(("/", "~/", "./", "../", "$", "opt/")):
        prefix = short_prefix(path, known_names)
    return None if prefix is None else _spec_of(prefix, known_names)


def short_prefix(path: str, known_names: KnownNames) -> Prefix | None:
    """Return the prefix of a path with the beginning of a hash.

    Its package has to be known. A hash that no binary has needs a digit, because
    `patched` in `zlib-1.3.1-patched` is a word.
    """
    folders = path.split("/")
    for position, folder in enumerate(folders):
        match = _SHORT.fullmatch(folder)
        if match is None:
            continue
        prefix = _prefix_at(match, folders[:position], known_names)
        is_hash = known_names.is_hash(prefix.hash) or not prefix.hash.isalpha()
        if is_hash and prefix.package and known_names.is_package(prefix.package):
            return prefix
    return None


def read_prefix(path: str, known_names: KnownNames = ANY_NAME) -> Prefix | None:
    """Return the hash, package and version in the path of an installed spec.

    None for other paths.
    """
    folders = path.split("/")
    for position, folder in enumerate(folders):
        match = _FOLDER.fullmatch(folder)
        if match is None:
            continue
        return _prefix_at(match, folders[:position], known_names)
    return None


def _prefix_at(
    match: re.Match[str], folders_above: list[str], known_names: KnownNames
) -> Prefix:
    """Return the prefix whose last folder is a match of `_FOLDER` or `_SHORT`."""
    # The name and the version, or one of them, may be the one or two folders above.
    name = match["name"] or ""
    above = folders_above[-2:]
    while above and not _has_name_and_version(name):
        folder_above = above.pop()
        # Without a name, the dash is removed again.
        name = f"{folder_above}-{name}".rstrip("-")
    package, version = _split(name, known_names)
    return Prefix(match["hash"], package, version)


def _has_name_and_version(text: str) -> bool:
    """Return whether a text begins with a name and has a version behind it."""
    words = text.split("-")
    has_name = not _VERSION.fullmatch(words[0])
    return has_name and any(_VERSION.fullmatch(word) for word in words[1:])


def _split(text: str, known_names: KnownNames) -> tuple[str, str]:
    """Return the package and the version of `berkeley-db-18.1.40`; empty if it has
    none.
    """
    words = text.split("-")
    start = version_position(words, _VERSION, known_names)
    if start is None:
        return "", ""
    return "-".join(words[:start]), "-".join(words[start:])


def _spec_of(prefix: Prefix, known_names: KnownNames) -> PastedSpec:
    """Return the hash of a prefix if a binary has it, else the package and the
    version.
    """
    if prefix.package and not known_names.is_hash(prefix.hash):
        return PastedSpec(
            f"{prefix.package}@{prefix.version}", is_certain=True, hash=prefix.hash
        )
    return PastedSpec(f"/{prefix.hash}", is_certain=True, hash=prefix.hash)
