"""The first page: what is here, how much of it, and how to begin."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass

from spack_cache_db.query.examples import Examples, read_examples
from spack_cache_db.query.install import Install, install_example
from spack_cache_db.query.lookups import Lookups, Release
from spack_cache_db.query.open import select
from spack_cache_db.query.origin import Origin, read_origin

TOTALS = """
SELECT
  (SELECT count(*) FROM packages WHERE spec_count > 0),
  (SELECT count(*) FROM specs WHERE release_count > 0),
  (SELECT count(*) FROM configurations WHERE spec_count > 0),
  (SELECT count(*) FROM releases)
"""
TARGETS = "SELECT value, spec_count FROM facet_counts WHERE release IS NULL AND facet = 'targets'"
LARGEST = """
SELECT name, spec_count FROM packages WHERE spec_count > 0 ORDER BY spec_count DESC, name LIMIT 24
"""

KINDS = (
    ("branch", "Branches"),
    ("release", "Releases"),
    ("snapshot", "Snapshots"),
    ("other", "Other"),
)
BARS = 12


@dataclass(frozen=True, slots=True)
class Totals:
    """How much is in the file."""

    packages: int
    specs: int
    configurations: int
    releases: int


@dataclass(frozen=True, slots=True)
class Home:
    """Everything the first page shows."""

    origin: Origin
    examples: Examples | None
    totals: Totals
    kinds: tuple[tuple[str, str, tuple[Release, ...]], ...]
    install: Install | None
    over_time: tuple[tuple[str, int], ...]
    families: tuple[tuple[str, int], ...]
    stacks: tuple[tuple[str, int], ...]
    stack_count: int
    largest: tuple[tuple[str, int], ...]


def load_home(conn: sqlite3.Connection, lookups: Lookups) -> Home:
    """Return the first page."""
    releases = tuple(lookups.releases.values())
    dated = sorted((each.date, each.name, each.spec_count) for each in releases if each.date)
    newest = next((each for each in releases if each.kind == "release"), None)
    newest = newest or next(iter(releases), None)
    stacks = sorted(lookups.stacks.values(), key=lambda each: (-each.spec_count, each.name))
    return Home(
        origin=read_origin(conn),
        examples=read_examples(conn, lookups),
        totals=Totals(*next(select(conn, TOTALS))),
        kinds=tuple(
            (kind, title, tuple(each for each in releases if each.kind == kind))
            for kind, title in KINDS
            if any(each.kind == kind for each in releases)
        ),
        install=install_example(conn, newest.name) if newest else None,
        over_time=tuple((name, count) for _, name, count in dated),
        families=_families(conn, lookups),
        stacks=tuple((each.name, each.spec_count) for each in stacks[:BARS]),
        stack_count=len(stacks),
        largest=tuple((name, count) for name, count in select(conn, LARGEST)),
    )


def _families(conn: sqlite3.Connection, lookups: Lookups) -> tuple[tuple[str, int], ...]:
    counts: Counter[str] = Counter()
    for target, count in select(conn, TARGETS):
        counts[lookups.families.get(target, target)] += count
    return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
