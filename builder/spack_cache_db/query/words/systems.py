"""Finds the operating system that a word names, as Spack calls it.

In a database with `rhel8`, `ubuntu22.04` and `ubuntu24.04`, `redhat8.9` is `rhel8`,
`ubuntu` is `ubuntu24.04`, and `jammy` is `ubuntu22.04`.
"""

from __future__ import annotations

import re
from collections.abc import Set

from spack_cache_db.query.words.vocabulary import SYSTEM_NAMES, SYSTEMS_OF_SPACK
from spack_cache_db.spack.versions import version_key

SYSTEM = re.compile(r"([a-z]+)([\d.]*)")
"""A distribution and its version: `rhel8.9`."""
NOT_IN_SYSTEMS = re.compile("linux|[-_]")
"""What people write in the names of systems and Spack does not: `rocky-linux9`."""


def newest_system(name: str, known_systems: Set[str]) -> str | None:
    """Return the newest operating system of a name; None if it is not a system.

    The version of the name may be missing, or be shorter or longer than the database
    has it. A system that Spack knows is returned even if the database does not have it.

    Args:
        name: a name in lower case, such as `redhat8.9`.
        known_systems: the systems of the database.
    """
    if name in known_systems:
        return name
    match = SYSTEM.fullmatch(NOT_IN_SYSTEMS.sub("", name))
    if match is None:
        return None
    # `redhat` is `rhel`, and `jammy` is `ubuntu22.04`, version included.
    distribution, version = match.groups()
    system = SYSTEM_NAMES.get(distribution, distribution) + version

    # The same system, apart from dots: `ubuntu2204` is `ubuntu22.04`. A database may
    # have both.
    without_dots = system.replace(".", "")
    same = [other for other in known_systems if other.replace(".", "") == without_dots]
    if same:
        return max(same, key=version_key)
    # One with a shorter or longer version.
    close = [
        other
        for other in known_systems
        if _is_longer_version(other, system) or _is_longer_version(system, other)
    ]
    if close:
        return max(close, key=version_key)
    # One that the database does not have. Those in `SYSTEMS_OF_SPACK` lack versions.
    is_of_spack = system.rstrip("0123456789.") in SYSTEMS_OF_SPACK
    return system if is_of_spack else None


def _is_longer_version(longer: str, system: str) -> bool:
    """Return whether one system is the other with a longer version.

    `rhel8` is `rhel` with a version, and `rhel8.9` is `rhel8` with a longer one, but
    `rhel85` is not.
    """
    if not longer.startswith(system):
        return False
    rest = longer.removeprefix(system)
    # Behind a digit, only a dot begins another part.
    has_version = system[-1:].isdigit()
    pattern = r"\.[\d.]+" if has_version else r"[\d.]+"
    return re.fullmatch(pattern, rest) is not None
