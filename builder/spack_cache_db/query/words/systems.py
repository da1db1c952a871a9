"""Finds the operating system that a word names, as Spack calls it.

In a database with `rhel8`, `ubuntu22.04` and `ubuntu24.04`, `redhat8.9` is `rhel8`,
`ubuntu` is `ubuntu24.04`, and `jammy` is `ubuntu22.04`.
"""

from __future__ import annotations

import re
from collections.abc import Set

from spack_cache_db.query.words.vocabulary import SYSTEM_NAMES, SYSTEMS_OF_SPACK
from spack_cache_db.spack.versions import version_key

_SYSTEM = re.compile(r"([a-z]+)([\d.]*)")
"""A distribution and its version: `rhel8.9`."""
_NOT_IN_SYSTEMS = re.compile("linux|[-_]")
"""What people write in the names of systems and Spack does not: `rocky-linux9`."""


def newest_system(name: str, known_systems: Set[str]) -> str | None:
    """Return the newest operating system of a name; None if it is not a system.

    The name may lack a version, or have more or less of it than the database has. A
    system that Spack knows is returned even if it is not one of `known_systems`, which
    are those of the database.
    """
    if name in known_systems:
        return name
    match = _SYSTEM.fullmatch(_NOT_IN_SYSTEMS.sub("", name))
    if match is None:
        return None
    distribution, version = match.groups()
    system = SYSTEM_NAMES.get(distribution, distribution) + version

    # The same system, apart from dots: `ubuntu2204` is `ubuntu22.04`.
    without_dots = system.replace(".", "")
    same = [other for other in known_systems if other.replace(".", "") == without_dots]
    if same:
        return max(same, key=version_key)
    # One with less or more of a version.
    close = [
        other
        for other in known_systems
        if _has_more_version(other, system) or _has_more_version(system, other)
    ]
    if close:
        return max(close, key=version_key)
    # One that the database does not have.
    is_of_spack = system.rstrip("0123456789.") in SYSTEMS_OF_SPACK
    return system if is_of_spack else None


def _has_more_version(longer: str, system: str) -> bool:
    """Return whether a system is another one with more of its version: `rhel8` has more
    than `rhel`, and `rhel8.9` more than `rhel8`, but not `rhel85`.
    """
    if not longer.startswith(system):
        return False
    rest = longer.removeprefix(system)
    has_version = system[-1:].isdigit()
    pattern = r"\.[\d.]+" if has_version else r"[\d.]+"
    return re.fullmatch(pattern, rest) is not None
