"""Why configurations were rebuilt: the dependencies that changed, the nearest to the root.

Only indexes and mirrors tell of dependencies; of specs from pages alone no cause is known.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import product
from typing import NamedTuple

from spack_cache_db.query.catalogue import configurations_by_id
from spack_cache_db.query.connection import select_in
from spack_cache_db.query.index_records import has_records
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.records import Configuration

MOST_PAIRS = 400
"""A configuration with more pairs of an old and a new hash has them paired in order."""

EDGES = """
SELECT dependencies.spec, configurations.package, dependencies.dependency
FROM json_each(:ids) AS wanted CROSS JOIN dependencies ON dependencies.spec = wanted.value
CROSS JOIN specs ON specs.id = dependencies.dependency
CROSS JOIN configurations ON configurations.id = specs.configuration
"""
RECIPES = """
SELECT specs.id, specs.configuration, nodes.package_hash
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.id = wanted.value
LEFT JOIN records ON records.spec = specs.id AND records.mirror = (
  SELECT min(mirror) FROM records AS first WHERE first.spec = specs.id)
LEFT JOIN nodes ON nodes.id = records.node
"""


class Cause(NamedTuple):
    """What changed, and how many rebuilt configurations have it nearest to their root.

    Attributes:
        package: the package that changed: a dependency, or the rebuilt package itself.
        what: `version`, `variants`, another column of a configuration, `recipe` (the hash of the
            package's recipe), or `dependency` (it is needed by only one of the two).
        old: what it was; None for what was not there, and for recipes.
        new: what it is.
        configurations: how many.
    """

    package: str
    what: str
    old: str | None
    new: str | None
    configurations: int

    def __str__(self) -> str:
        """Return the change as a line: `zlib-ng 2.2.3 → 2.2.4`."""
        if self.what == "recipe":
            return f"{self.package}: its recipe"
        if self.what == "dependency":
            return f"{self.package}: {'no longer needed' if self.new is None else 'now needed'}"
        return f"{self.package} {self.old} → {self.new}"


class _Change(NamedTuple):
    package: str
    what: str
    old: str | None = None
    new: str | None = None


class _Recipe(NamedTuple):
    configuration: int
    package_hash: str | None


Pair = tuple[int, int]
"""The ids of an old spec and of the new one in its place."""


def causes_of_rebuilds(
    conn: sqlite3.Connection,
    lookups: Lookups,
    gone: Mapping[int, Set[int]],
    came: Mapping[int, Set[int]],
    most: int | None = None,
) -> tuple[Cause, ...] | None:
    """Return why configurations were rebuilt, the most frequent cause first.

    Old and new hashes of a configuration are compared in pairs, those first whose direct
    dependencies are most alike. From there dependencies are followed level by level, until one
    differs in more than its hash. What changed further away is not told.

    Args:
        conn: a connection to the file.
        lookups: its small tables.
        gone: the ids of the specs that the new release lacks, by the id of their configuration.
        came: the ids of those that the old release lacks; the same keys.
        most: the result is None where there are more specs than that.
    """
    if not has_records(conn):
        return ()
    specs = [spec for side in (gone, came) for some in side.values() for spec in some]
    if most is not None and len(specs) > most:
        return None
    graph = _Rebuilds(conn, lookups)
    graph.read(specs)
    ahead = {key: graph.pairs(gone[key], came[key]) for key in gone}
    found: Counter[_Change] = Counter()
    seen: dict[int, set[Pair]] = {key: set() for key in ahead}
    compare = graph.recipe_changes
    while ahead:
        following: dict[int, set[Pair]] = {}
        for key, pairs in ahead.items():
            changes = {change for pair in pairs for change in compare(*pair)}
            if not changes:
                changes = {each for pair in pairs for each in graph.needs_changed(*pair)}
            found.update(changes)
            seen[key] |= pairs
            children = {each for pair in pairs for each in graph.children(*pair)} - seen[key]
            if children and not changes:
                following[key] = children
        graph.read(spec for pairs in following.values() for pair in pairs for spec in pair)
        ahead, compare = following, graph.changes
    causes = (Cause(*change, count) for change, count in found.items())
    return tuple(sorted(causes, key=lambda each: (-each.configurations, each.package, str(each))))


class _Rebuilds:
    """Specs, what they are and what they need directly; read from the file once each."""

    def __init__(self, conn: sqlite3.Connection, lookups: Lookups) -> None:
        self._conn, self._lookups = conn, lookups
        self._recipes: dict[int, _Recipe] = {}
        self._edges: dict[int, dict[int, set[int]]] = {}
        self._words: dict[int, Configuration] = {}

    def read(self, specs: Iterable[int]) -> None:
        """Read some specs, those that are not known yet."""
        new = {*specs} - self._recipes.keys()
        for spec, configuration, package_hash in select_in(self._conn, RECIPES, new):
            self._recipes[spec] = _Recipe(configuration, package_hash)
            self._edges[spec] = {}
        for spec, package, dependency in select_in(self._conn, EDGES, new):
            self._edges[spec].setdefault(package, set()).add(dependency)
        unknown = {self._recipes[spec].configuration for spec in new} - self._words.keys()
        counted = configurations_by_id(self._conn, self._lookups, [*unknown])
        self._words.update((each.id, each.configuration) for each in counted)

    def pairs(self, old: Set[int], new: Set[int]) -> set[Pair]:
        """Return old and new specs in pairs, those first whose direct needs are most alike."""
        every = [*product(sorted(old), sorted(new))]
        if len(every) > MOST_PAIRS:
            return {*zip(sorted(old), sorted(new), strict=False)}
        before, after = {*old}, {*new}
        found = set()
        for pair in sorted(every, key=self._distance):
            if pair[0] in before and pair[1] in after:
                found.add(pair)
                before.remove(pair[0])
                after.remove(pair[1])
        return found

    def _distance(self, pair: Pair) -> tuple[int, int]:
        """Return how many packages only one spec needs, and how many with another hash."""
        here, there = (self._edges[spec] for spec in pair)
        both = here.keys() & there.keys()
        only = len(here.keys() ^ there.keys())
        return only, sum(here[package] != there[package] for package in both)

    def changes(self, old: int, new: int) -> tuple[_Change, ...]:
        """Return in what two specs of one package differ, apart from what they need."""
        was, now = self._recipes[old], self._recipes[new]
        if was.configuration != now.configuration:
            return self._differences(was.configuration, now.configuration)
        return self.recipe_changes(old, new)

    def recipe_changes(self, old: int, new: int) -> tuple[_Change, ...]:
        """Return whether two specs of one configuration were built by different recipes."""
        was, now = self._recipes[old], self._recipes[new]
        if was.package_hash and now.package_hash and was.package_hash != now.package_hash:
            return (_Change(self._words[was.configuration].package, "recipe"),)
        return ()

    def needs_changed(self, old: int, new: int) -> Iterator[_Change]:
        """Yield the packages that only one of two specs needs directly."""
        here, there = self._edges[old], self._edges[new]
        for package in here.keys() - there.keys():
            yield _Change(self._name(package), "dependency", "needed", None)
        for package in there.keys() - here.keys():
            yield _Change(self._name(package), "dependency", None, "needed")

    def children(self, old: int, new: int) -> Iterator[Pair]:
        """Yield the direct dependencies of one package that have other hashes in the two specs."""
        here, there = self._edges[old], self._edges[new]
        for package in here.keys() & there.keys():
            gone, came = here[package] - there[package], there[package] - here[package]
            yield from zip(sorted(gone), sorted(came), strict=False)

    def _differences(self, old: int, new: int) -> tuple[_Change, ...]:
        """Return how a dependency's configuration changed; with its version, the rest follows."""
        was, now = self._words[old], self._words[new]
        if was.version != now.version:
            return (_Change(now.package, "version", was.version, now.version),)
        parts = (
            _Change(now.package, field, getattr(was, field), getattr(now, field))
            for field in ("compiler", "os", "platform", "target")
        )
        gone = " ".join(sorted({*was.variants} - {*now.variants}))
        came = " ".join(sorted({*now.variants} - {*was.variants}))
        variants = _Change(now.package, "variants", gone or "nothing", came or "nothing")
        return tuple(each for each in (*parts, variants) if each.old != each.new)

    def _name(self, package: int) -> str:
        name: str = self._lookups.words["package"][package]
        return name
