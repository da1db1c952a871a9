"""Sentences about what installing a binary takes (its closure): `3 of 4 dependencies
have no binary here`, `14 packages, 212 MB`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spack_cache_db.errors import bytes_text, counted, series
from spack_cache_db.query.stored.closure import Closure, Member

MOST_NAMED = 12
"""Maximum of packages to build that a sentence names."""


def missing_sentence(closure: Closure) -> str | None:
    """Return how many dependencies have no binary; None if all have one or need none.

    For example `3 of 4 dependencies have no binary here`.
    """
    # The first member is the binary itself.
    dependencies = closure.members[1:]
    missing_count = sum(member.is_missing for member in dependencies)
    if missing_count == 0:
        return None
    verb = "has" if missing_count == 1 else "have"
    total = counted(len(dependencies), "dependency", "dependencies")
    return f"{missing_count:,} of {total} {verb} no binary here"


def builds_sentence(missing: Iterable[Member]) -> str:
    """Return what Spack builds, such as
    `builds gcc-runtime and zlib-ng from source`.
    """
    packages = sorted({member.package for member in missing})
    return f"builds {series(packages, MOST_NAMED)} from source"


def external_sentence(member: Member) -> str:
    """Return what an external needs of the machine.

    For example `needs openmpi@5.0.10 at /opt/site/openmpi, provided by the system`.
    """
    sentence = f"needs {member.name_and_version}"
    external = member.external
    if external is not None:
        if external.prefix is not None:
            sentence += f" at {external.prefix}"
        if external.modules:
            sentence += f" (module load {' '.join(external.modules)})"
    return f"{sentence}, provided by the system"


def gone_sentence(closure: Closure) -> str:
    """Return that the mirror has lost a binary, and when it was last seen."""
    sentence = "the mirror no longer lists this binary"
    if closure.last_seen is None:
        return sentence
    return f"{sentence}; it was last listed on {closure.last_seen}"


def size_words(closures: Sequence[Closure]) -> str | None:
    """Return how much Spack downloads, such as `14 packages, 212 MB`; None if not
    known.

    Members that several closures share are counted once.
    """
    sizes: dict[int, int] = {}
    for closure in closures:
        if closure.size is None:
            return None
        # A closure has a size only if the sizes of all its binaries are known.
        for member in closure.binaries:
            sizes[member.spec] = member.size or 0
    packages = counted(len(sizes), "package")
    total = bytes_text(sum(sizes.values()))
    return f"{packages}, {total}"
