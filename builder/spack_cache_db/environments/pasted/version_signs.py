"""Reads versions as other package managers write them: `hdf5==1.14.6`,
`hdf5>=1.12,<1.14`.

In Spack, `hdf5==1.14.6` is a variant that all dependencies have too. If the word before
the sign is a package, nobody means that. pip's signs are those of PEP 440; conda's `=`
is a version and its second `=` a build.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_SIGN = r"(?:===?|[<>~!]=|[=<>])"
_NUMBER = r"v?\d[\w.+!-]*?(?:\.\*)?"
# A name with perhaps extras, such as `dask[array]`, signs with versions, perhaps
# conda's build, and whatever follows a blank.
_PINNED = re.compile(
    rf"(?P<name>[A-Za-z0-9][\w.-]*?)(?:\[[\w,. -]*\])?\s*"
    rf"(?P<pins>{_SIGN}\s*{_NUMBER}(?:\s*,\s*{_SIGN}\s*{_NUMBER})*)"
    r"(?:=[\w.*]+)?(?P<more>(?:\s.*)?)",
    re.DOTALL,
)
_PIN = re.compile(rf"(?P<sign>{_SIGN})\s*(?P<version>{_NUMBER})\s*(?:,|\Z)")
_COUNTED = re.compile("[0-9]{1,100}")
"""A part of a version that has one below it; Python refuses to count in longer ones."""
_MARKER = re.compile(r"\s*;.*|\s+--hash=\S+.*", re.DOTALL)
"""The parts that pip puts behind a version: a condition, or the checksums of its
files.
"""


class SpackVersions(NamedTuple):
    """A spec in Spack's syntax, and a note on how it was read."""

    spec: str
    note: str


def with_spack_versions(
    text: str, is_package: Callable[[str], bool]
) -> SpackVersions | None:
    """Return a text with the version as Spack writes it; None if it is not written so.

    `hdf5==1.14.6`, `hdf5=1.14.6` and `hdf5=1.14.6=nompi_h1` are `hdf5@1.14.6`;
    `hdf5>=1.12` is `hdf5@1.12:`, and `hdf5~=1.14` is `hdf5@1.14:1`. Versions below 1.13
    are `@:1.12`.

    Args:
        text: the text that a person typed.
        is_package: whether a package has a name; other names are left as they are.
    """
    pinned = _PINNED.fullmatch(_MARKER.sub("", text.strip()))
    if pinned is None:
        return None
    name = _package_called(pinned["name"], is_package)
    if name is None:
        return None
    pins = _read_pins(pinned["pins"])
    spec = name
    if pins.versions:
        spec = f"{name}@{pins.versions}"
    spec += pinned["more"].rstrip()
    note = "in Spack, a version is written behind an @"
    if pins.left_out:
        note += f"; left out: {', '.join(pins.left_out)}"
    return SpackVersions(spec, note)


def _package_called(name: str, is_package: Callable[[str], bool]) -> str | None:
    """Return the package of a name of pip's or conda's: `numpy` is `py-numpy`."""
    lowered = name.lower().replace("_", "-").replace(".", "-")
    for candidate in (name, lowered, f"py-{lowered}"):
        if is_package(candidate):
            return candidate
    return None


class _Pins(NamedTuple):
    """The versions that signs allow, as Spack writes them, and the signs left out."""

    versions: str
    left_out: tuple[str, ...]


def _read_pins(text: str) -> _Pins:
    """Return the versions of signs such as `>=1.12,<1.14`, which are `1.12:1.13`."""
    exact = ""
    lower = ""
    upper = ""
    left_out = []
    for pin in _PIN.finditer(text):
        sign = pin["sign"]
        version = pin["version"].removeprefix("v").removesuffix(".*")
        below = _just_below(version)
        if sign in ("=", "==", "==="):
            exact = version
        elif sign in (">", ">="):
            lower = version
        elif sign == "<=":
            upper = version
        elif sign == "~=":
            lower = version
            upper = version.rpartition(".")[0]
        elif sign == "<" and below:
            upper = below
        else:
            left_out.append(f"{sign}{pin['version']}")
    versions = exact
    if not exact and (lower or upper):
        versions = f"{lower}:{upper}"
    return _Pins(versions, tuple(left_out))


def _just_below(version: str) -> str | None:
    """Return the versions below one as the end of a range of Spack's, which includes
    it.

    `:1.12` has all versions 1.12.x, so it stands for `<1.13`. None if there is no such
    end.
    """
    parts = version.split(".")
    # `1.14.0` ends where `1.14` does.
    while parts and re.fullmatch("0+", parts[-1]):
        parts.pop()
    if not parts or not _COUNTED.fullmatch(parts[-1]):
        return None
    parts[-1] = str(int(parts[-1]) - 1)
    return ".".join(parts)
