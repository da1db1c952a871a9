"""What a package's rows can be narrowed to, with counts, and the grid of versions by targets."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spack_cache_db.query.configurations import Counted
from spack_cache_db.query.lookups import Lookups, Release, Stack
from spack_cache_db.query.open import select_in
from spack_cache_db.site.filters import Filters

GRID_ROWS = 8

Values = tuple[tuple[str, int], ...]
"""What a filter can be set to, and how many configurations that leaves."""

RELEASE_COUNTS = """
SELECT release, count(*) FROM configuration_releases
WHERE configuration IN (SELECT value FROM json_each(:ids)) GROUP BY release
"""
STACK_COUNTS = """
SELECT stack, count(*) FROM configuration_stacks
WHERE configuration IN (SELECT value FROM json_each(:ids)) GROUP BY stack
"""
# Within a release a spec has the configuration that the release's page shows (see query/specs.py).
RELEASE_COUNTS_IN_STACK = """
SELECT release, count(DISTINCT configuration) FROM (
  SELECT releases.id AS release, specs.configuration
  FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.configuration = wanted.value
  CROSS JOIN releases
  CROSS JOIN listings ON listings.release = releases.id AND listings.spec = specs.id
  WHERE specs.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)
    AND listings.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)
    AND NOT EXISTS (
      SELECT 1 FROM listing_configurations AS other
      WHERE other.release = listings.release AND other.spec = listings.spec)
  UNION ALL
  SELECT listed.release, listed.configuration
  FROM json_each(:ids) AS wanted
  CROSS JOIN listing_configurations AS listed ON listed.configuration = wanted.value
  CROSS JOIN listings ON listings.release = listed.release AND listings.spec = listed.spec
  WHERE listings.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)
) GROUP BY release
"""
STACK_COUNTS_IN_RELEASE = """
SELECT stack, count(DISTINCT configuration) FROM (
  SELECT member.stack, specs.configuration
  FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.configuration = wanted.value
  CROSS JOIN listings ON listings.release = :release AND listings.spec = specs.id
  CROSS JOIN stack_set_members AS member ON member.stack_set = listings.stacks
  WHERE NOT EXISTS (
    SELECT 1 FROM listing_configurations AS other
    WHERE other.release = :release AND other.spec = specs.id)
  UNION ALL
  SELECT member.stack, listed.configuration
  FROM json_each(:ids) AS wanted
  CROSS JOIN listing_configurations AS listed
    ON listed.configuration = wanted.value AND listed.release = :release
  CROSS JOIN listings ON listings.release = :release AND listings.spec = listed.spec
  CROSS JOIN stack_set_members AS member ON member.stack_set = listings.stacks
) GROUP BY stack
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """One filter and the values it can still take, each with its count of configurations."""

    name: str
    values: Values


@dataclass(frozen=True, slots=True)
class Grid:
    """Counts of specs by version and target; `None` where there are none."""

    targets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]
    version_count: int


def choices_of(
    conn: sqlite3.Connection,
    lookups: Lookups,
    filters: Filters,
    fitting: Sequence[Counted],
    matching: Sequence[Counted],
) -> tuple[Choice, ...]:
    """Return what each filter can still be set to, with the rows that would be left.

    Args:
        fitting: the configurations that fit all filters but release and stack.
        matching: those of them of which a spec counts in that release and stack.
    """
    ids = [each.id for each in fitting]
    chosen = [(name, filters.value(name)) for name in ("release", "stack")]
    places = (
        (name, ((value, len(matching)),) if value else _places(conn, lookups, filters, name, ids))
        for name, value in chosen
    )
    choices = (*places, *_parts(matching))
    return tuple(Choice(name, values) for name, values in choices if values)


def _places(
    conn: sqlite3.Connection, lookups: Lookups, filters: Filters, name: str, ids: list[int]
) -> Values:
    """Return the releases of these configurations, or their stacks, by what of the two is named."""
    release, stack = lookups.release(filters.release), lookups.stack(filters.stack)
    if name == "release":
        if stack is None:
            return _named(select_in(conn, RELEASE_COUNTS, ids), lookups.releases)
        counts = select_in(conn, RELEASE_COUNTS_IN_STACK, ids, stack=stack.id)
        return _named(counts, lookups.releases)
    if release is None:
        return _named(select_in(conn, STACK_COUNTS, ids), lookups.stacks)
    counts = select_in(conn, STACK_COUNTS_IN_RELEASE, ids, release=release.id)
    return _named(counts, lookups.stacks)


def _parts(matching: Sequence[Counted]) -> Iterator[tuple[str, Values]]:
    """Yield what the configurations themselves differ in."""
    positions = {each.configuration.version: -each.position for each in matching}
    configurations = [each.configuration for each in matching]
    yield "version", _counts((each.version for each in configurations), positions.__getitem__)
    yield "compiler", _counts(each.compiler for each in configurations)
    yield "os", _counts(each.os for each in configurations)
    yield "platform", _counts(each.platform for each in configurations)
    yield "target", _counts(each.target for each in configurations)
    variants = Counter(text for each in configurations for text in each.variants)
    varying = {text: count for text, count in variants.items() if count < len(matching)}
    yield "variant", tuple(sorted(varying.items()))


def _named(
    counts: Iterable[tuple[int, int]], known: Mapping[int, Release] | Mapping[int, Stack]
) -> Values:
    found: Counter[int] = Counter()
    for key, count in counts:
        found[key] += count
    return tuple((each.name, found[key]) for key, each in known.items() if key in found)


def _counts(values: Iterable[str], order: Callable[[str], int | str] = str) -> Values:
    counts = Counter(values)
    return tuple((value, counts[value]) for value in sorted(counts, key=order))


def grid_of(matching: Sequence[Counted], every_version: bool) -> Grid:
    """Return how many of the matching specs there are by version and target."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in matching:
        counts[each.configuration.version, each.configuration.target] += each.spec_count
    versions = list(dict.fromkeys(each.configuration.version for each in matching))
    targets = tuple(sorted({each.configuration.target for each in matching}))
    return Grid(
        targets=targets,
        rows=tuple(
            (version, tuple(counts.get((version, target)) for target in targets))
            for version in (versions if every_version else versions[:GRID_ROWS])
        ),
        version_count=len(versions),
    )
