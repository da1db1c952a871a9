"""Counts of binaries: of a whole database, and by columns in a release or a stack."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import contains
from typing import Any, NamedTuple

from spack_cache_db.model import ROOT
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    Condition,
    Conditions,
    asked,
    only,
    without,
)
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import json_pieces, select, select_ids
from spack_cache_db.query.stored.binary import AVAILABLE

TOTALS = f"""
SELECT
  (SELECT count(*) FROM packages WHERE spec_count > 0),
  (SELECT count(*) FROM specs WHERE {AVAILABLE}),
  (SELECT count(*) FROM configurations WHERE spec_count > 0),
  (SELECT count(*) FROM releases),
  (SELECT count(*) FROM stacks WHERE NOT is_root),
  (SELECT count(*) FROM problems)
"""
PACKAGES = """
SELECT name, newest_version, configuration_count, spec_count, release_count, last_seen
FROM packages WHERE release_count > 0 ORDER BY name
"""
LARGEST_PACKAGES = """
SELECT name, newest_version, spec_count FROM packages WHERE spec_count > 0
ORDER BY spec_count DESC, name LIMIT :most
"""
FACETS = """
SELECT facet, value, spec_count FROM facet_values
WHERE release IS :release AND NOT (facet = 'stack' AND value = :root)
"""
PAGES = "SELECT format, count(*) FROM pages GROUP BY format ORDER BY format"
MIRRORS = """
SELECT releases.name, stacks.name, mirrors.url, mirrors.path, mirrors.format, mirrors.spec_count
FROM mirrors JOIN releases ON releases.id = mirrors.release JOIN stacks ON stacks.id = mirrors.stack
ORDER BY releases.position, stacks.name, mirrors.path
"""
RELEASES_WITH = """
SELECT DISTINCT release FROM facet_counts
WHERE facet = :facet AND release IS NOT NULL AND value IN (SELECT value FROM json_each(:texts))
"""
SIZES = """
SELECT spec, size FROM json_each(:listings) AS wanted
CROSS JOIN releases ON releases.name = json_extract(wanted.value, '$[0]')
CROSS JOIN listings ON release = releases.id AND spec = json_extract(wanted.value, '$[1]')
"""

MOST_CACHED = 16
"""Number of counts by columns that a process caches for a database."""
_LISTED = "AS listed JOIN configurations ON configurations.id = listed.configuration"
# Among the versions of a package, Spack prefers the one with the largest id.
_NEWEST = "max(configurations.version)"
ANYWHERE = f"""
count(*), sum(spec_count), {_NEWEST} FROM configurations WHERE configurations.spec_count > 0
"""
IN_RELEASE = f"""
count(*), sum(listed.spec_count), {_NEWEST} FROM configuration_releases {_LISTED}
WHERE listed.release = :release
"""
PACKAGES_IN_RELEASE = """
SELECT package, configuration_count, spec_count, newest_version FROM release_packages
WHERE release = :release
"""
IN_STACK = f"""
count(*), sum(listed.spec_count), {_NEWEST} FROM configuration_stacks {_LISTED}
WHERE listed.stack = :stack AND listed.spec_count > 0
"""
IN_BOTH = f"""
count(DISTINCT configurations.id), count(*), {_NEWEST}
FROM release_specs AS shown JOIN configurations ON configurations.id = shown.configuration
WHERE shown.release = :release
  AND shown.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)
"""


class Totals(NamedTuple):
    """Counts of a whole database; packages, specs and configurations are those with a
    binary.
    """

    packages: int
    specs: int
    configurations: int
    releases: int
    stacks: int
    problems: int


class Mirror(NamedTuple):
    """An index that the database was built from."""

    release: str
    stack: str
    url: str | None
    path: str
    format: str
    spec_count: int


class Count(NamedTuple):
    """Counts of one package or column; `newest` is the id of the package's newest
    version.
    """

    configurations: int
    specs: int
    newest: int

    def __add__(self, other: Count) -> Count:  # type: ignore[override]
        """Return the sum for disjoint sets of configurations."""
        return Count(
            self.configurations + other.configurations,
            self.specs + other.specs,
            max(self.newest, other.newest),
        )


def read_totals(conn: sqlite3.Connection) -> Totals:
    """Return the size of a database."""
    return Totals(*next(select(conn, TOTALS)))


def read_mirrors(conn: sqlite3.Connection) -> tuple[Mirror, ...]:
    """Return the indexes that a database was built from."""
    return tuple(Mirror(*row) for row in select(conn, MIRRORS))


def facet_counts(
    conn: sqlite3.Connection, release: int | None = None
) -> dict[str, dict[str, int]]:
    """Return the number of binaries for each value of each facet, in a release or in
    all together.

    Versions and the stack `root` are left out.
    """
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for facet, value, count in select(conn, FACETS, release=release, root=ROOT):
        counts[facet][value] = count
    return counts


def words_with(lookups: Lookups, condition: Condition) -> set[str]:
    """Return the words of a column that satisfy a condition on it."""
    return set(filter(condition.holds, lookups.words[COLUMNS[condition.kind]].values()))


def sizes_of(
    conn: sqlite3.Connection, listings: Iterable[list[Any]]
) -> dict[int, str | None]:
    """Return the size of each spec in a release, given pairs of a release's name and a
    spec.
    """
    pieces = (select(conn, SIZES, listings=piece) for piece in json_pieces(listings))
    return dict(chain.from_iterable(pieces))


def largest_packages(
    conn: sqlite3.Connection, most: int
) -> Iterator[tuple[str, str, int]]:
    """Return name, newest version and number of binaries of the packages with most
    binaries.
    """
    return select(conn, LARGEST_PACKAGES, most=most)


def newest_snapshot(lookups: Lookups) -> str | None:
    """Return the day of the newest snapshot, YYYY-MM-DD; None without snapshots."""
    dates = (release.date for release in lookups.releases.values())
    return max(filter(None, dates), default=None)


def count_packages(
    lookups: Lookups, conditions: Conditions, lacks: Condition | None = None
) -> dict[str, Count]:
    """Return the counts of packages, of binaries that satisfy conditions.

    Conditions are on words, a stack and releases. The first release is counted; the
    others have a binary of the package too. In this release and stack, or in all stacks
    of the release `lacks`, no binary of the package satisfies the condition `lacks`.
    `Lookups.words` has the versions.
    """
    places = only(conditions, "release", "stack")
    allowed: dict[str, set[str]] = {}
    for condition in without(conditions, "release", "stack"):
        column, words = COLUMNS[condition.kind], words_with(lookups, condition)
        allowed[column] = allowed.get(column, words) & words
    release, stack = asked(conditions, "release"), asked(conditions, "stack")
    counts: dict[str, Count] = {}
    for (package, *cells), count in count_by(
        lookups, release, stack, "package", *allowed
    ).items():
        if all(map(contains, allowed.values(), cells)):
            counts[package] = counts[package] + count if package in counts else count
    for other in only(conditions, "release")[1:]:
        required = count_packages(lookups, (other,))
        counts = {
            package: count for package, count in counts.items() if package in required
        }
    if lacks is not None:
        is_release = lacks.kind == "release"
        excluded = count_packages(lookups, (lacks,) if is_release else (lacks, *places))
        counts = {
            package: count
            for package, count in counts.items()
            if package not in excluded
        }
    lookups.learn({count.newest for count in counts.values()}, set())
    return counts


def newest_release(
    lookups: Lookups, conditions: Conditions, lacks: Condition | None = None
) -> tuple[str, int] | None:
    """Return the first release with packages that `count_packages` counts, and their
    number.
    """
    releases = frozenset(lookups.releases)
    for condition in without(conditions, "release", "stack"):
        texts = json.dumps([*words_with(lookups, condition)])
        facet = COLUMNS[condition.kind]
        releases &= select_ids(lookups.conn, RELEASES_WITH, facet=facet, texts=texts)
    for key, release in lookups.releases.items():
        place = Condition("release", release.name, key)
        if key in releases and (
            counts := count_packages(lookups, (place, *conditions), lacks)
        ):
            return release.name, len(counts)
    return None


def count_by(
    lookups: Lookups, release: int | None, stack: int | None, *columns: str
) -> dict[tuple[str, ...], Count]:
    """Return counts of configurations and binaries, by the words of some columns.

    They are limited to a release, a stack, or both if these are given. The last counts
    are cached, because they are the same for all visitors; those by three columns are
    too large.
    """
    if len(columns) > 2:
        return _read_counts(lookups, release, stack, columns)
    cached: dict[object, dict[tuple[str, ...], Count]] = lookups.once(count_by, dict)
    key = (release, stack, columns)
    # What was asked for last stands last.
    counts = cached.pop(key, None)
    if counts is None:
        counts = _read_counts(lookups, release, stack, columns)
    cached[key] = counts
    if len(cached) > MOST_CACHED:
        del cached[next(iter(cached))]
    return counts


def _read_counts(
    lookups: Lookups, release: int | None, stack: int | None, columns: tuple[str, ...]
) -> dict[tuple[str, ...], Count]:
    # The packages of a release are counted by the build.
    grouped_by = ", ".join(f"configurations.{column}" for column in columns)
    if columns == ("package",) and release is not None and stack is None:
        sql = PACKAGES_IN_RELEASE
    else:
        if release is None and stack is None:
            counted = ANYWHERE
        elif stack is None:
            counted = IN_RELEASE
        elif release is None:
            counted = IN_STACK
        else:
            counted = IN_BOTH
        sql = f"SELECT {grouped_by}, {counted} GROUP BY {grouped_by}"

    # A row has the id of a word of each column, and then the counts.
    words_of_columns = [lookups.words[column] for column in columns]
    counts = {}
    for row in select(lookups.conn, sql, release=release, stack=stack):
        *word_ids, configurations, specs, newest = row
        words = tuple(
            words[word_id]
            for words, word_id in zip(words_of_columns, word_ids, strict=True)
        )
        counts[words] = Count(configurations, specs, newest)
    return counts
