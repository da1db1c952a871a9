"""How the binaries of each package compare with what Spack has: the Python side of `behind`."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from spack_cache_db.arguments import checked_texts
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.answers import counted_part, matching, scope_of
from spack_cache_db.query.conditions import Conditions
from spack_cache_db.query.connection import select
from spack_cache_db.query.lookups import Database, Lookups, opened
from spack_cache_db.spack.versions import count_newer

_STATUS = """
SELECT name, description, homepage, latest_version, newest_version, versions_behind, spec_count
FROM package_status ORDER BY name
"""
_RELEASED = """
SELECT package, version FROM packages JOIN known_versions ON package = packages.name
WHERE packages.spec_count > 0 AND kind = 'number' AND deprecated IS NOT 1
"""


class PackageStatus(NamedTuple):
    """A package that Spack has, and what binaries there are of it.

    Attributes:
        name: the package.
        description: what it is for; None where the data does not say it.
        homepage: its address, as the recipe has it: not every text is a URL.
        latest_version: the version that Spack prefers.
        newest_version: the newest version of a binary; None where there is none.
        versions_behind: how many numbered versions are newer than that and not deprecated; None
            where there is no binary.
        spec_count: the binaries.
    """

    name: str
    description: str | None
    homepage: str | None
    latest_version: str | None
    newest_version: str | None
    versions_behind: int | None
    spec_count: int

    def as_dict(self) -> dict[str, Any]:
        """Return what `behind --json` prints of a package."""
        return self._asdict()


def behind(
    db: Database, *, release: str | None = None, stack: str | None = None
) -> list[PackageStatus]:
    """Return the packages whose newest binary is older than Spack's newest version, by name.

    Args:
        db: a file made by `build`, as text or `Path`, or a `Cache` or connection to one.
        release: only binaries that this release lists.
        stack: only binaries in this stack; in that release, where one is given.

    Raises:
        ArgumentError: an argument has a wrong type.
        UnknownNameError: the file has no such release or stack.
        DatabaseError: the file is not one of this builder, or has no package data.
    """
    checked_texts(release=release, stack=stack)
    with opened(db) as (conn, lookups):
        found = read_status(conn, lookups, scope_of(lookups, release=release, stack=stack))
    if not found:
        data = "the output of spack list --format version_json"
        raise DatabaseError(f"the database has no package data; build it with {data} as well")
    return [each for each in found if each.versions_behind]


def read_status(
    conn: sqlite3.Connection, lookups: Lookups, scope: Conditions
) -> list[PackageStatus]:
    """Return every package that Spack has, by name, and its binaries within a scope."""
    found = [PackageStatus(*row) for row in select(conn, _STATUS)]
    return [*_within(conn, lookups, scope, found)] if scope else found


def released_versions(conn: sqlite3.Connection) -> Mapping[str, list[str]]:
    """Return the versions that have a number and are not deprecated of packages with a binary."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, version in select(conn, _RELEASED):
        found[name].append(version)
    return found


def _within(
    conn: sqlite3.Connection, lookups: Lookups, scope: Conditions, found: list[PackageStatus]
) -> Iterator[PackageStatus]:
    """Yield packages with the binaries of a scope in the place of all."""
    released = released_versions(conn)
    newest: dict[str, tuple[int, str]] = {}
    counts: dict[str, int] = defaultdict(int)
    results = matching(conn, lookups, scope)
    for each in counted_part(conn, lookups, results, slice(None)):
        package, version = each.configuration.package, each.configuration.version
        newest[package] = max(newest.get(package, (0, "")), (each.position, version))
        counts[package] += each.spec_count
    for status in found:
        _, found_version = newest.get(status.name, (0, None))
        yield status._replace(
            newest_version=found_version,
            versions_behind=None
            if found_version is None
            else count_newer(found_version, released[status.name]),
            spec_count=counts[status.name],
        )
