"""What a package's rows can be narrowed to, with counts, and the grid of versions by targets."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from spack_cache_db.site.catalog import Catalog
from spack_cache_db.site.configurations import Configuration
from spack_cache_db.site.filters import Filters

GRID_ROWS = 8

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
class Facet:
    """One filter and the values it can still take, each with its count of configurations."""

    name: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Counts of specs by version and target; `None` where there are none."""

    targets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]
    version_count: int


def facets_of(
    conn: sqlite3.Connection,
    catalog: Catalog,
    filters: Filters,
    matching: Sequence[Configuration],
) -> tuple[Facet, ...]:
    """Return what each filter can still be set to, with the rows that would be left."""
    ids = json.dumps([each.id for each in matching])
    releases = {key: each.name for key, each in catalog.releases.items()}
    stacks = {key: each.name for key, each in catalog.stacks.items()}
    chosen_release, chosen_stack = catalog.release(filters.release), catalog.stack(filters.stack)
    in_stack = {"ids": ids, "stack": chosen_stack.id if chosen_stack else None}
    in_release = {"ids": ids, "release": chosen_release.id if chosen_release else None}
    by_release = conn.execute(RELEASE_COUNTS_IN_STACK if chosen_stack else RELEASE_COUNTS, in_stack)
    by_stack = conn.execute(STACK_COUNTS_IN_RELEASE if chosen_release else STACK_COUNTS, in_release)
    positions = {each.version: -each.position for each in matching}
    variants = Counter(text for each in matching for text in each.variants)
    varying = {text: count for text, count in variants.items() if count < len(matching)}
    facets = (
        Facet("release", _named(by_release, releases)),
        Facet("stack", _named(by_stack, stacks)),
        Facet("version", _counts((each.version for each in matching), positions.__getitem__)),
        Facet("compiler", _counts(each.compiler for each in matching)),
        Facet("os", _counts(each.os for each in matching)),
        Facet("platform", _counts(each.platform for each in matching)),
        Facet("target", _counts(each.target for each in matching)),
        Facet("variant", tuple(sorted(varying.items()))),
    )
    return tuple(each for each in facets if each.values)


def _named(counts: Iterable[tuple[int, int]], names: dict[int, str]) -> tuple[tuple[str, int], ...]:
    found = dict(counts)
    return tuple((name, found[key]) for key, name in names.items() if key in found)


def _counts(
    values: Iterable[str], order: Callable[[str], int | str] = str
) -> tuple[tuple[str, int], ...]:
    counts = Counter(values)
    return tuple((value, counts[value]) for value in sorted(counts, key=order))


def grid_of(matching: Sequence[Configuration], every_version: bool) -> Grid:
    """Count the matching specs by version and target."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in matching:
        counts[each.version, each.target] += each.spec_count
    versions = list(dict.fromkeys(each.version for each in matching))
    targets = tuple(sorted({each.target for each in matching}))
    shown = versions if every_version else versions[:GRID_ROWS]
    return Grid(
        targets=targets,
        rows=tuple(
            (version, tuple(counts.get((version, target)) for target in targets))
            for version in shown
        ),
        version_count=len(versions),
    )
