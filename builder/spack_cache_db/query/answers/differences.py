"""Compares specs of one configuration: their dependencies, recipes and flags.

Between two releases, the differences are the causes of rebuilds. Only indexes and
mirrors have these facts; pages have only configurations.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from spack_cache_db.database_damage import stored_json
from spack_cache_db.model import Configuration
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_in
from spack_cache_db.query.stored.configurations import configurations_by_id
from spack_cache_db.query.stored.graph import Needs, read_needs, recorded_specs
from spack_cache_db.query.stored.reach import Reach
from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.spack.facts import FLAG_NAMES

COMPARED = tuple(
    name for name in CONFIGURATION if name not in ("package", "version", "variants")
)
"""The columns of a configuration that are compared as one text each."""
RECIPE_HASH_LENGTH = 7
"""Characters of the hash of a recipe that are shown."""
MAX_CACHED_SPECS = 10_000
"""Maximum of specs whose facts a process caches: some 6 MB."""
_SPECS_AT_ONCE = 200
"""Number of specs whose dependencies are read into one graph: that of all specs would
be too large.
"""
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
SELECT specs.id, specs.configuration_id, nodes.namespace, nodes.package_hash, nodes.parameters
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.id = wanted.value
LEFT JOIN record_ranges AS records
  ON records.spec_id = specs.id AND records.first_mirror_id = (
    SELECT min(first_mirror_id) FROM record_ranges AS first WHERE first.spec_id = specs.id)
LEFT JOIN nodes ON nodes.id = records.node_id
"""
"""The facts of specs, by the record of the first mirror that has one. A spec without a
record has a configuration only.
"""


class _Rank(IntEnum):
    """Which differing dependencies are named first."""

    MPI = 0
    VIRTUAL = 1
    """Provides another virtual package, such as `blas`."""
    OTHER = 2


class _Feature(NamedTuple):
    """A feature such as `openmpi@5.0.3`; features of lower rank are named first."""

    rank: _Rank
    package: str
    text: str


class Change(NamedTuple):
    """A difference between the dependencies of this spec and of another one.

    Attributes:
        what: the package that differs; or virtual packages, such as `mpi`, which
            different packages provide.
        part: the part of the package, such as `flags`; empty for its version or
            presence; `provider` for virtual packages.
        here: the value of this spec; None if it has none.
        there: the value of the other one; None if it has none.
    """

    what: str
    part: str
    here: str | None
    there: str | None

    def __str__(self) -> str:
        """Return the change as text, such as `openmpi 4.1.6 → 5.0.3`."""
        if self.part:
            values = f"{self.here or 'none'} → {self.there or 'none'}"
            return f"{self.what} {self.part} {values}"
        if self.here is None:
            return f"{self.what} {self.there} only there"
        if self.there is None:
            return f"{self.what} {self.here} only here"
        return f"{self.what} {self.here} → {self.there}"


@dataclass(frozen=True, slots=True)
class Differences:
    """The changes of run-time dependencies; of build dependencies if only these differ.

    There are none if both specs need the same, and only the builds of what they need
    differ.
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
    # A spec with too many dependencies for the graph is not compared.
    known: list[int] = []
    if this not in graph.missing:
        known = [other for other in specs if other not in graph.missing]
    reach = Reach(graph)
    provided = _provided_virtuals(graph)

    # The dependencies that only this spec has, and those that only the other one has:
    # at run time, and with all that was used to build them.
    run_time = {}
    used = {}
    needed: set[int] = set()
    for other in known:
        run_time_sets = [reach.run_time(this), reach.run_time(other)]
        run_time[other] = reach.not_in_all(run_time_sets)
        used_sets = [reach.used(this), reach.used(other)]
        used[other] = reach.not_in_all(used_sets)
        needed.update(*run_time[other], *used[other])
    facts = read_facts(lookups, needed)

    result = {}
    for other in known:
        ours, theirs = run_time[other]
        changes = tuple(_changes(facts, provided, ours, theirs))
        is_build_only = not changes
        if is_build_only:
            ours, theirs = used[other]
            changes = tuple(_changes(facts, provided, ours, theirs))
        result[other] = Differences(changes, is_build_only)
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
    for piece in _pieces(groups):
        specs = [spec for group in piece for spec in group]
        recorded = set(recorded_specs(lookups.conn, specs))
        graph = read_needs(lookups, sorted(recorded), most)
        reach = Reach(graph)
        known = recorded - graph.missing
        known_groups = []
        for group in piece:
            known_groups.append([spec for spec in group if spec in known])
        # Reading all facts into the cache at once is faster than a statement for each
        # group.
        needed: set[int] = set()
        for group in known_groups:
            if group:
                sets = [reach.run_time(spec) for spec in group]
                needed.update(*reach.not_in_all(sets))
        read_facts(lookups, needed)
        provided = _provided_virtuals(graph)
        for group in known_groups:
            result |= _features_of_group(lookups, reach, provided, group)
    return result


def _pieces(groups: Iterable[Sequence[int]]) -> Iterator[list[Sequence[int]]]:
    """Yield the groups of two or more specs in pieces of about `_SPECS_AT_ONCE` specs.

    A new piece begins where the number of all specs passes a multiple of this.
    """
    piece: list[Sequence[int]] = []
    spec_count = 0
    for group in groups:
        if len(group) < 2:
            continue
        multiple_before = spec_count // _SPECS_AT_ONCE
        spec_count += len(group)
        multiple = spec_count // _SPECS_AT_ONCE
        if piece and multiple > multiple_before:
            yield piece
            piece = []
        piece.append(group)
    if piece:
        yield piece


def _features_of_group(
    lookups: Lookups,
    reach: Reach,
    provided: Mapping[int, frozenset[str]],
    group: Sequence[int],
) -> dict[int, tuple[str, ...]]:
    """Return the features of the specs of one group (see `distinctions`)."""
    features: dict[int, dict[str, _Feature]] = {spec: {} for spec in group}
    # First the run-time dependencies. If these do not distinguish some specs, then also
    # what was used to build them.
    for dependencies, prefix in ((reach.run_time, ""), (reach.used, "built with ")):
        for alike in _alike(features):
            sets = [dependencies(spec) for spec in alike]
            not_in_all = reach.not_in_all(sets)
            found = _features(lookups, provided, not_in_all)
            for spec, features_of_spec in zip(alike, found, strict=True):
                for feature in features_of_spec:
                    text = prefix + feature.text
                    features[spec][text] = feature

    # Providers of MPI first, then the rarest features.
    counts = Counter(text for texts in features.values() for text in texts)

    def order(item: tuple[str, _Feature]) -> tuple[bool, int, _Rank, str]:
        text, feature = item
        is_mpi = feature.rank is _Rank.MPI
        return not is_mpi, counts[text], feature.rank, feature.package

    result = {}
    for spec, feature_of_text in features.items():
        ordered = sorted(feature_of_text.items(), key=order)
        result[spec] = tuple(text for text, _ in ordered)
    return result


def _alike(features: Mapping[int, Mapping[str, object]]) -> list[list[int]]:
    """Return the lists of two or more specs that have the same features so far."""
    specs_with: dict[frozenset[str], list[int]] = {}
    for spec, texts in features.items():
        specs_with.setdefault(frozenset(texts), []).append(spec)
    return [specs for specs in specs_with.values() if len(specs) > 1]


def _features(
    lookups: Lookups,
    provided: Mapping[int, frozenset[str]],
    not_in_all: Sequence[tuple[int, ...]],
) -> list[list[_Feature]]:
    """Return the features of each spec, given those of its dependencies that not all
    specs have.
    """
    needed: set[int] = set()
    needed.update(*not_in_all)
    facts = read_facts(lookups, needed)
    # Each spec is one side of the comparison: its dependencies by package.
    sides = [by_package(facts, dependencies) for dependencies in not_in_all]
    # The rank of a package is that of its specs on the last side that has it: specs of
    # one package rarely provide different virtual packages.
    packages: dict[str, tuple[int, ...]] = {}
    for side in sides:
        packages |= side

    features: list[list[_Feature]] = [[] for _ in sides]
    for name, specs in packages.items():
        rank = _rank(provided, specs)
        texts = _texts_of_package(facts, name, sides)
        for side, features_of_side in zip(sides, features, strict=True):
            if name not in side:
                continue
            text = texts[side[name]]
            # The bare name says nothing: it is the text of specs without a difference.
            if text != name:
                features_of_side.append(_Feature(rank, name, text))

    # A spec without a feature may still lack packages that others have: name the first.
    for side, features_of_side in zip(sides, features, strict=True):
        lacking = packages.keys() - side.keys()
        if not features_of_side and lacking:
            candidates = [
                _Feature(_rank(provided, packages[name]), name, f"no {name}")
                for name in lacking
            ]
            features_of_side.append(min(candidates))
    return features


def _rank(provided: Mapping[int, frozenset[str]], specs: Iterable[int]) -> _Rank:
    virtuals = _virtuals_of(provided, specs)
    if "mpi" in virtuals:
        return _Rank.MPI
    return _Rank.VIRTUAL if virtuals else _Rank.OTHER


def _texts_of_package(
    facts: Mapping[int, Facts],
    name: str,
    sides: Sequence[Mapping[str, tuple[int, ...]]],
) -> dict[tuple[int, ...], str]:
    """Return a text for each different set of specs of a package: `openmpi@5.0.3`.

    A side without the package has the empty set.
    """
    groups = list({side.get(name, ()) for side in sides})
    texts = dict.fromkeys(groups, name)
    facts_of_groups = []
    for group in groups:
        facts_of_groups.append([facts[spec] for spec in group])
    for part, values in differing(facts_of_groups):
        for group, value in zip(groups, values, strict=True):
            shown = value or "none"
            if part in _FORMS:
                texts[group] += _FORMS[part].format(shown)
            else:
                texts[group] += f" {part}={shown}"
    return texts


def read_facts(lookups: Lookups, specs: Iterable[int]) -> dict[int, Facts]:
    """Return the facts of specs, from the first mirror that has a record of each."""
    specs = list(specs)
    # The cache of this database, which is empty at first.
    cached = lookups.once(Facts, dict[int, Facts])
    if len(cached) > MAX_CACHED_SPECS:
        cached.clear()

    # Read the specs that it lacks, then their configurations.
    unread = [spec for spec in specs if spec not in cached]
    rows = list(select_in(lookups.conn, FACTS, unread))
    ids = sorted({configuration_id for _, configuration_id, *_ in rows})
    configurations = {}
    for key, row in zip(ids, configurations_by_id(lookups, ids), strict=True):
        configurations[key] = row.configuration
    for spec, configuration_id, namespace, recipe, parameters in rows:
        cached[spec] = Facts(
            configurations[configuration_id],
            namespace=namespace or "",
            recipe=recipe or "",
            flags=_flags(parameters or "{}"),
        )
    return {spec: cached[spec] for spec in specs}


@lru_cache(maxsize=1_000)
def _flags(parameters: str) -> str:
    """Return the compiler flags in a node's parameters, which are JSON, as Spack writes
    them: `cflags="-O2 -g"`.
    """
    values = stored_json(parameters)
    texts = []
    for name in sorted(FLAG_NAMES):
        value = " ".join(map(str, values.get(name) or ()))
        if value:
            texts.append(f'{name}="{value}"')
    return " ".join(texts)


def _changes(
    facts: Mapping[int, Facts],
    provided: Mapping[int, frozenset[str]],
    our_specs: Sequence[int],
    their_specs: Sequence[int],
) -> Iterator[Change]:
    """Yield the changes between two sets of specs, package by package."""
    ours = by_package(facts, our_specs)
    theirs = by_package(facts, their_specs)

    # Packages of both sides.
    for name in sorted(ours.keys() & theirs.keys()):
        our_facts = tuple(facts[spec] for spec in ours[name])
        their_facts = tuple(facts[spec] for spec in theirs[name])
        yield from _spec_changes(name, our_facts, their_facts)

    # A package that provides the virtual package of another one replaces it.
    only_ours = {name: ours[name] for name in sorted(ours.keys() - theirs.keys())}
    only_theirs = {name: theirs[name] for name in sorted(theirs.keys() - ours.keys())}
    for name in list(only_ours):
        virtuals = _virtuals_of(provided, only_ours[name])
        for other in only_theirs:
            common = virtuals & _virtuals_of(provided, only_theirs[other])
            if common:
                yield Change(
                    ", ".join(sorted(common)),
                    "provider",
                    here=_with_versions(facts, name, only_ours.pop(name)),
                    there=_with_versions(facts, other, only_theirs.pop(other)),
                )
                break

    # Packages of one side.
    for name, specs in only_ours.items():
        yield Change(name, "", here=", ".join(_versions(facts, specs)), there=None)
    for name, specs in only_theirs.items():
        yield Change(name, "", here=None, there=", ".join(_versions(facts, specs)))


# Cached, because many specs have the same specs of a package.
@lru_cache(maxsize=1_000)
def _spec_changes(
    name: str, ours: tuple[Facts, ...], theirs: tuple[Facts, ...]
) -> tuple[Change, ...]:
    """Return the changes between specs of one package."""
    changes = []
    for part, (our_value, their_value) in differing((ours, theirs)):
        changes.append(Change(name, part, our_value, their_value))
    return tuple(changes)


def differing(
    groups: Sequence[Sequence[Facts]],
) -> Iterator[tuple[str, list[str | None]]]:
    """Yield the parts in which groups of specs of a package differ, with the text of
    each group.

    If the versions differ, these are all: `("", ["4.1.6", "5.0.3"])`. Otherwise, each
    part has the values that not all groups have: `("variants", ["+mpi", "~mpi"])`.
    """
    versions = []
    for facts in groups:
        versions.append({spec.configuration.version for spec in facts})
    if any(group != versions[0] for group in versions):
        yield "", [", ".join(sorted(group)) for group in versions]
        return
    parts = [_parts(facts) for facts in groups]
    for part in parts[0]:
        values_of_groups = [values[part] for values in parts]
        common = set.intersection(*values_of_groups)
        if any(values != common for values in values_of_groups):
            texts = [" ".join(sorted(values - common)) for values in values_of_groups]
            yield part, [text or None for text in texts]


def _parts(facts: Sequence[Facts]) -> dict[str, set[str]]:
    """Return the values of each part of specs, without empty ones."""
    configurations = [spec.configuration for spec in facts]
    parts: dict[str, set[str]] = {}
    for part in COMPARED:
        parts[part] = {getattr(spec, part) for spec in configurations}
    parts["variants"] = {text for spec in configurations for text in spec.variants}
    parts["flags"] = {spec.flags for spec in facts}
    parts["namespace"] = {spec.namespace for spec in facts}
    parts["recipe"] = {spec.recipe[:RECIPE_HASH_LENGTH] for spec in facts}
    for values in parts.values():
        values.discard("")
    return parts


def by_package(
    facts: Mapping[int, Facts], specs: Iterable[int]
) -> dict[str, tuple[int, ...]]:
    """Return specs by their packages."""
    groups: dict[str, list[int]] = {}
    for spec in specs:
        groups.setdefault(facts[spec].configuration.package, []).append(spec)
    return {package: tuple(ids) for package, ids in groups.items()}


def _with_versions(
    facts: Mapping[int, Facts], package: str, specs: Iterable[int]
) -> str:
    """Return a package with each of its versions: `openmpi 4.1.6, openmpi 5.0.3`."""
    texts = [f"{package} {version}" for version in _versions(facts, specs)]
    return ", ".join(texts)


def _versions(facts: Mapping[int, Facts], specs: Iterable[int]) -> list[str]:
    return sorted({facts[spec].configuration.version for spec in specs})


def _virtuals_of(
    provided: Mapping[int, frozenset[str]], specs: Iterable[int]
) -> frozenset[str]:
    """Return the virtual packages that some of the specs provide."""
    virtuals: frozenset[str] = frozenset()
    for spec in specs:
        virtuals |= provided.get(spec, frozenset())
    return virtuals


def _provided_virtuals(graph: Needs) -> dict[int, frozenset[str]]:
    """Return the virtual packages that specs of the graph provide, by their ids."""
    provided: dict[int, frozenset[str]] = {}
    for edges in graph.edges.values():
        for edge in edges:
            if edge.virtuals:
                known = provided.get(edge.dependency, frozenset())
                provided[edge.dependency] = known | set(edge.virtuals)
    return provided
