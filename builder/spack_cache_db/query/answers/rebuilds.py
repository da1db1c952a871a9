"""Why specs were built again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from spack_cache_db.query.answers.differences import (
    COMPARED,
    Facts,
    differing,
    read_facts,
)
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_in

MOST_PAIRS = 400
"""Maximum of pairs of old and new hashes that are compared for one configuration."""

EDGES = """
SELECT dependencies.spec_id, configurations.package_id, dependencies.dependency_id
FROM json_each(:ids) AS wanted CROSS JOIN dependencies ON dependencies.spec_id = wanted.value
CROSS JOIN specs ON specs.id = dependencies.dependency_id
CROSS JOIN configurations ON configurations.id = specs.configuration_id
"""
_VERSION = ""
"""What `differing` calls the version."""
_CAUSING_PARTS = (_VERSION, *COMPARED, "variants")
"""The parts of a spec (see `differing`) whose change is the cause of a rebuild."""


class Pair(NamedTuple):
    """The numbers of an old spec and of its replacement (see `Numbering`)."""

    old: int
    new: int


class Numbering(NamedTuple):
    """Numbers the specs and configurations of two databases; `old` is None if the old
    release is in the new database too.

    The numbers are ids of the new database. A configuration or a spec of the old
    database that the new one lacks has its negative id; `specs` has the numbers of the
    old database's specs.
    """

    new: Lookups
    old: Lookups | None = None
    specs: Mapping[int, int] = {}

    @property
    def databases(self) -> list[Lookups]:
        """The new database, and the old one if it is another file."""
        return [self.new] if self.old is None else [self.new, self.old]

    def parts(self, numbers: Iterable[int]) -> Iterator[tuple[Lookups, int, list[int]]]:
        """Yield each database that has some of the numbers, their sign, and their ids.

        For example 3 and -5 are id 3 of the new database and id 5 of the old one.
        """
        new_ids = []
        old_ids = []
        for number in numbers:
            if number > 0:
                new_ids.append(number)
            else:
                old_ids.append(-number)
        if new_ids:
            yield self.new, 1, new_ids
        if old_ids and self.old is not None:
            yield self.old, -1, old_ids


class Cause(NamedTuple):
    """A cause of rebuilds, and the number of configurations that were rebuilt for it.

    Attributes:
        package: the package that changed: a dependency, or the rebuilt package itself.
        what: `version`, `variants`, another column of a configuration, `recipe`, or
            `dependency` (only one of the two needs it).
        old: the old value, or `needed` for a dropped dependency; None for recipes and
            new dependencies.
        new: the new value, or `needed` for a new dependency; None for recipes and
            dropped dependencies.
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
            change = "no longer needed" if self.new is None else "now needed"
            return f"{self.package}: {change}"
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
    more than its hash; deeper changes are ignored.

    Args:
        old: the removed specs of each rebuilt configuration.
        new: the added specs of each; the same keys.
        most: None is returned for more specs than this.
    """
    specs: list[int] = []
    for specs_of_configuration in (*old.values(), *new.values()):
        specs += specs_of_configuration
    if most is not None and len(specs) > most:
        return None

    rebuilds = _Rebuilds(numbering)
    rebuilds.read(specs)
    level = {}
    for configuration in old:
        pairs = rebuilds.pairs(old[configuration], new[configuration])
        level[configuration] = pairs

    # Each level has the dependencies of the level before. It is read at once.
    configurations_of_cause: Counter[Cause] = Counter()
    compared: dict[int, set[Pair]] = {configuration: set() for configuration in level}
    while level:
        next_level = {}
        for configuration, pairs in level.items():
            compared[configuration] |= pairs
            causes = rebuilds.causes(pairs)
            configurations_of_cause.update(causes)
            dependencies = rebuilds.dependencies(pairs) - compared[configuration]
            if dependencies and not causes:
                next_level[configuration] = dependencies
        rebuilds.read(_specs(next_level.values()))
        level = next_level

    result = [
        cause._replace(configurations=count)
        for cause, count in configurations_of_cause.items()
    ]
    result.sort(key=lambda cause: (-cause.configurations, cause.package, str(cause)))
    return tuple(result)


def _specs(sets: Iterable[Set[Pair]]) -> Iterator[int]:
    for pairs in sets:
        for pair in pairs:
            yield from pair


class _Rebuilds:
    """Compares rebuilt specs; facts and direct dependencies are read once each."""

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._facts: dict[int, Facts] = {}
        # The direct dependencies of each spec, by package.
        self._edges: dict[int, dict[str, set[int]]] = {}

    def read(self, specs: Iterable[int]) -> None:
        """Read the specs that were not read yet."""
        unread = set(specs) - self._facts.keys()
        for lookups, sign, ids in self._numbering.parts(unread):
            for spec, facts in read_facts(lookups, ids).items():
                self._facts[sign * spec] = facts
            for spec in ids:
                self._edges[sign * spec] = {}
            package_names = lookups.words["package"]
            for spec, package, dependency in select_in(lookups.conn, EDGES, ids):
                is_old = sign < 0
                number = self._numbering.specs[dependency] if is_old else dependency
                edges = self._edges[sign * spec]
                edges.setdefault(package_names[package], set()).add(number)

    def pairs(self, old: Set[int], new: Set[int]) -> set[Pair]:
        """Return pairs of old and new specs with the most similar dependencies.

        Specs without a partner are left out.
        """
        if len(old) * len(new) > MOST_PAIRS:
            pairs = zip(sorted(old), sorted(new), strict=False)
            return {Pair(*pair) for pair in pairs}
        candidates = [
            Pair(old_spec, new_spec)
            for old_spec in sorted(old)
            for new_spec in sorted(new)
        ]
        candidates.sort(key=self._distance)
        # The most similar pair first; each spec is in one pair at most.
        chosen: set[Pair] = set()
        paired_old = set()
        paired_new = set()
        for pair in candidates:
            if pair.old not in paired_old and pair.new not in paired_new:
                chosen.add(pair)
                paired_old.add(pair.old)
                paired_new.add(pair.new)
        return chosen

    def _distance(self, pair: Pair) -> tuple[int, int]:
        """Return how many dependencies only one spec has, and how many have other
        hashes.
        """
        old_edges = self._edges[pair.old]
        new_edges = self._edges[pair.new]
        in_one = old_edges.keys() ^ new_edges.keys()
        in_both = old_edges.keys() & new_edges.keys()
        other_hashes = [
            package for package in in_both if old_edges[package] != new_edges[package]
        ]
        return len(in_one), len(other_hashes)

    def causes(self, pairs: Iterable[Pair]) -> set[Cause]:
        """Return the causes in the specs themselves, or else in what they need."""
        causes = set()
        for pair in pairs:
            causes |= self._changes(pair)
        if causes:
            return causes
        for pair in pairs:
            causes |= self._changed_needs(pair)
        return causes

    def _changes(self, pair: Pair) -> set[Cause]:
        """Return the causes in two specs of one package, without their dependencies."""
        old = self._facts[pair.old]
        new = self._facts[pair.new]
        package = old.configuration.package
        causes = set()
        # A difference has a text for each side; it is empty if the side has none.
        for part, (old_value, new_value) in differing(([old], [new])):
            if part not in _CAUSING_PARTS:
                continue
            cause = Cause(
                package=package,
                what=part or "version",
                old=old_value or "nothing",
                new=new_value or "nothing",
            )
            causes.add(cause)
        # Every new version changes the recipe: it is a cause only if nothing else is.
        has_recipes = old.recipe and new.recipe
        if not causes and has_recipes and old.recipe != new.recipe:
            causes.add(Cause(package, "recipe"))
        return causes

    def _changed_needs(self, pair: Pair) -> set[Cause]:
        """Return the packages that only one of two specs needs directly."""
        old_packages = self._edges[pair.old].keys()
        new_packages = self._edges[pair.new].keys()
        causes = set()
        for package in old_packages - new_packages:
            causes.add(Cause(package, "dependency", old="needed"))
        for package in new_packages - old_packages:
            causes.add(Cause(package, "dependency", new="needed"))
        return causes

    def dependencies(self, pairs: Iterable[Pair]) -> set[Pair]:
        """Return the pairs of direct dependencies that are of one package and differ in
        hash; specs without a partner are left out.
        """
        result = set()
        for pair in pairs:
            old_edges = self._edges[pair.old]
            new_edges = self._edges[pair.new]
            for package in old_edges.keys() & new_edges.keys():
                old_specs = sorted(old_edges[package] - new_edges[package])
                new_specs = sorted(new_edges[package] - old_edges[package])
                for old, new in zip(old_specs, new_specs, strict=False):
                    result.add(Pair(old, new))
        return result
