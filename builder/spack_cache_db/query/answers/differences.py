"""Compares specs of one configuration: their dependencies, recipes and flags.

Between two releases, the differences are the causes of rebuilds. Only indexes and
mirrors have these facts; pages have only configurations.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, groupby
from typing import NamedTuple

from spack_cache_db.database_file import stored_json
from spack_cache_db.model import Configuration
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_in
from spack_cache_db.query.stored.configurations import configurations_by_id
from spack_cache_db.query.stored.graph import Needs, Reach, read_needs, recorded_specs
from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.spack.facts import FLAG_NAMES

COMPARED = tuple(
    name for name in CONFIGURATION if name not in ("package", "version", "variants")
)
"""The columns of a configuration that are compared as one text each."""
RECIPE_HASH_LENGTH = 7
MAX_CACHED_SPECS = 10_000
"""Maximum of specs whose facts a process caches: some 6 MB."""
_SPECS_AT_ONCE = 200
_FORMS = {
    "": "@{}",
    "compiler": " %{}",
    "variants": " {}",
    "flags": " {}",
    "recipe": " recipe {}",
}
"""The text of a part of a spec after its name; other parts are written like
`os=debian12`.
"""
FACTS = """
SELECT specs.id, specs.configuration, nodes.namespace, nodes.package_hash, nodes.parameters
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.id = wanted.value
LEFT JOIN records ON records.spec = specs.id AND records.mirror = (
  SELECT min(mirror) FROM records AS first WHERE first.spec = specs.id)
LEFT JOIN nodes ON nodes.id = records.node
"""
_Rank = tuple[bool, bool, str]
"""Sorts providers of MPI first, then those of other virtual packages; and by name."""


class Change(NamedTuple):
    """A difference in a package between this spec and another one; None if one has no
    value.

    `part` is a part of the package such as `flags`, `provider` of virtual packages, or
    empty for its version or presence.
    """

    what: str
    part: str
    here: str | None
    there: str | None

    def __str__(self) -> str:
        """Return the change as text, such as `openmpi 4.1.6 → 5.0.3`."""
        if self.part:
            return f"{self.what} {self.part} {self.here or 'none'} → {self.there or 'none'}"
        if self.here is None:
            return f"{self.what} {self.there} only there"
        if self.there is None:
            return f"{self.what} {self.here} only here"
        return f"{self.what} {self.here} → {self.there}"


@dataclass(frozen=True, slots=True)
class Differences:
    """The changes of run-time dependencies; of build dependencies if only these differ.

    There are none if only the dependencies' own builds differ.
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
    lookups: Lookups, graph: Needs, this: int, specs: Sequence[int]
) -> dict[int, Differences]:
    """Return the differences between a spec and others that the graph has, by the
    others' ids.
    """
    specs = [other for other in specs if graph.missing.isdisjoint((this, other))]
    reach, provides = Reach(graph), _virtuals(graph)
    sides = {
        other: [
            reach.not_in_all([needs(this), needs(other)])
            for needs in (reach.run_time, reach.used)
        ]
        for other in specs
    }
    facts = read_facts(
        lookups,
        {spec for pairs in sides.values() for pair in pairs for spec in chain(*pair)},
    )

    result = {}
    for other, sets in sides.items():
        run_time, used = (_changes(facts, provides, *pair) for pair in sets)
        changes = tuple(run_time)
        result[other] = Differences(changes or tuple(used), not changes)
    return result


def distinctions(
    lookups: Lookups, groups: Iterable[Sequence[int]], most: int = sys.maxsize
) -> dict[int, tuple[str, ...]]:
    """Return the features that distinguish the specs of each configuration's group, by
    their ids.

    These are run-time dependencies that not all of the group have, such as
    `openmpi@5.0.3`: providers of MPI first, then by rarity. Specs with equal run-time
    dependencies have features such as `built with cmake@3.31.0`. Specs without an index
    record, that are alone in their group, or whose dependencies exceed `most` specs are
    left out.
    """
    result: dict[int, tuple[str, ...]] = {}
    several = [group for group in groups if len(group) > 1]
    # In pieces, because the graph of all specs would be too large for sets of bits.
    ends = accumulate(map(len, several))
    pieces = groupby(
        zip(several, ends, strict=True), lambda pair: pair[1] // _SPECS_AT_ONCE
    )
    for piece in ([group for group, _ in members] for _, members in pieces):
        recorded = {*recorded_specs(lookups.conn, chain.from_iterable(piece))}
        graph = read_needs(lookups, sorted(recorded), most)
        reach, recorded = Reach(graph), recorded - graph.missing
        alike = [[spec for spec in group if spec in recorded] for group in piece]
        # Reads all facts into the cache at once, which is faster than a statement for
        # each group.
        needed = (
            reach.not_in_all([*map(reach.run_time, group)]) for group in alike if group
        )
        read_facts(
            lookups, {spec for only in needed for members in only for spec in members}
        )
        provides = _virtuals(graph)
        for group in alike:
            result |= _distinguished(lookups, reach, provides, group)
    return result


def _distinguished(
    lookups: Lookups,
    reach: Reach,
    provides: Mapping[int, frozenset[str]],
    group: Sequence[int],
) -> dict[int, tuple[str, ...]]:
    """Return the features of the specs of one group (see `distinctions`)."""
    texts_of_spec: dict[int, dict[str, _Rank]] = {spec: {} for spec in group}
    for needs, form in ((reach.run_time, "{}"), (reach.used, "built with {}")):
        same: dict[frozenset[str], list[int]] = {}
        for spec, texts in texts_of_spec.items():
            same.setdefault(frozenset(texts), []).append(spec)
        for alike in same.values():
            if len(alike) > 1:
                only = reach.not_in_all([*map(needs, alike)])
                for spec, texts in zip(
                    alike, _features(lookups, provides, only), strict=True
                ):
                    texts_of_spec[spec] |= {
                        form.format(text): texts[text] for text in texts
                    }
    counts = Counter(text for texts in texts_of_spec.values() for text in texts)

    def ordered(texts: Mapping[str, _Rank]) -> tuple[str, ...]:
        # Providers of MPI first, then the rarest features.
        return tuple(
            sorted(texts, key=lambda text: (texts[text][0], counts[text], texts[text]))
        )

    return {spec: ordered(texts) for spec, texts in texts_of_spec.items()}


def _features(
    lookups: Lookups,
    provides: Mapping[int, frozenset[str]],
    only: Sequence[tuple[int, ...]],
) -> list[dict[str, _Rank]]:
    """Return the features of each spec, given the dependencies that not all specs
    have.
    """
    facts = read_facts(lookups, {spec for specs in only for spec in specs})
    sides = [_by_package(facts, specs) for specs in only]
    packages = {name: specs for side in sides for name, specs in side.items()}
    features: list[dict[str, _Rank]] = [{} for _ in sides]

    def rank(name: str) -> _Rank:
        virtuals = frozenset[str]().union(
            *(provides.get(spec, ()) for spec in packages[name])
        )
        return "mpi" not in virtuals, not virtuals, name

    for name in packages:
        groups = [*{side.get(name, ()) for side in sides}]
        texts = dict.fromkeys(groups, name)
        for part, values in differing(
            [[facts[spec] for spec in group] for group in groups]
        ):
            form = _FORMS.get(part, f" {part}={{}}")
            for group, value in zip(groups, values, strict=True):
                texts[group] += form.format(value or "none")
        for side, ranks in zip(sides, features, strict=True):
            if name in side and texts[side[name]] != name:
                ranks[texts[side[name]]] = rank(name)
    for side, ranks in zip(sides, features, strict=True):
        if not ranks and len(side) < len(packages):
            lacking = min(packages.keys() - side.keys(), key=rank)
            ranks[f"no {lacking}"] = rank(lacking)
    return features


def read_facts(lookups: Lookups, specs: Iterable[int]) -> dict[int, Facts]:
    """Return the facts of specs, from the first mirror that has a record of each."""
    specs, cached = [*specs], lookups.once(Facts, dict[int, Facts])
    if len(cached) > MAX_CACHED_SPECS:
        cached.clear()
    rows = [
        *select_in(lookups.conn, FACTS, [spec for spec in specs if spec not in cached])
    ]
    ids = sorted({configuration for _, configuration, *_ in rows})
    records = zip(ids, configurations_by_id(lookups, ids), strict=True)
    configurations = {key: record.configuration for key, record in records}
    for spec, key, namespace, recipe, parameters in rows:
        flags = _flags(parameters or "{}")
        cached[spec] = Facts(configurations[key], namespace or "", recipe or "", flags)
    return {spec: cached[spec] for spec in specs}


@lru_cache(maxsize=1_000)
def _flags(parameters: str) -> str:
    """Return the compiler flags in a node's parameters, which are JSON, as Spack writes
    them.
    """
    values = stored_json(parameters)
    flags = (
        (name, " ".join(map(str, values.get(name) or ())))
        for name in sorted(FLAG_NAMES)
    )
    return " ".join(f'{name}="{value}"' for name, value in flags if value)


def _changes(
    facts: Mapping[int, Facts],
    provides: Mapping[int, frozenset[str]],
    our_specs: Sequence[int],
    their_specs: Sequence[int],
) -> Iterator[Change]:
    """Yield the changes between two sets of specs, package by package."""
    ours, theirs = _by_package(facts, our_specs), _by_package(facts, their_specs)
    for name in sorted(ours.keys() & theirs.keys()):
        sides = (tuple(facts[spec] for spec in side[name]) for side in (ours, theirs))
        yield from _spec_changes(name, *sides)
    old = {name: ours[name] for name in sorted(ours.keys() - theirs.keys())}
    new = {name: theirs[name] for name in sorted(theirs.keys() - ours.keys())}
    # A package that provides the virtual package of another one replaces it.
    ours_provide, theirs_provide = _provided(provides, old), _provided(provides, new)
    for name, virtuals in ours_provide.items():
        other = next(
            (key for key in theirs_provide if virtuals & theirs_provide[key]), None
        )
        if other is not None:
            common = ", ".join(sorted(virtuals & theirs_provide.pop(other)))
            names = (
                ", ".join(f"{package} {version}" for version in _versions(facts, specs))
                for package, specs in ((name, old.pop(name)), (other, new.pop(other)))
            )
            yield Change(common, "provider", *names)
    for name, specs in old.items():
        yield Change(name, "", ", ".join(_versions(facts, specs)), None)
    for name, specs in new.items():
        yield Change(name, "", None, ", ".join(_versions(facts, specs)))


# Cached, because many specs have the same specs of a package.
@lru_cache(maxsize=1_000)
def _spec_changes(
    name: str, ours: tuple[Facts, ...], theirs: tuple[Facts, ...]
) -> tuple[Change, ...]:
    """Return the changes between specs of one package."""
    return tuple(
        Change(name, part, *sides) for part, sides in differing((ours, theirs))
    )


def differing(
    groups: Sequence[Sequence[Facts]],
) -> Iterator[tuple[str, list[str | None]]]:
    """Yield the parts in which groups of specs of a package differ, with the text of
    each group.

    These are the versions (an empty text), or else other parts without their common
    values.
    """
    versions = [{spec.configuration.version for spec in facts} for facts in groups]
    if any(group != versions[0] for group in versions):
        yield "", [", ".join(sorted(group)) for group in versions]
        return
    parts = [_parts(facts) for facts in groups]
    for part in parts[0]:
        values = [values_of[part] for values_of in parts]
        common = set.intersection(*values)
        if any(value != common for value in values):
            yield part, [" ".join(sorted(value - common)) or None for value in values]


def _parts(facts: Sequence[Facts]) -> dict[str, set[str]]:
    """Return the values of each part of specs, without empty ones."""
    configurations = [spec.configuration for spec in facts]
    parts: dict[str, set[str]] = {
        **{part: {getattr(spec, part) for spec in configurations} for part in COMPARED},
        "variants": {text for spec in configurations for text in spec.variants},
        "flags": {spec.flags for spec in facts},
        "namespace": {spec.namespace for spec in facts},
        "recipe": {spec.recipe[:RECIPE_HASH_LENGTH] for spec in facts},
    }
    return {part: {*filter(None, values)} for part, values in parts.items()}


def _by_package(
    facts: Mapping[int, Facts], specs: Iterable[int]
) -> dict[str, tuple[int, ...]]:
    by_package: dict[str, list[int]] = {}
    for spec in specs:
        by_package.setdefault(facts[spec].configuration.package, []).append(spec)
    return {package: tuple(ids) for package, ids in by_package.items()}


def _provided(
    provides: Mapping[int, frozenset[str]], packages: Mapping[str, Iterable[int]]
) -> dict[str, frozenset[str]]:
    """Return the virtual packages that the specs of each package provide, if any."""
    pairs = (
        (name, frozenset[str]().union(*(provides.get(spec, ()) for spec in specs)))
        for name, specs in packages.items()
    )
    return {name: virtuals for name, virtuals in pairs if virtuals}


def _versions(facts: Mapping[int, Facts], specs: Iterable[int]) -> list[str]:
    return sorted({facts[spec].configuration.version for spec in specs})


def _virtuals(graph: Needs) -> dict[int, frozenset[str]]:
    """Return the virtual packages that specs of the graph provide, by their ids."""
    virtuals = defaultdict[int, frozenset[str]](frozenset)
    for edge in chain.from_iterable(graph.edges.values()):
        if edge.virtuals:
            virtuals[edge.dependency] |= {*edge.virtuals}
    return virtuals
