"""How specs of one configuration differ: in dependencies, recipe and flags.

Between two releases, that is why configurations were rebuilt. Only indexes and mirrors tell of
dependencies; of specs from pages alone nothing is known beyond the configuration.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, groupby, product
from typing import Any, NamedTuple

from spack_cache_db.query.configurations import configurations_by_id
from spack_cache_db.query.database import Lookups, select_in
from spack_cache_db.query.graph import Needs, Reach, read_needs, recorded_specs
from spack_cache_db.query.records import has_records
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION
from spack_cache_db.spack.normal_forms import FLAG_NAMES

COMPARED = tuple(each for each in CONFIGURATION if each not in ("package", "version", "variants"))
"""The columns of a configuration in which specs of one version differ, by one word each."""

SHOWN_OF_HASH = 7
MOST_KEPT = 10_000
"""Number of specs whose facts a process keeps: some 6 MB."""
_SPECS_AT_ONCE = 200
_FORMS = {"compiler": "%{}", "variants": "{}", "flags": "{}", "recipe": "recipe {}"}
"""How a part of a spec is written after its name; others are like `os=debian12`."""

RECORDED = """
SELECT specs.id, specs.configuration, records.node
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.id = wanted.value
LEFT JOIN records ON records.spec = specs.id AND records.mirror = (
  SELECT min(mirror) FROM records AS first WHERE first.spec = specs.id)
"""
NODES = """
SELECT id, namespace, package_hash, parameters FROM nodes
WHERE id IN (SELECT value FROM json_each(:ids))
"""
_Rank = tuple[bool, bool, str]
"""Lower for what provides MPI, then for what provides another virtual package; and the name."""
MOST_PAIRS = 400
"""A configuration with more pairs of an old and a new hash has them paired in order."""
EDGES = """
SELECT dependencies.spec, configurations.package, dependencies.dependency
FROM json_each(:ids) AS wanted CROSS JOIN dependencies ON dependencies.spec = wanted.value
CROSS JOIN specs ON specs.id = dependencies.dependency
CROSS JOIN configurations ON configurations.id = specs.configuration
"""
Pair = tuple[int, int]
"""The ids of an old spec and of the new one in its place."""


class Change(NamedTuple):
    """One thing in which another spec differs from this one.

    Attributes:
        what: a package, or the virtual packages that another package provides there.
        part: what of it, such as `flags`; empty for its version, and for all of it.
        here: what this spec has; None for nothing.
        there: what the other one has; None for nothing.
    """

    what: str
    part: str
    here: str | None
    there: str | None

    def __str__(self) -> str:
        """Return it in words, such as `openmpi 4.1.6 → 5.0.3`."""
        if self.part:
            return f"{self.what} {self.part} {self.here or 'none'} → {self.there or 'none'}"
        if self.here is None:
            return f"{self.what} {self.there} only there"
        if self.there is None:
            return f"{self.what} {self.here} only here"
        return f"{self.what} {self.here} → {self.there}"


@dataclass(frozen=True, slots=True)
class Differences:
    """In what another spec differs from this one.

    Attributes:
        changes: in what is needed to run; else, if `is_build_only`, in what is needed to be built.
            None at all where only what the dependencies were built with differs.
    """

    changes: tuple[Change, ...]
    is_build_only: bool


class Facts(NamedTuple):
    """The properties of a spec apart from its dependencies."""

    configuration: Configuration
    namespace: str
    recipe: str
    flags: str


def differences(
    lookups: Lookups, graph: Needs, this: int, others: Sequence[int]
) -> dict[int, Differences]:
    """Return in what other specs differ from this one, by their ids.

    Those that the graph misses are left out, and all if it misses this one.
    """
    others = [each for each in others if each not in graph.missing and this not in graph.missing]
    reach, provides = Reach(graph), _virtuals(graph)
    sides = {
        each: [
            reach.not_in_all([needs(this), needs(each)]) for needs in (reach.run_time, reach.used)
        ]
        for each in others
    }
    facts = read_facts(lookups, {x for two in sides.values() for pair in two for x in chain(*pair)})

    @cache
    def of_package(name: str, here: tuple[int, ...], there: tuple[int, ...]) -> list[Change]:
        # Many of the others need the same of a package.
        return [*_of_package(name, [facts[x] for x in here], [facts[y] for y in there])]

    found = {}
    for each, two in sides.items():
        run_time, used = (_changes(facts, provides, of_package, *pair) for pair in two)
        changes = tuple(run_time)
        found[each] = Differences(changes or tuple(used), not changes)
    return found


def distinctions(
    lookups: Lookups, groups: Iterable[Sequence[int]], most: int = sys.maxsize
) -> dict[int, tuple[str, ...]]:
    """Return how the specs of each group differ from each other, by their ids.

    Args:
        groups: the ids of specs that share a configuration.
        most: when so many specs have been read, those that need more are left out.

    Returns:
        The dependencies that not all of the group need to run, such as `openmpi@5.0.3`: providers
        of MPI first, then those that the fewest specs have. Specs that need the same to run differ
        in what built them: `built with cmake@3.31.0`. Specs without an index record are left out,
        and those that are alone in their group.
    """
    found: dict[int, tuple[str, ...]] = {}
    several = [group for group in groups if len(group) > 1]
    # The graph of all of them would be too large for sets of bits.
    ends = accumulate(map(len, several))
    pieces = groupby(zip(several, ends, strict=True), lambda each: each[1] // _SPECS_AT_ONCE)
    for piece in ([group for group, _ in some] for _, some in pieces):
        recorded = {*recorded_specs(lookups.conn, chain.from_iterable(piece))}
        graph = read_needs(lookups, sorted(recorded), most)
        reach, recorded = Reach(graph), recorded - graph.missing
        alike = [[spec for spec in group if spec in recorded] for group in piece]
        # All at once: a statement for each group would take longer. They are kept.
        needed = (reach.not_in_all([*map(reach.run_time, group)]) for group in alike if group)
        read_facts(lookups, {spec for only in needed for some in only for spec in some})
        known = _Group(lookups, reach, _virtuals(graph))
        for group in alike:
            found |= known.distinguished(group)
    return found


class _Group:
    """Compares specs that share a configuration."""

    def __init__(
        self, lookups: Lookups, reach: Reach, provides: Mapping[int, frozenset[str]]
    ) -> None:
        self._lookups, self._reach, self._provides = lookups, reach, provides

    def distinguished(self, group: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Return how the specs of one group differ (see `distinctions`)."""
        found: dict[int, dict[str, _Rank]] = {spec: {} for spec in group}
        for needs, form in ((self._reach.run_time, "{}"), (self._reach.used, "built with {}")):
            same: dict[frozenset[str], list[int]] = {}
            for spec, texts in found.items():
                same.setdefault(frozenset(texts), []).append(spec)
            for alike in same.values():
                if len(alike) > 1:
                    only = self._reach.not_in_all([*map(needs, alike)])
                    for spec, texts in zip(alike, self._texts(only), strict=True):
                        found[spec] |= {form.format(text): rank for text, rank in texts.items()}
        counts = Counter(text for texts in found.values() for text in texts)

        def ordered(texts: Mapping[str, _Rank]) -> tuple[str, ...]:
            # What provides MPI comes first, then what the fewest have.
            return tuple(
                sorted(texts, key=lambda text: (texts[text][0], counts[text], texts[text]))
            )

        return {spec: ordered(texts) for spec, texts in found.items()}

    def _texts(self, only: Sequence[tuple[int, ...]]) -> Iterator[dict[str, _Rank]]:
        """Yield what to say of each of some specs, given what not all of them need."""
        facts = read_facts(self._lookups, {spec for specs in only for spec in specs})
        sides = [_by_package(facts, specs) for specs in only]
        names = {name: specs for side in sides for name, specs in side.items()}
        ranks = {name: self._rank(name, specs) for name, specs in names.items()}
        apart = {
            name: _apart(name, facts, {side.get(name, ()) for side in sides}) for name in names
        }
        for side in sides:
            texts = {
                apart[name][specs]: ranks[name]
                for name, specs in side.items()
                if specs in apart[name]
            }
            if not texts and len(side) < len(names):
                lacking = min(names.keys() - side.keys(), key=ranks.__getitem__)
                texts = {f"no {lacking}": ranks[lacking]}
            yield texts

    def _rank(self, name: str, specs: Iterable[int]) -> _Rank:
        virtuals = frozenset[str]().union(*(self._provides.get(each, ()) for each in specs))
        return "mpi" not in virtuals, not virtuals, name


def _apart(
    name: str, facts: Mapping[int, Facts], groups: Set[tuple[int, ...]]
) -> dict[tuple[int, ...], str]:
    """Return as what groups of specs of one package differ from each other, if they do."""
    of = {group: [facts[each] for each in group] for group in groups}
    versions = {group: _versions(each) for group, each in of.items()}
    if len({*versions.values()}) > 1:
        return {group: f"{name}@{text}" for group, text in versions.items()}
    parts = {group: _parts(each) for group, each in of.items()}
    texts: dict[tuple[int, ...], list[str]] = {group: [] for group in groups}
    for part in parts[next(iter(groups))]:
        values = {group: each[part] for group, each in parts.items()}
        common = set.intersection(*values.values())
        for group, own in values.items() if any(each != common for each in values.values()) else ():
            form = _FORMS.get(part, f"{part}={{}}")
            texts[group].append(form.format(_joined(own - common) or "none"))
    return {group: f"{name} {' '.join(each)}" for group, each in texts.items() if each}


def read_facts(lookups: Lookups, specs: Iterable[int]) -> dict[int, Facts]:
    """Return the facts of specs, from the first mirror that has a record of each."""
    specs, known = [*specs], lookups.once(Facts, dict[int, Facts])
    if len(known) > MOST_KEPT:
        known.clear()
    rows = [*select_in(lookups.conn, RECORDED, [each for each in specs if each not in known])]
    wanted = sorted({configuration for _, configuration, _ in rows})
    found = zip(wanted, configurations_by_id(lookups, wanted), strict=True)
    configurations = {key: each.configuration for key, each in found}
    nodes = {
        key: (namespace, package_hash or "", _flags(json.loads(parameters)))
        for key, namespace, package_hash, parameters in select_in(
            lookups.conn, NODES, {node for *_, node in rows if node is not None}
        )
    }
    for spec, configuration, node in rows:
        known[spec] = Facts(configurations[configuration], *nodes.get(node, ("", "", "")))
    return {spec: known[spec] for spec in specs}


def _flags(parameters: Mapping[str, Any]) -> str:
    """Return the compiler flags of a node's parameters as Spack writes them."""
    flags = ((name, " ".join(map(str, parameters.get(name) or ()))) for name in sorted(FLAG_NAMES))
    return " ".join(f'{name}="{value}"' for name, value in flags if value)


def _changes(
    facts: Mapping[int, Facts],
    provides: Mapping[int, frozenset[str]],
    of_package: Callable[[str, tuple[int, ...], tuple[int, ...]], list[Change]],
    here: Sequence[int],
    there: Sequence[int],
) -> Iterator[Change]:
    """Yield in what two sets of specs differ, package by package."""
    ours, theirs = _by_package(facts, here), _by_package(facts, there)
    gone = {name: ours[name] for name in sorted(ours.keys() - theirs.keys())}
    come = {name: theirs[name] for name in sorted(theirs.keys() - ours.keys())}
    for name in sorted(ours.keys() & theirs.keys()):
        yield from of_package(name, ours[name], theirs[name])

    def named(specs: Iterable[int]) -> str:
        words = (facts[each].configuration for each in specs)
        return ", ".join(sorted({f"{each.package} {each.version}" for each in words}))

    # Few packages provide something, and each would be compared with each.
    ours_provide, theirs_provide = _provided(provides, gone), _provided(provides, come)
    for name, virtuals in ours_provide.items():
        other = next((each for each in theirs_provide if virtuals & theirs_provide[each]), None)
        if other is not None:
            common = ", ".join(sorted(virtuals & theirs_provide.pop(other)))
            yield Change(common, "provider", named(gone.pop(name)), named(come.pop(other)))
    for name, specs in gone.items():
        yield Change(name, "", _versions(facts[each] for each in specs), None)
    for name, specs in come.items():
        yield Change(name, "", None, _versions(facts[each] for each in specs))


def _of_package(name: str, here: Sequence[Facts], there: Sequence[Facts]) -> Iterator[Change]:
    """Yield in what specs of one package differ: their versions, or else what they are made of."""
    if _versions(here) != _versions(there):
        yield Change(name, "", _versions(here), _versions(there))
        return
    ours, theirs = _parts(here), _parts(there)
    for part in ours:
        # Of variants, which are many, those that differ.
        common = ours[part] & theirs[part] if part == "variants" else set()
        if ours[part] != theirs[part]:
            yield Change(name, part, _joined(ours[part] - common), _joined(theirs[part] - common))


def _parts(facts: Sequence[Facts]) -> dict[str, set[str]]:
    """Return the values of each part of some specs; no value where there is none."""
    found: dict[str, set[str]] = {
        part: {getattr(each.configuration, part) for each in facts} for part in COMPARED
    }
    found["variants"] = {text for each in facts for text in each.configuration.variants}
    found["flags"], found["namespace"] = (
        {getattr(each, part) for each in facts} for part in ("flags", "namespace")
    )
    found["recipe"] = {each.recipe[:SHOWN_OF_HASH] for each in facts}
    return {part: {*filter(None, values)} for part, values in found.items()}


def _by_package(facts: Mapping[int, Facts], specs: Iterable[int]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for spec in specs:
        found.setdefault(facts[spec].configuration.package, []).append(spec)
    return {package: tuple(some) for package, some in found.items()}


def _provided(
    provides: Mapping[int, frozenset[str]], packages: Mapping[str, Iterable[int]]
) -> dict[str, frozenset[str]]:
    """Return for which virtual packages the specs of each package are used, where they are."""
    found = {
        name: frozenset().union(*(provides[each] for each in specs if each in provides))
        for name, specs in packages.items()
    }
    return {name: virtuals for name, virtuals in found.items() if virtuals}


def _versions(facts: Iterable[Facts]) -> str:
    return ", ".join(sorted({each.configuration.version for each in facts}))


def _joined(texts: Iterable[str]) -> str | None:
    return " ".join(sorted(texts)) or None


def _virtuals(graph: Needs) -> dict[int, frozenset[str]]:
    """Return for which virtual packages each spec of the graph is used."""
    found: dict[int, frozenset[str]] = {}
    for edges in graph.edges.values():
        for edge in edges:
            if edge.virtuals:
                known = found.get(edge.dependency, frozenset())
                found[edge.dependency] = known.union(edge.virtuals)
    return found


class Numbering(NamedTuple):
    """The specs and configurations of a database, or of two, by one number for each.

    Attributes:
        new: the database whose ids are the numbers.
        old: an older database; what only this one has, has its negative id as its number.
        specs: the numbers of its specs, by their ids.
    """

    new: Lookups
    old: Lookups | None = None
    specs: Mapping[int, int] = {}

    def parts(self, numbers: Iterable[int]) -> Iterator[tuple[Lookups, int, list[int]]]:
        """Yield each database, the sign of its numbers, and its ids among some numbers."""
        numbers = [*numbers]
        for lookups, sign in ((self.new, 1), (self.old, -1)):
            ids = [sign * number for number in numbers if sign * number > 0]
            if lookups and ids:
                yield lookups, sign, ids


class Cause(NamedTuple):
    """A change, and how many rebuilt configurations have it nearest to their root.

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
    gone: Mapping[int, Set[int]],
    came: Mapping[int, Set[int]],
    most: int | None = None,
) -> tuple[Cause, ...] | None:
    """Return why configurations were rebuilt, the most frequent cause first.

    Old and new hashes of a configuration are compared in pairs, those first whose direct
    dependencies are most alike. From there dependencies are followed level by level, until one
    differs in more than its hash. Changes further away are ignored.

    Args:
        numbering: the database, or two.
        gone: the specs that the new release lacks, by their configuration.
        came: those that the old release lacks; the same keys.
        most: the result is None where there are more specs than that.
    """
    if not all(has_records(lookups.conn) for lookups in numbering[:2] if lookups):
        return ()
    specs = [spec for side in (gone, came) for some in side.values() for spec in some]
    if most is not None and len(specs) > most:
        return None
    graph = _Rebuilds(numbering)
    graph.read(specs)
    ahead = {key: graph.pairs(gone[key], came[key]) for key in gone}
    found: Counter[Cause] = Counter()
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
    causes = (cause._replace(configurations=count) for cause, count in found.items())
    return tuple(sorted(causes, key=lambda each: (-each.configurations, each.package, str(each))))


class _Rebuilds:
    """Specs, what they are and what they need directly; read from the file once each."""

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._facts: dict[int, Facts] = {}
        self._edges: dict[int, dict[str, set[int]]] = {}

    def read(self, specs: Iterable[int]) -> None:
        """Read some specs, those that are not known yet."""
        for lookups, sign, ids in self._numbering.parts({*specs} - self._facts.keys()):
            facts, names = read_facts(lookups, ids), lookups.words["package"]
            self._facts |= {sign * spec: each for spec, each in facts.items()}
            self._edges |= {sign * spec: {} for spec in ids}
            for spec, package, dependency in select_in(lookups.conn, EDGES, ids):
                number = dependency if sign > 0 else self._numbering.specs[dependency]
                self._edges[sign * spec].setdefault(names[package], set()).add(number)

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

    def changes(self, old: int, new: int) -> tuple[Cause, ...]:
        """Return in what two specs of one package differ, apart from what they need."""
        was, now = self._facts[old], self._facts[new]
        found = _of_package(was.configuration.package, [was], [now])
        changes = (each for each in found if each.part in ("", *COMPARED, "variants"))
        causes = tuple(
            Cause(package, part or "version", here or "nothing", there or "nothing")
            for package, part, here, there in changes
        )
        return causes or self.recipe_changes(old, new)

    def recipe_changes(self, old: int, new: int) -> tuple[Cause, ...]:
        """Return whether two specs of one configuration were built by different recipes."""
        was, now = self._facts[old], self._facts[new]
        is_other = was.recipe and now.recipe and was.recipe != now.recipe
        return (Cause(was.configuration.package, "recipe"),) if is_other else ()

    def needs_changed(self, old: int, new: int) -> Iterator[Cause]:
        """Yield the packages that only one of two specs needs directly."""
        here, there = self._edges[old], self._edges[new]
        for package in here.keys() - there.keys():
            yield Cause(package, "dependency", "needed", None)
        for package in there.keys() - here.keys():
            yield Cause(package, "dependency", None, "needed")

    def children(self, old: int, new: int) -> Iterator[Pair]:
        """Yield the direct dependencies of one package that have other hashes in the two specs."""
        here, there = self._edges[old], self._edges[new]
        for package in here.keys() & there.keys():
            gone, came = here[package] - there[package], there[package] - here[package]
            yield from zip(sorted(gone), sorted(came), strict=False)
