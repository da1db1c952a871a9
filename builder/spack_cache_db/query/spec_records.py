"""The records of indexes, and which specs satisfy what a query asks beyond configurations.

Dependencies, namespaces, compiler flags, whole patch checksums and propagated variants are compared
as Spack 1.2 compares them with a concrete spec (`spec.py`: `_satisfies`, `_get_satisfying_edge`,
`_satisfies_edge`, `_satisfies_node`).

If several indexes have a record of a spec, one counts: first those of the release and the stack
that are asked for, then those of that release, then any; mirrors are numbered by release, then
path. A spec that only pages list has no record.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import chain
from operator import and_
from typing import Any, NamedTuple

from spack_cache_db.query.catalogue import specs_beginning, specs_of_configurations
from spack_cache_db.query.conditions import (
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
    DEPTYPES,
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
    flags_match,
    own_texts,
    variant_matches,
)
from spack_cache_db.spack.normal_forms import LANGUAGES, Variant

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
WITH_COMPILER = """
SELECT id FROM nodes
WHERE coalesce(json_extract(rest, '$.compiler'), json_extract(rest, '$.annotations.compiler'))
  IS NOT NULL
"""
"""Nodes from before Spack 1.0: they name one compiler and have no edge to it."""
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
WITH_CONFIGURATION = """
SELECT specs.id FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.configuration = wanted.value
"""
Way = tuple[Set[int] | None, Set[str]]
"""What an edge may lead to, None for anything; and the virtual packages that it provides."""

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
    """The records of a database, each read when it is first needed.

    Attributes:
        lookups: the small tables of the database; they keep what does not depend on the rest.
        among: only these specs are asked about; None for all.
        release: the id of the release whose records count first.
        stack: the id of the stack whose records count first.
    """

    lookups: Lookups
    among: Set[int] | None = None
    release: int | None = None
    stack: int | None = None
    _elsewhere: dict[tuple[Any, Any], SpecRecords] = field(default_factory=dict)
    _decided: dict[str, Verdict] = field(default_factory=dict)

    def about(self, conditions: Conditions) -> SpecRecords:
        """Return the records of the package asked for, or all."""
        named = asked(conditions, "package")
        if not isinstance(named, Word):
            return self
        ids = self._configurations(configuration_conditions(SpecQuery(name=named.text)))
        return SpecRecords(self.lookups, specs_of_configurations(self.lookups.conn, ids))

    def at(self, scope: Conditions) -> SpecRecords:
        """Return the same records, first those of the release and stack that are asked for."""
        place = asked(scope, "release"), asked(scope, "stack")
        if place == (self.release, self.stack):
            return self
        if place not in self._elsewhere:
            self._elsewhere[place] = SpecRecords(self.lookups, self.among, *place)
        return self._elsewhere[place]

    def decided(self, conditions: Conditions) -> Conditions:
        """Return conditions with verdicts in the place of what is asked beyond configurations."""
        return tuple(
            replace(each, asked=self._verdict(each.text, each.asked))
            if isinstance(each.asked, SpecQuery)
            else each
            for each in conditions
        )

    def _verdict(self, text: str, query: SpecQuery) -> Verdict:
        # A thousand specs of an environment name the same few compilers.
        if text not in self._decided:
            self._decided[text] = self._beyond(query)
        return self._decided[text]

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
        """The specs without a record: only pages list them."""
        conn = self.lookups.conn
        if self.among is not None:
            return frozenset(chain.from_iterable(select_in(conn, UNRECORDED_OF, self.among)))
        return self.lookups.once(
            UNRECORDED, lambda: frozenset(chain.from_iterable(select(conn, UNRECORDED)))
        )

    @cached_property
    def with_compiler(self) -> frozenset[int]:
        """The specs whose record names one compiler: those from before Spack 1.0."""
        nodes = chain.from_iterable(select(self.lookups.conn, WITH_COMPILER))
        return self._with_node(frozenset(nodes))

    @cached_property
    def without_virtuals(self) -> frozenset[int]:
        """The specs whose record does not say which virtual packages its dependencies provide."""
        if not self._mute:
            return _NONE
        return frozenset(spec for spec, _, mirror, _ in self._first if mirror in self._mute)

    @cached_property
    def tells_virtuals(self) -> bool:
        """Whether some index says which virtual packages dependencies provide."""
        return any(row[0] not in self._mute for row in select(self.lookups.conn, MIRRORS))

    def with_node(self, is_as_asked: Callable[[IndexNode], bool]) -> frozenset[int]:
        """Return the specs whose node satisfies a function."""
        nodes = select(self.lookups.conn, NODES)
        return self._with_node(
            {
                key
                for key, namespace, parameters in nodes
                if is_as_asked(IndexNode(namespace, json.loads(parameters)))
            }
        )

    @cached_property
    def _mute(self) -> frozenset[int]:
        return frozenset(chain.from_iterable(select(self.lookups.conn, WITHOUT_VIRTUALS)))

    def _with_node(self, nodes: Set[int]) -> frozenset[int]:
        if not nodes:
            return _NONE
        return frozenset(spec for spec, node, *_ in self._first if node in nodes)

    @cached_property
    def _first(self) -> list[tuple[Any, ...]]:
        """The record of each spec that counts: spec, node, mirror and its rank."""
        place = {"release": self.release, "stack": self.stack}
        if self.among is not None:
            return [*select_in(self.lookups.conn, FIRST_RECORDS_OF, self.among, **place)]
        return [*select(self.lookups.conn, FIRST_RECORDS, **place)]

    def notes(self, query: SpecQuery) -> tuple[str, ...]:
        """Return how the dependencies of a query are understood."""
        notes: list[str] = []
        direct = tuple(edge for edge in query.dependencies if edge.direct)
        if direct and self.unrecorded:
            notes += notes_on_pages(replace(query, dependencies=direct))
        for name, node in ((edge.node.name or "", edge.node) for edge in query.dependencies):
            if not self.is_virtual(name):
                continue
            if name in self.providers and not self.tells_virtuals:
                notes.append(
                    f"{name} is known to be provided by {', '.join(self.providers[name])}; "
                    "the indexes in this database do not say what provides it"
                )
            elif any(own_texts(replace(node, name=None))):
                notes.append(f"{name} is a virtual package: only its name is asked, as in Spack")
        return tuple(notes)

    def _beyond(self, query: SpecQuery) -> Verdict:
        parts = [*self._parts(query)]
        if self.among is not None or not parts:
            parts.append(Verdict(self.every))
        return reduce(and_, parts)

    def _parts(self, query: SpecQuery) -> Iterator[Verdict]:
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
            found = self._with_edge(edge)
            yield found if edge.when is None else self._unless(edge.when) | found

    def _with_edge(self, edge: Dependency) -> Verdict:
        """Return the specs of which an edge satisfies one of a query.

        That is an edge of the spec itself; or the compiler that an old record names, which is of
        type build and provides all languages; or, for `^`, a link or run edge at any depth.
        """
        edges, name = self.edges, edge.node.name or ""
        types, run_time = edges.of_all_types(edge.deptypes), edges.of_any_type(RUN_TIME)
        # With `^`, those that are linked or run are found with the deeper ones.
        own = [each for each in types if edge.direct or each not in run_time]
        holds, below = self._with_recorded_compiler(edge), set[int]()
        for of, virtuals in self._ways(edge):
            holds |= edges.needing(of, own, virtuals, self.among)
            if not edge.direct:
                below |= edges.needing(of, {*types}.intersection(run_time), virtuals)
        if below and self.among is not None:
            holds |= edges.leading_to(below, run_time, self.among)
        elif below:
            holds |= edges.with_ancestors(below, run_time)
        unknown: Set[int] = self.unrecorded
        if {*edge.virtuals, *filter(self.is_virtual, (name,))}.difference(LANGUAGES):
            unknown |= self.without_virtuals
        shown = self._shown_compiler(edge) if edge.direct else Verdict(_NONE, self.unrecorded)
        return Verdict(holds, unknown - self.unrecorded) | shown

    def _ways(self, edge: Dependency) -> Iterator[Way]:
        """Yield what an edge leads to: the package asked for, or any that provides its name."""
        node, virtuals = edge.node, frozenset(edge.virtuals)
        yield self._like(node), virtuals
        if node.name in self.edges.virtuals and node.versions is None:
            yield self._like(SpecQuery(dependencies=node.dependencies)), virtuals | {node.name}
        if not self.tells_virtuals and self.is_virtual(node.name or ""):
            for name in self.providers.get(node.name or "", ()):
                yield self._like(replace(node, name=name)), virtuals

    def _with_recorded_compiler(self, edge: Dependency) -> set[int]:
        """Return the specs whose record names one compiler, which satisfies an edge.

        Only its name and version are known; it has no variants to contradict propagated ones.
        """
        node = edge.node
        if not ({*edge.deptypes} <= {"build"} and {*edge.virtuals}.issubset(LANGUAGES)):
            return set()
        if node.name in LANGUAGES:
            return set() if node.versions or node.dependencies else {*self.with_compiler}
        more = replace(
            node,
            name=None,
            namespace=None,
            versions=None,
            variants=tuple(each for each in node.variants if not each.propagate),
            flags=tuple(each for each in node.flags if each.value.split()),
            text="",
        )
        if more != SpecQuery():
            return set()
        compiled = self._compiled(CompilerConstraint(node.name, node.versions))
        return {*compiled & self.with_compiler} if compiled else set()

    def _shown_compiler(self, edge: Dependency) -> Verdict:
        """Return the specs without a record whose page shows this compiler."""
        among = self.unrecorded
        try:
            constraint = compiler_of_pages(replace(edge, when=None))
        except UnsupportedQuery:
            return Verdict(_NONE, among)
        return Verdict(among & self._compiled(constraint) if among else _NONE)

    def _unless(self, query: SpecQuery) -> Verdict:
        """Return the specs that do not satisfy the condition of a dependency."""
        like = self._configured(query)
        met = Verdict(self.every if like is None else like)
        met = reduce(and_, (each.asked for each in self.decided(record_conditions(query))), met)
        return met.opposite(self.every)

    def _propagated(self, variant: VariantConstraint) -> Verdict:
        """Return the specs of which neither they nor any dependency has another value."""
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
        """Return the specs that satisfy a node of a query; None if all do."""
        found = self._configured(node)
        beyond = beyond_configurations(node)
        if beyond == SpecQuery():
            return found
        holds = self._whole._beyond(beyond).holds
        return holds if found is None else found & holds

    @cached_property
    def _whole(self) -> SpecRecords:
        """The records of all specs: dependencies may be of any package."""
        if self.among is None:
            return self
        return SpecRecords(self.lookups, None, self.release, self.stack)

    def _configured(self, node: SpecQuery) -> Set[int] | None:
        """Return the specs whose configuration and hash are as asked; None if all are."""
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
        """Return whether the database has a package of that name."""
        return name in self.lookups.packages

    @cached_property
    def providers(self) -> Mapping[str, tuple[str, ...]]:
        """The packages that package data knows to provide each virtual one."""
        return read_providers(self.lookups.conn)

    def is_virtual(self, name: str) -> bool:
        """Return whether a name is that of a virtual package, and not of a package as well."""
        known = name in VIRTUALS or name in self.edges.virtuals or name in self.providers
        return known and not self.is_package(name)
