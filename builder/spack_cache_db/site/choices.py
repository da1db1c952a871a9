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
RELEASE_COUNTS_IN_STACK = """
SELECT listings.release, count(DISTINCT specs.configuration)
FROM specs JOIN listings ON listings.spec = specs.id
JOIN stack_set_members AS member
  ON member.stack_set = listings.stacks AND member.stack = :stack
WHERE specs.configuration IN (SELECT value FROM json_each(:ids)) GROUP BY listings.release
"""
STACK_COUNTS_IN_RELEASE = """
SELECT member.stack, count(DISTINCT specs.configuration)
FROM specs JOIN listings ON listings.spec = specs.id AND listings.release = :release
JOIN stack_set_members AS member ON member.stack_set = listings.stacks
WHERE specs.configuration IN (SELECT value FROM json_each(:ids)) GROUP BY member.stack
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
    conn: sqlite3.Connection, lookups: Lookups, filters: Filters, matching: Sequence[Counted]
) -> tuple[Choice, ...]:
    """Return what each filter can still be set to, with the rows that would be left."""
    return tuple(
        Choice(name, values)
        for name, values in (
            *_places(conn, lookups, filters, [each.id for each in matching]),
            *_parts(matching),
        )
        if values
    )


def _places(
    conn: sqlite3.Connection, lookups: Lookups, filters: Filters, ids: list[int]
) -> Iterator[tuple[str, Values]]:
    """Yield the releases and the stacks of these configurations."""
    release, stack = lookups.release(filters.release), lookups.stack(filters.stack)
    if stack is None:
        by_release = select_in(conn, RELEASE_COUNTS, ids)
    else:
        by_release = select_in(conn, RELEASE_COUNTS_IN_STACK, ids, stack=stack.id)
    if release is None:
        by_stack = select_in(conn, STACK_COUNTS, ids)
    else:
        by_stack = select_in(conn, STACK_COUNTS_IN_RELEASE, ids, release=release.id)
    yield "release", _named(by_release, lookups.releases)
    yield "stack", _named(by_stack, lookups.stacks)


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
    """Count the matching specs by version and target."""
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
