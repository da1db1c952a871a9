"""Packages with binaries older than Spack's latest version."""

from __future__ import annotations

from collections.abc import Set

from spack_cache_db.arguments import checked
from spack_cache_db.errors import DatabaseError
from spack_cache_db.query.conditions.conditions import Conditions, OneOf
from spack_cache_db.query.names.scope import Scope, named_conditions
from spack_cache_db.query.open.lookups import Database, Lookups, opened
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.stored.package_data import PackageStatus, versions_behind
from spack_cache_db.query.stored.totals import count_packages

_STATUS = """
SELECT name, description, homepage, latest_version, newest_version, versions_behind, spec_count
FROM package_status ORDER BY name
"""


@checked
def behind(
    db: Database,
    *,
    release: str | None = None,
    stack: str | None = None,
    maintainer: str | None = None,
    tag: str | None = None,
) -> list[PackageStatus]:
    """Return the packages whose newest binary is older than Spack's newest version, by
    name.

    `release` and `stack` narrow the answer: see `Scope`.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        maintainer: only packages whose recipe this person or group maintains, by the
            name of the account.
        tag: only packages whose recipe has this tag, such as `e4s`.

    Raises:
        ArgumentError: an argument has a wrong type.
        UnknownNameError: the database has no such release, stack, maintainer or tag.
        DatabaseError: the database was not made by this builder, or has no package
            data.
    """
    scope = Scope(release=release, stack=stack)
    with opened(db) as lookups:
        packages = compared_with_spack(lookups, scope, maintainer, tag)
    return [package for package in packages if package.versions_behind]


def compared_with_spack(
    lookups: Lookups,
    scope: Scope,
    maintainer: str | None = None,
    tag: str | None = None,
) -> list[PackageStatus]:
    """Return every package in Spack, behind or not; otherwise as `behind`."""
    conditions = scope.conditions(lookups)
    packages = [PackageStatus(*row) for row in select(lookups.conn, _STATUS)]
    if not packages:
        data = "the output of spack list --format version_json"
        raise DatabaseError(
            f"the database has no package data; build it with {data} as well"
        )
    named = _named_packages(lookups, maintainer, tag)
    if named is not None:
        packages = [package for package in packages if package.name in named]
    return _within(lookups, conditions, packages) if conditions else packages


def _named_packages(
    lookups: Lookups, maintainer: str | None, tag: str | None
) -> Set[str] | None:
    """Return the packages with a maintainer and a tag; None if neither is given."""
    names = None
    for condition in named_conditions(lookups, maintainer=maintainer, tag=tag):
        assert isinstance(condition.value, OneOf)
        words = condition.value.words
        names = words if names is None else names & words
    return names


def _within(
    lookups: Lookups, conditions: Conditions, packages: list[PackageStatus]
) -> list[PackageStatus]:
    """Return packages with only the binaries that satisfy the conditions."""
    newer_counts = versions_behind(lookups.conn)
    package_counts = count_packages(lookups, conditions)
    statuses = []
    for status in packages:
        newest = None
        newer_count = None
        spec_count = 0
        if status.name in package_counts:
            _, spec_count, version = package_counts[status.name]
            newest = lookups.words["version"][version]
            newer_count, _ = newer_counts.get((status.name, newest), (None, None))
        narrowed = status._replace(
            newest_version=newest, versions_behind=newer_count, spec_count=spec_count
        )
        statuses.append(narrowed)
    return statuses
