"""Counts of binaries: of a whole database, and by columns in a release or a stack."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from spack_cache_db.model import ROOT
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    Condition,
    Conditions,
    condition_value,
    only,
    without,
)
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import json_pieces, select, select_ids
from spack_cache_db.schema import tables

TOTALS = """
SELECT count(*), coalesce(sum(spec_count), 0), coalesce(sum(configuration_count), 0),
  (SELECT count(*) FROM releases),
  (SELECT count(*) FROM stacks WHERE NOT is_root),
  (SELECT count(*) FROM problems)
FROM packages WHERE spec_count > 0
"""
PACKAGE_COUNT = "SELECT count(*) FROM packages WHERE spec_count > 0"
PACKAGES = """
SELECT name, newest_version, configuration_count, spec_count, release_count, last_seen
FROM packages WHERE release_count > 0 ORDER BY name
"""
VERSION_IDS = "SELECT id FROM versions"
LARGEST_PACKAGES = """
SELECT name, newest_version, spec_count FROM packages WHERE spec_count > 0
ORDER BY spec_count DESC, name LIMIT :most
"""
FACETS = """
SELECT facet, value, spec_count FROM facet_values
WHERE release_id IS :release AND NOT (facet = 'stack' AND value = :root)
"""
PAGES = "SELECT format, count(*) FROM pages GROUP BY format ORDER BY format"
MIRRORS = """
SELECT releases.name, stacks.name, mirrors.url, mirrors.path, mirrors.format, mirrors.spec_count
FROM mirrors
JOIN releases ON releases.id = mirrors.release_id
JOIN stacks ON stacks.id = mirrors.stack_id
ORDER BY releases.position, stacks.name, mirrors.path
"""
RELEASES_WITH = """
SELECT DISTINCT release_id FROM facet_values
WHERE facet = :facet AND release_id IS NOT NULL
  AND value IN (SELECT value FROM json_each(:texts))
"""
SIZES = """
SELECT spec_id, size FROM json_each(:listings) AS wanted
CROSS JOIN releases ON releases.name = json_extract(wanted.value, '$[0]')
CROSS JOIN listings ON release_id = releases.id AND spec_id = json_extract(wanted.value, '$[1]')
"""

_OF_LISTED = "configurations ON configurations.id = listed.configuration_id"
# Among the versions of a package, Spack prefers the one with the largest id.
_NEWEST = "max(configurations.version_id)"
ANYWHERE = f"""
count(*), sum(spec_count), {_NEWEST} FROM configurations WHERE configurations.spec_count > 0
"""
IN_RELEASE = f"""
count(*), sum(listed.spec_count), {_NEWEST} FROM configuration_history AS listed
JOIN {_OF_LISTED}
WHERE listed.release_id = :release AND listed.spec_count > 0
"""
PACKAGES_IN_RELEASE = """
SELECT package_id, configuration_count, spec_count, newest_version_id
FROM release_packages WHERE release_id = :release
"""
# A stack has few of all configurations, so these are looked up by their ids.
IN_STACK = f"""
count(*), sum(listed.spec_count), {_NEWEST} FROM configuration_stacks AS listed
CROSS JOIN {_OF_LISTED}
WHERE listed.stack_id = :stack AND listed.spec_count > 0
"""
IN_BOTH = f"""
count(DISTINCT configurations.id), count(*), {_NEWEST}
FROM listings
JOIN specs ON specs.id = listings.spec_id
JOIN configurations ON configurations.id = specs.configuration_id
WHERE listings.release_id = :release AND listings.stack_set_id IN (
  SELECT stack_set_id FROM stack_set_members WHERE stack_id = :stack)
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
    (row,) = select(conn, TOTALS)
    return Totals(*row)


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


def words_with(lookups: Lookups, condition: Condition) -> dict[str, set[str]]:
    """Return the words that satisfy a condition, by its columns."""
    words_of_column = {}
    for column in COLUMNS[condition.kind]:
        if column == "version":
            lookups.learn(set(select_ids(lookups.conn, VERSION_IDS)), set())
        words = lookups.words[column].values()
        satisfying = {word for word in words if condition.is_met_by(column, word)}
        words_of_column[column] = satisfying
    return words_of_column


def sizes_of(
    conn: sqlite3.Connection, listings: Iterable[list[Any]]
) -> dict[int, str | None]:
    """Return the size of each spec in a release, given pairs of a release's name and a
    spec.
    """
    sizes: dict[int, str | None] = {}
    for piece in json_pieces(listings):
        sizes.update(select(conn, SIZES, listings=piece))
    return sizes


def largest_packages(
    conn: sqlite3.Connection, most: int
) -> Iterator[tuple[str, str, int]]:
    """Return name, newest version and number of binaries of the packages with most
    binaries.
    """
    return select(conn, LARGEST_PACKAGES, most=most)


def packages_with_binaries(conn: sqlite3.Connection) -> int:
    """Return the number of packages that have a binary."""
    (number,) = conn.execute(PACKAGE_COUNT).fetchone()
    return int(number)


def newest_snapshot(lookups: Lookups) -> str | None:
    """Return the day of the newest snapshot, YYYY-MM-DD; None without snapshots."""
    days = [release.date for release in lookups.releases.values() if release.date]
    return max(days, default=None)


def count_packages(
    lookups: Lookups, conditions: Conditions, lacks: Condition | None = None
) -> dict[str, Count]:
    """Return the counts of packages, of binaries that satisfy conditions.

    Args:
        lookups: an open database; afterwards, `Lookups.words` has the newest versions.
        conditions: on words, a stack and releases. The binaries of the first release
            are counted; packages without a binary in the other releases are left out.
        lacks: a condition that no binary of the package may satisfy, in this release
            and stack; or a release that may not have the package, in any stack.
    """
    counts = _counts_with_words(lookups, conditions)

    # Leave out packages that are not in all releases, and those with what they may not
    # have.
    for other_release in only(conditions, "release")[1:]:
        required = count_packages(lookups, (other_release,))
        counts = {name: counts[name] for name in counts if name in required}
    if lacks is not None:
        within: Conditions = ()
        if lacks.kind != "release":
            within = only(conditions, "release", "stack")
        excluded = count_packages(lookups, (lacks, *within))
        counts = {name: counts[name] for name in counts if name not in excluded}

    lookups.learn({count.newest for count in counts.values()}, set())
    return counts


def _counts_with_words(lookups: Lookups, conditions: Conditions) -> dict[str, Count]:
    """Return the counts of packages in the first release and stack of conditions, of
    binaries with words that satisfy them.
    """
    # Several conditions may be on one column: on a target and a host.
    allowed: dict[str, set[str]] = {}
    for condition in without(conditions, "release", "stack"):
        for column, words in words_with(lookups, condition).items():
            allowed[column] = allowed.get(column, words) & words
    # A platform that all binaries have need not be compared: most machines can have
    # every platform of the database.
    platforms = set(lookups.words["platform"].values())
    if allowed.get("platform") == platforms:
        del allowed["platform"]

    # Count by the columns of the conditions, and add up the rows with allowed words.
    release = condition_value(conditions, "release")
    stack = condition_value(conditions, "stack")
    rows = count_by(lookups, release, stack, "package", *allowed)
    counts: dict[str, Count] = {}
    # Many rows have the same words, which are looked at once.
    is_allowed: dict[tuple[str, ...], bool] = {}
    for names, count in rows.items():
        package = names[0]
        words_of_row = names[1:]
        if words_of_row not in is_allowed:
            pairs = zip(words_of_row, allowed.values(), strict=True)
            is_allowed[words_of_row] = all(word in words for word, words in pairs)
        if is_allowed[words_of_row]:
            counts[package] = counts[package] + count if package in counts else count
    return counts


def newest_release(
    lookups: Lookups, conditions: Conditions, lacks: Condition | None = None
) -> tuple[str, int] | None:
    """Return the first release with packages that `count_packages` counts, and their
    number.
    """
    # Releases without such words need not be counted.
    releases = frozenset(lookups.releases)
    for condition in without(conditions, "release", "stack"):
        for facet, words in words_with(lookups, condition).items():
            if facet in tables.FACETS:
                texts = json.dumps(list(words))
                releases &= select_ids(
                    lookups.conn, RELEASES_WITH, facet=facet, texts=texts
                )

    for release in lookups.releases.values():
        if release.id in releases:
            in_release = Condition("release", release.name, release.id)
            counts = count_packages(lookups, (in_release, *conditions), lacks)
            if counts:
                return release.name, len(counts)
    return None


def count_by(
    lookups: Lookups, release: int | None, stack: int | None, *columns: str
) -> dict[tuple[str, ...], Count]:
    """Return counts of configurations and binaries, by the words of some columns.

    They are limited to a release, a stack, or both if these are given. The last counts
    are cached, because they are the same for all visitors; those by three columns are
    too large. Platforms do not make them larger: a target mostly has one.
    """
    if len(set(columns) - {"platform"}) > 2:
        return _read_counts(lookups, release, stack, columns)
    key = (release, stack, columns)
    return lookups.recent(
        count_by, key, lambda: _read_counts(lookups, release, stack, columns)
    )


def _read_counts(
    lookups: Lookups, release: int | None, stack: int | None, columns: tuple[str, ...]
) -> dict[tuple[str, ...], Count]:
    # The packages of a release are counted by the build.
    grouped_by = ", ".join(
        f"configurations.{tables.ID_COLUMNS[column]}" for column in columns
    )
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
