"""Why specs were built again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain, product
from typing import NamedTuple

from spack_cache_db.query.answers.differences import (
    COMPARED,
    Facts,
    differing,
    read_facts,
)
from spack_cache_db.query.open.lookups import Lookups, has_records
from spack_cache_db.query.open.sql import select_in

MOST_PAIRS = 400
"""Maximum of pairs of old and new hashes that are compared for one configuration."""
EDGES = """
SELECT dependencies.spec, configurations.package, dependencies.dependency
FROM json_each(:ids) AS wanted CROSS JOIN dependencies ON dependencies.spec = wanted.value
CROSS JOIN specs ON specs.id = dependencies.dependency
CROSS JOIN configurations ON configurations.id = specs.configuration
"""
Pair = tuple[int, int]
"""The ids of an old spec and of its replacement."""


class Numbering(NamedTuple):
    """Numbers the specs and configurations of two databases; the old one may be
    missing.

    The numbers are ids of the new database. A configuration or a spec of the old
    database that the new one lacks has its negative id; `specs` has the numbers of the
    old database's specs.
    """

    new: Lookups
    old: Lookups | None = None
    specs: Mapping[int, int] = {}

    def parts(self, numbers: Iterable[int]) -> Iterator[tuple[Lookups, int, list[int]]]:
        """Yield each database with the sign of its numbers, and the ids of its
        numbers.
        """
        numbers = [*numbers]
        for lookups, sign in ((self.new, 1), (self.old, -1)):
            ids = [sign * number for number in numbers if sign * number > 0]
            if lookups and ids:
                yield lookups, sign, ids


class Cause(NamedTuple):
    """A cause of rebuilds, and the number of configurations that were rebuilt for it.

    Attributes:
        package: the package that changed: a dependency, or the rebuilt package itself.
        what: `version`, `variants`, another column of a configuration, `recipe`, or
            `dependency` (only one of the two needs it).
        old: the old value; None for recipes and new dependencies.
        new: the new value; None for recipes and dropped dependencies.
    """

    package: str
    what: str
    old: str | None = None
    new: str | None = None
    configurations: int = 0

    def __str__(self) -> str:
        """Return the change as a line: `zlib-ng 2.2.3 → 2.2.4`."""
        if self.what == "recipe":
            return f"{self.package}: its recipe"
        if self.what == "dependency":
            return f"{self.package}: {'no longer needed' if self.new is None else 'now needed'}"
        return f"{self.package} {self.old} → {self.new}"


def causes_of_rebuilds(
    numbering: Numbering,
    old: Mapping[int, Set[int]],
    new: Mapping[int, Set[int]],
    most: int | None = None,
) -> tuple[Cause, ...] | None:
    """Return the causes of rebuilds, the most frequent first.

    Old and new hashes of a configuration are paired by the similarity of their direct
    dependencies. Then dependencies are followed level by level, until one differs in
    more than its hash; deeper changes are ignored. `old` and `new` have the removed and
    the added specs by configuration; the result is None if there are more than `most`.
    """
    if not all(has_records(lookups.conn) for lookups in numbering[:2] if lookups):
        return ()
    specs = [*chain(*old.values(), *new.values())]
    if most is not None and len(specs) > most:
        return None
    graph = _Rebuilds(numbering)
    graph.read(specs)
    ahead = {key: graph.pairs(old[key], new[key]) for key in old}
    counts: Counter[Cause] = Counter()
    visited: dict[int, set[Pair]] = {key: set() for key in ahead}
    while ahead:
        following: dict[int, set[Pair]] = {}
        for key, pairs in ahead.items():
            changes = {change for pair in pairs for change in graph.changes(*pair)}
            if not changes:
                changes = {
                    change for pair in pairs for change in graph.needs_changed(*pair)
                }
            counts.update(changes)
            visited[key] |= pairs
            children = {
                child for pair in pairs for child in graph.children(*pair)
            } - visited[key]
            if children and not changes:
                following[key] = children
        graph.read(
            spec for pairs in following.values() for pair in pairs for spec in pair
        )
        ahead = following
    causes = (cause._replace(configurations=count) for cause, count in counts.items())
    return tuple(
        sorted(
            causes, key=lambda cause: (-cause.configurations, cause.package, str(cause))
        )
    )


class _Rebuilds:
    """Compares rebuilt specs; facts and direct dependencies are read once each."""

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._facts: dict[int, Facts] = {}
        self._edges: dict[int, dict[str, set[int]]] = {}

    def read(self, specs: Iterable[int]) -> None:
        """Read the specs that were not read yet."""
        for lookups, sign, ids in self._numbering.parts({*specs} - self._facts.keys()):
            facts, names = read_facts(lookups, ids), lookups.words["package"]
            self._facts |= {
                sign * spec: spec_facts for spec, spec_facts in facts.items()
            }
            self._edges |= {sign * spec: {} for spec in ids}
            for spec, package, dependency in select_in(lookups.conn, EDGES, ids):
                number = dependency if sign > 0 else self._numbering.specs[dependency]
                self._edges[sign * spec].setdefault(names[package], set()).add(number)

    def pairs(self, old: Set[int], new: Set[int]) -> set[Pair]:
        """Return pairs of old and new specs with the most similar dependencies."""
        candidates = [*product(sorted(old), sorted(new))]
        if len(candidates) > MOST_PAIRS:
            return {*zip(sorted(old), sorted(new), strict=False)}
        before, after = {*old}, {*new}
        chosen = set()
        for pair in sorted(candidates, key=self._distance):
            if pair[0] in before and pair[1] in after:
                chosen.add(pair)
                before.remove(pair[0])
                after.remove(pair[1])
        return chosen

    def _distance(self, pair: Pair) -> tuple[int, int]:
        """Return the numbers of dependencies that only one spec has, and that have
        other hashes.
        """
        old_edges, new_edges = (self._edges[spec] for spec in pair)
        both = old_edges.keys() & new_edges.keys()
        only = len(old_edges.keys() ^ new_edges.keys())
        return only, sum(old_edges[package] != new_edges[package] for package in both)

    def changes(self, old: int, new: int) -> tuple[Cause, ...]:
        """Return the causes in two specs of one package, without their dependencies."""
        was, now = self._facts[old], self._facts[new]
        package = was.configuration.package
        causes = tuple(
            Cause(
                package,
                part or "version",
                old_value or "nothing",
                new_value or "nothing",
            )
            for part, (old_value, new_value) in differing(([was], [now]))
            if part in ("", *COMPARED, "variants")
        )
        is_other_recipe = was.recipe and now.recipe and was.recipe != now.recipe
        return causes or ((Cause(package, "recipe"),) if is_other_recipe else ())

    def needs_changed(self, old: int, new: int) -> Iterator[Cause]:
        """Yield the packages that only one of two specs needs directly."""
        old_edges, new_edges = self._edges[old], self._edges[new]
        for package in old_edges.keys() ^ new_edges.keys():
            sides = ("needed", None) if package in old_edges else (None, "needed")
            yield Cause(package, "dependency", *sides)

    def children(self, old: int, new: int) -> Iterator[Pair]:
        """Yield the direct dependencies of equal packages and other hashes in pairs."""
        old_edges, new_edges = self._edges[old], self._edges[new]
        for package in old_edges.keys() & new_edges.keys():
            before, after = old_edges[package], new_edges[package]
            yield from zip(sorted(before - after), sorted(after - before), strict=False)
