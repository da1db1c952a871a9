"""What indexes say of specs beyond their configurations, and which specs satisfy it.

Where several indexes have a record of a spec, the first of them counts: those of the release and
the stack that are asked for, then those of that release, then any; mirrors are numbered by release,
then path. A spec that pages alone tell of has no record.

What is asked of dependencies, namespaces, compiler flags, whole patch sums and propagated variants
is compared as Spack 1.1 compares it with a concrete spec (`Spec.satisfies`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from itertools import chain
from operator import and_
from typing import Any, NamedTuple

from spack_cache_db.query.catalogue import specs_beginning, specs_of_configurations
from spack_cache_db.query.conditions import (
    DEPTYPES,
    VIRTUALS,
    Conditions,
    UnsupportedQuery,
    Verdict,
    Word,
    asked,
    beyond_configurations,
    compiler_condition,
    compiler_of_pages,
    configuration_conditions,
    needs_whole_patches,
    notes_on_pages,
    provider_of,
    record_conditions,
    without,
)
from spack_cache_db.query.connection import Lookups, select, select_in
from spack_cache_db.query.dependency_graph import RUN_TIME, Dependents
from spack_cache_db.query.selection import (
    configuration_ids,
    read_providers,
    with_other_variant,
)
from spack_cache_db.spack.constraints import (
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
    flags_match,
    variant_matches,
)
from spack_cache_db.spack.normal_forms import Variant
from spack_cache_db.spack.parser import parse_query

ANY_RECORD = "SELECT 1 FROM records LIMIT 1"
SPECS = "SELECT id FROM specs"
UNRECORDED = """
SELECT id FROM specs WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.spec = specs.id)
"""
UNRECORDED_OF = """
SELECT value FROM json_each(:ids)
WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.spec = value)
"""
# SQLite takes the other columns from the row that has the minimum ("SELECT", 2.5).
_FIRST = """
SELECT spec, node, mirror,
  min(((release IS NOT :release) * 2 + (stack IS NOT :stack)) * 1000000000 + mirror)
FROM records CROSS JOIN mirrors ON mirrors.id = mirror
"""
FIRST_RECORDS = f"{_FIRST} GROUP BY spec"
FIRST_RECORDS_OF = f"{_FIRST} WHERE spec IN (SELECT value FROM json_each(:ids)) GROUP BY spec"
NODES = "SELECT id, namespace, parameters FROM nodes"
ORIGINS = "SELECT id, external IS NOT NULL, rest FROM nodes"
WITHOUT_EDGES = """
SELECT value FROM json_each(:ids)
WHERE NOT EXISTS (SELECT 1 FROM dependencies WHERE dependencies.spec = value)
"""
MIRRORS = "SELECT id FROM mirrors"
# Before database 7 and specfile 4, edges had no virtuals; spec files of layout 2 are of any.
WITHOUT_VIRTUALS = """
SELECT id FROM mirrors
WHERE format IN ('5', '6', 'spec file 1', 'spec file 2', 'spec file 3')
  OR format = 'spec files, layout 2' AND NOT EXISTS (
    SELECT 1 FROM records
    JOIN dependencies ON dependencies.spec = records.spec
    JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.virtuals
    WHERE records.mirror = mirrors.id AND dependency_virtuals.virtuals <> '')
"""
EDGES_NAME_COMPILERS = 5
"""The specfile since which a compiler is a dependency (Spack 1.0); before, a node named one."""

WITH_CONFIGURATION = """
SELECT specs.id FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.configuration = wanted.value
"""
Way = tuple[Set[int] | None, frozenset[str]]
"""What an edge may lead to, None for anything; and the virtual packages of which it provides one,
where any are given."""

_BUILD = ("build",)
_NONE: frozenset[int] = frozenset()


def has_records(conn: sqlite3.Connection) -> bool:
    """Return whether a file was built from an index, at least in part."""
    return next(select(conn, ANY_RECORD), None) is not None


class IndexNode(NamedTuple):
    """What a node says of a spec beside its configuration: see the table `nodes`."""

    namespace: str
    parameters: Mapping[str, Any]


@dataclass
class SpecRecords:
    """The records of a file, each read when it is first asked for.

    Attributes:
        lookups: its small tables, which keep what does not depend on the other three.
        among: of these specs only.
        release: the release whose records count first, by its id.
        stack: the same of a stack.
    """

    lookups: Lookups
    among: Set[int] | None = None
    release: int | None = None
    stack: int | None = None
    _elsewhere: dict[tuple[Any, Any], SpecRecords] = field(default_factory=dict)
    _decided: dict[tuple[str, bool], Verdict] = field(default_factory=dict)

    def about(self, conditions: Conditions) -> SpecRecords:
        """Return the records for conditions on one package: few specs to look at."""
        named = asked(conditions, "package")
        if not isinstance(named, Word):
            return self
        ids = self._configurations(configuration_conditions(SpecQuery(name=named.text)))
        return SpecRecords(self.lookups, specs_of_configurations(self.lookups.conn, ids))

    def at(self, scope: Conditions) -> SpecRecords:
        """Return the same records with those first of the release and stack that are asked for."""
        place = asked(scope, "release"), asked(scope, "stack")
        if place == (self.release, self.stack):
            return self
        if place not in self._elsewhere:
            self._elsewhere[place] = SpecRecords(self.lookups, self.among, *place)
        return self._elsewhere[place]

    def decided(self, conditions: Conditions) -> Conditions:
        """Return conditions with verdicts in the place of what is asked beyond configurations."""
        parts = [each.asked for each in conditions if isinstance(each.asked, SpecQuery)]
        is_only = _names_one_compiler(parts)
        found = []
        for each in conditions:
            if isinstance(each.asked, SpecQuery):
                known = each.text, is_only
                # A thousand specs of an environment name the same few compilers.
                if known not in self._decided:
                    self._decided[known] = self._beyond(each.asked, is_only)
                each = replace(each, asked=self._decided[known])
            found.append(each)
        return tuple(found)

    @cached_property
    def edges(self) -> Dependents:
        """The dependencies of all specs."""
        return Dependents(self.lookups.conn, self.lookups)

    @cached_property
    def every(self) -> Set[int]:
        """All specs that are asked about."""
        if self.among is not None:
            return self.among
        return frozenset(chain.from_iterable(select(self.lookups.conn, SPECS)))

    @cached_property
    def unrecorded(self) -> frozenset[int]:
        """The specs that have no record: pages alone tell of them."""
        if self.among is not None:
            return frozenset(
                chain.from_iterable(select_in(self.lookups.conn, UNRECORDED_OF, self.among))
            )
        return self.lookups.once(
            UNRECORDED,
            lambda: frozenset(chain.from_iterable(select(self.lookups.conn, UNRECORDED))),
        )

    @cached_property
    def old(self) -> frozenset[int]:
        """The recorded specs of before Spack 1.0, which name one compiler."""
        return self._with_node({key for key, _, is_old in self._origins if is_old})

    @cached_property
    def by_compiler(self) -> frozenset[int]:
        """The recorded specs of which `%` asks for the one compiler that they name.

        Beside the old ones, these are externals without dependencies (Spack 1.1 `Spec.satisfies`).
        """
        external = {key for key, is_external, is_old in self._origins if is_external and not is_old}
        alone = select_in(self.lookups.conn, WITHOUT_EDGES, self._with_node(external))
        return self.old.union(chain.from_iterable(alone))

    @cached_property
    def without_virtuals(self) -> frozenset[int]:
        """The recorded specs of whose edges nothing says which virtual packages they provide."""
        return frozenset(spec for spec, _, mirror, _ in self._first if mirror in self._mute)

    @cached_property
    def tells_virtuals(self) -> bool:
        """Whether some index of the file says which virtual packages its edges provide."""
        return any(row[0] not in self._mute for row in select(self.lookups.conn, MIRRORS))

    def with_node(self, is_as_asked: Callable[[IndexNode], bool]) -> frozenset[int]:
        """Return the specs whose node is as asked."""
        nodes = select(self.lookups.conn, NODES)
        return self._with_node(
            {
                key
                for key, namespace, parameters in nodes
                if is_as_asked(IndexNode(namespace, json.loads(parameters)))
            }
        )

    @cached_property
    def _origins(self) -> list[tuple[int, bool, bool]]:
        """Of each node its id, whether it is an external, and whether it is of before Spack 1.0."""
        specfile = lru_cache(maxsize=None)(_specfile)
        return [
            (key, bool(is_external), specfile(rest) < EDGES_NAME_COMPILERS)
            for key, is_external, rest in select(self.lookups.conn, ORIGINS)
        ]

    @cached_property
    def _mute(self) -> frozenset[int]:
        return frozenset(chain.from_iterable(select(self.lookups.conn, WITHOUT_VIRTUALS)))

    def _with_node(self, nodes: Set[int]) -> frozenset[int]:
        if not nodes:
            return frozenset()
        return frozenset(spec for spec, node, *_ in self._first if node in nodes)

    @cached_property
    def _first(self) -> list[tuple[Any, ...]]:
        """Of each spec its first record: spec, node, mirror, and what puts it first."""
        place = {"release": self.release, "stack": self.stack}
        if self.among is not None:
            return [*select_in(self.lookups.conn, FIRST_RECORDS_OF, self.among, **place)]
        return [*select(self.lookups.conn, FIRST_RECORDS, **place)]

    def notes(self, query: SpecQuery) -> tuple[str, ...]:
        """Return what a user should know of the answer."""
        notes: list[str] = []
        direct = [edge for edge in query.dependencies if edge.direct]
        if direct and self.unrecorded:
            notes += notes_on_pages(replace(query, dependencies=tuple(direct)))
        if direct and self.old:
            notes.append("records of before Spack 1.0 name one compiler, and '%' asks for that")
        needed = [edge.node.name or "" for edge in query.dependencies if not edge.direct]
        if not self.tells_virtuals:
            notes += (
                f"{name} is known to be provided by {', '.join(self.providers[name])}; "
                "the indexes of this file do not say what provides it"
                for name in needed
                if name in self.providers and not self.is_package(name)
            )
        if any(edge.deptypes for edge in query.dependencies if not edge.direct):
            notes.append("Spack compares deptypes of direct dependencies only: write '%', not '^'")
        return tuple(notes)

    def _beyond(self, query: SpecQuery, is_only: bool) -> Verdict:
        parts = [*self._parts(query, is_only)]
        if self.among is not None or not parts:
            parts.append(Verdict(self.every))
        return reduce(and_, parts)

    def _parts(self, query: SpecQuery, is_only: bool) -> Iterator[Verdict]:
        if query.namespace is not None:
            yield self._by_node(lambda node: node.namespace == query.namespace)
        if query.flags:
            yield self._by_node(lambda node: flags_match(query.flags, node.parameters))
        for variant in query.variants:
            if variant.propagate:
                yield self._propagated(variant)
            elif needs_whole_patches(variant):
                yield self._patched(variant)
        for edge in query.dependencies:
            found = self._direct(edge, is_only) if edge.direct else self._needed(edge)
            yield found if edge.when is None else self._unless(edge.when) | found
            if edge.when is not None and edge.node.dependencies:
                # Spack 1.1 asks the `%` behind `^y` of `y` even if that condition does not hold.
                yield self._needed(_without_condition(edge))

    def _direct(self, edge: Dependency, is_only: bool) -> Verdict:
        """Return the specs that have such a dependency themselves.

        Args:
            is_only: no other compiler is asked for, since pages show one.
        """
        virtuals = frozenset(edge.virtuals)
        types = self.edges.of_all_types(edge.deptypes)
        needing = (
            self.edges.needing(of, types, provided or virtuals, self.among)
            for of, provided in self._ways(edge.node)
        )
        by_edges = Verdict(set(chain.from_iterable(needing)) - self.by_compiler)
        shown = self._shown_compiler(edge) if is_only else Verdict(_NONE, self.unrecorded)
        return by_edges | self._named_compiler(edge) | shown

    def _named_compiler(self, edge: Dependency) -> Verdict:
        """Return the specs whose record names one compiler, this one.

        Spack then asks nothing of the edge, and of the compiler its name and version.
        """
        among, node = self.by_compiler, edge.node
        if not among or self._is_virtual(node.name):
            return Verdict(_NONE, among)
        known = SpecQuery(name=node.name, versions=node.versions, namespace=node.namespace)
        if node != replace(known, text=node.text):
            return Verdict(_NONE)
        return Verdict(among & self._compiled(CompilerConstraint(node.name, node.versions)))

    def _shown_compiler(self, edge: Dependency) -> Verdict:
        """Return the specs without a record whose page shows this compiler."""
        among = self.unrecorded
        try:
            constraint = compiler_of_pages(replace(edge, when=None))
        except UnsupportedQuery:
            return Verdict(_NONE, among)
        return Verdict(among & self._compiled(constraint) if among else _NONE)

    def _needed(self, edge: Dependency) -> Verdict:
        """Return the specs that need such a dependency at run time, or directly to be built."""
        holds = self._reaching(self._ways(edge.node))
        # Spack asks for the virtuals among all edges to the package, whichever spec of it.
        package = self._like(SpecQuery(name=edge.node.name))
        for virtual in edge.virtuals:
            holds &= self._reaching([(package, frozenset({virtual}))])
        unknown = self.unrecorded
        if edge.virtuals or self._is_virtual(edge.node.name):
            unknown |= self.without_virtuals
        return Verdict(holds, unknown - holds)

    def _reaching(self, ways: Iterable[Way]) -> set[int]:
        """Return the specs that reach such an edge by link and run, or have it to be built."""
        run, build = self.edges.of_any_type(RUN_TIME), self.edges.of_any_type(_BUILD)
        needing: set[int] = set()
        building: set[int] = set()
        for of, virtuals in ways:
            needing |= self.edges.needing(of, run, virtuals)
            building |= self.edges.needing(of, build, virtuals)
        if self.among is not None:
            holds = self.edges.leading_to(needing, run, self.among)
        else:
            holds = self.edges.with_ancestors(needing, run)
        # In place: these may be a hundred thousand.
        holds |= building
        return holds

    def _ways(self, node: SpecQuery) -> list[Way]:
        """Return what an edge leads to: a package as asked, or whatever provides a virtual one."""
        if node.name is None or not self._is_virtual(node.name):
            return [(self._like(node), frozenset())]
        ways: list[Way] = []
        if self.is_package(node.name):
            ways.append((self._like(node), frozenset()))
        if node == provider_of(node, node.name):
            ways.append((self._like(provider_of(node)), frozenset({node.name})))
        if not self.tells_virtuals:
            providers = self.providers.get(node.name, ())
            ways += ((self._like(replace(node, name=each)), frozenset()) for each in providers)
        return ways

    def _unless(self, condition: str) -> Verdict:
        """Return the specs that do not satisfy the condition of a dependency."""
        query = parse_query(condition)
        like = self._configured(query)
        met = Verdict(self.every if like is None else like)
        met = reduce(and_, (each.asked for each in self.decided(record_conditions(query))), met)
        return met.opposite(self.every)

    def _propagated(self, variant: VariantConstraint) -> Verdict:
        """Return the specs of which neither they nor anything they need has another value."""
        others = self._with(with_other_variant(self.lookups.conn, variant))
        needing = self.edges.with_ancestors(others, self.edges.of_any_type(DEPTYPES))
        possible = self.every - needing
        return Verdict(possible - self.unrecorded, possible & self.unrecorded)

    def _patched(self, variant: VariantConstraint) -> Verdict:
        """Return the specs with such whole patch sums; pages print the beginning of each."""

        def is_patched(node: IndexNode) -> bool:
            sums = node.parameters.get(variant.name, ())
            return variant_matches(variant, Variant(variant.name, tuple(sums), "multi"))

        return Verdict(self.with_node(is_patched) | self.unrecorded)

    def _by_node(self, is_as_asked: Callable[[IndexNode], bool]) -> Verdict:
        return Verdict(self.with_node(is_as_asked), self.unrecorded)

    def _like(self, node: SpecQuery) -> Set[int] | None:
        """Return the specs that are as asked; None where nothing is."""
        found = self._configured(node)
        beyond = beyond_configurations(node)
        if beyond == SpecQuery():
            return found
        holds = self._whole._beyond(beyond, _names_one_compiler([beyond])).holds
        return holds if found is None else found & holds

    @cached_property
    def _whole(self) -> SpecRecords:
        """The records of the whole file: what is needed may be of any package."""
        if self.among is None:
            return self
        return SpecRecords(self.lookups, None, self.release, self.stack)

    def _configured(self, node: SpecQuery) -> Set[int] | None:
        """Return the specs whose configuration and hash are as asked; None where none is."""
        conditions = configuration_conditions(node)
        words, prefix = without(conditions, "hash"), asked(conditions, "hash")
        found: Set[int] | None = None
        if words:
            found = self._with(self._configurations(words))
        if prefix is not None:
            beginning = specs_beginning(self.lookups.conn, prefix).keys()
            found = beginning if found is None else found & beginning
        return found

    def _compiled(self, constraint: CompilerConstraint) -> frozenset[int]:
        return self._with(self._configurations((compiler_condition(constraint),)))

    def _configurations(self, conditions: Conditions) -> list[int]:
        return configuration_ids(self.lookups, conditions, every=True)

    def _with(self, configurations: Iterable[int]) -> frozenset[int]:
        rows = select_in(self.lookups.conn, WITH_CONFIGURATION, configurations)
        return frozenset(chain.from_iterable(rows))

    def is_package(self, name: str) -> bool:
        """Return whether the file has a package of that name."""
        return name in self.lookups.packages

    @cached_property
    def providers(self) -> Mapping[str, tuple[str, ...]]:
        """The packages that package data knows to provide each virtual one."""
        return read_providers(self.lookups.conn)

    def _is_virtual(self, name: str | None) -> bool:
        return name in VIRTUALS or name in self.edges.virtuals or name in self.providers


def _without_condition(edge: Dependency) -> Dependency:
    """Return what a `^` with a condition asks in any case: the `%` behind it of its package."""
    node = SpecQuery(name=edge.node.name, dependencies=edge.node.dependencies)
    return Dependency(node, direct=False)


def _names_one_compiler(parts: Iterable[SpecQuery]) -> bool:
    """Return whether one compiler is asked for at most: pages show no more of a spec."""
    edges = (edge for part in parts for edge in part.dependencies if edge.direct)
    return len({edge.node.name for edge in edges}) < 2


def _specfile(rest: str) -> int:
    """Return the specfile version that a node was made with, 0 for one of before version 5."""
    annotations = json.loads(rest).get("annotations", {})
    return int(annotations.get("original_specfile_version", 0))
