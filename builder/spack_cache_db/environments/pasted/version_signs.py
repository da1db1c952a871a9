"""Reads versions as other package managers write them: `hdf5==1.14.6`,
`hdf5>=1.12,<1.14`.

In Spack, `hdf5==1.14.6` would be a variant "hdf5" that all dependencies have too. If
the word before the sign is a package, nobody means that. The signs of pip are those of
PEP 440. In conda, `hdf5=1.14.6=nompi_h1` has a version and a build.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_SIGN = r"(?:===?|[<>~!]=|[=<>])"
_NUMBER = r"v?\d[\w.+!-]*?(?:\.\*)?"
_EXTRAS = r"(?:\[[\w,. -]*\])?"
_BUILD = r"(?:=[\w.*]+)?"
_PINNED = re.compile(
    rf"(?P<name>[A-Za-z0-9][\w.-]*?){_EXTRAS}\s*"
    rf"(?P<pins>{_SIGN}\s*{_NUMBER}(?:\s*,\s*{_SIGN}\s*{_NUMBER})*)"
    rf"{_BUILD}(?P<more>(?:\s.*)?)",
    re.DOTALL,
)
"""A name with its versions, perhaps with pip's extras or conda's build.

In `dask[array]>=2,<3 +x`, the name is `dask`, the pins `>=2,<3` and the rest ` +x`.
"""
_PIN = re.compile(rf"(?P<sign>{_SIGN})\s*(?P<version>{_NUMBER})\s*(?:,|\Z)")
"""One sign with its version, such as `>=2`."""
_COUNTED = re.compile("[0-9]{1,100}")
"""A number in a version; Python refuses to read much longer ones."""
_MARKER = re.compile(r"\s*;.*|\s+--hash=\S+.*", re.DOTALL)
"""The parts that pip puts behind a version: a condition (`; python_version > '3.8'`),
or the checksums of its files.
"""


class SpackVersions(NamedTuple):
    """A spec in Spack's syntax, and a note on how it was read."""

    spec: str
    note: str


def with_spack_versions(
    text: str, is_package: Callable[[str], bool]
) -> SpackVersions | None:
    """Return a text with its version as Spack writes it; None without such a version.

    | text | spec |
    | --- | --- |
    | `hdf5==1.14.6`, `hdf5=1.14.6`, `hdf5=1.14.6=nompi_h1` | `hdf5@1.14.6` |
    | `hdf5>=1.12` | `hdf5@1.12:` |
    | `hdf5<1.13` | `hdf5@:1.12` |
    | `hdf5~=1.14` | `hdf5@1.14:1` |

    Args:
        text: the text that a person typed.
        is_package: whether a package has a name; other names are left as they are.
    """
    pinned = _PINNED.fullmatch(_MARKER.sub("", text.strip()))
    if pinned is None:
        return None
    name = package_called(pinned["name"], is_package)
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


def package_called(name: str, is_package: Callable[[str], bool]) -> str | None:
    """Return the package that pip or conda calls so: `numpy` is `py-numpy`.

    None if there is no such package.
    """
    lowered = name.lower().replace("_", "-").replace(".", "-")
    for candidate in (name, lowered, f"py-{lowered}"):
        if is_package(candidate):
            return candidate
    return None


class _Pins(NamedTuple):
    """The versions of a text such as `>=1.12,!=1.13`.

    Attributes:
        versions: the range as Spack writes it, `1.12:`; empty for none.
        left_out: the signs that a range cannot express, `!=1.13`.
    """

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
        # `1.14` in a range of Spack has all versions 1.14.x, as `1.14.*` for pip.
        version = pin["version"].removeprefix("v").removesuffix(".*")
        below = _just_below(version)
        if sign in ("=", "==", "==="):
            exact = version
        elif sign in (">", ">="):
            # Spack has no range without its first version.
            lower = version
        elif sign == "<=":
            upper = version
        elif sign == "~=":
            # `~=1.14.2` is any 1.14.x from 1.14.2 on.
            lower = version
            upper = version.rpartition(".")[0]
        elif sign == "<" and below is not None:
            upper = below
        else:
            left_out.append(f"{sign}{pin['version']}")

    # An exact version needs no range.
    versions = exact
    if not exact and (lower or upper):
        versions = f"{lower}:{upper}"
    return _Pins(versions, tuple(left_out))


def _just_below(version: str) -> str | None:
    """Return the last version of a range that ends before a version.

    A range of Spack includes its end, and all versions below it: `:1.12` has 1.12.9, so
    it has the versions before 1.13. None if the version does not end in a number.
    """
    parts = version.split(".")
    # `1.14.0` ends where `1.14` does.
    while parts and re.fullmatch("0+", parts[-1]):
        parts.pop()
    if not parts or not _COUNTED.fullmatch(parts[-1]):
        return None
    parts[-1] = str(int(parts[-1]) - 1)
    return ".".join(parts)
