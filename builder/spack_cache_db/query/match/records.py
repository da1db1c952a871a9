"""Finds the specs that satisfy conditions which only the records of indexes can decide.

These are parts of queries (dependencies, namespaces, compiler flags, whole patch
checksums and propagated variants), compared as Spack 1.2 compares them with a concrete
spec (`spec.py`: `_satisfies`, `_get_satisfying_edge`), and the requirements of an
environment's `packages:`. If several indexes have a record of a spec, the first one by
release and path counts. A spec that only pages list has no record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import and_
from typing import Any

from spack_cache_db.database_file import stored_json
from spack_cache_db.query.conditions.conditions import (
    OF_SPECS,
    Condition,
    Conditions,
    Verdict,
    asked,
    compiler_condition,
    configuration_conditions,
    without,
)
from spack_cache_db.query.conditions.pages import (
    UnsupportedQuery,
    beyond_configurations,
    compiler_of_pages,
    needs_whole_patches,
    notes_on_pages,
)
from spack_cache_db.query.match.selection import configuration_ids, with_other_variant
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select, select_ids, select_in
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import specs_beginning, specs_of_configurations
from spack_cache_db.spack.facts import DEPTYPES, LANGUAGES, VIRTUALS
from spack_cache_db.spack.matching import flags_match, variant_matches
from spack_cache_db.spack.normal_forms import Variant
from spack_cache_db.spack.printing import constraint_texts, spec_text
from spack_cache_db.spack.queries import (
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
)

UNRECORDED = """
SELECT id FROM specs WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.spec = specs.id)
"""
WITH_COMPILER = "SELECT id FROM nodes WHERE has_compiler"
"""Nodes from before Spack 1.0: they name one compiler and have no edge to it."""
# Edges have virtuals since database 7 and specfile 4; layout 2 has spec files of any
# version.
WITHOUT_VIRTUALS = """
SELECT id FROM mirrors
WHERE format IN ('5', '6', 'spec file 1', 'spec file 2', 'spec file 3')
  OR format = 'spec files, layout 2' AND NOT EXISTS (
    SELECT 1 FROM records
    JOIN dependencies ON dependencies.spec = records.spec
    JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.virtuals
    WHERE records.mirror = mirrors.id AND dependency_virtuals.virtuals <> '')
"""
NONE: frozenset[int] = frozenset()


@dataclass
class SpecRecords:
    """The records of a database, or of one package's specs, read at first use.

    With `is_run_time`, `^x` means link and run dependencies only, because Spack reuses
    a binary without its build dependencies.
    """

    lookups: Lookups
    package: str | None = None
    is_run_time: bool = False
    _verdicts: dict[str, Verdict] = field(default_factory=dict, init=False)

    def conditions(self, query: SpecQuery) -> Conditions:
        """Return the conditions of a query that need records."""
        return tuple(
            Condition("specs", spec_text(part), self._verdict(part))
            for part in beyond_configurations(query)
        )

    def satisfying(self, conditions: Conditions) -> Verdict:
        """Return the specs that satisfy conditions, whether they are binaries or
        not.
        """
        verdicts = []
        if words := without(conditions, *OF_SPECS):
            verdicts.append(Verdict(self._configured(words)))
        if (prefix := asked(conditions, "hash")) is not None:
            verdicts.append(Verdict(specs_beginning(self.lookups.conn, prefix).keys()))
        if (verdict := asked(conditions, "specs")) is not None:
            verdicts.append(verdict)
        return reduce(and_, verdicts) if verdicts else Verdict(self.every)

    def _verdict(self, query: SpecQuery) -> Verdict:
        # Cached, because the specs of an environment repeat the same few compilers.
        text = spec_text(query)
        if text not in self._verdicts:
            parts = [*self._parts(query)]
            parts += (
                [Verdict(self.every)] if self.package is not None or not parts else []
            )
            self._verdicts[text] = replace(reduce(and_, parts), query=query)
        return self._verdicts[text]

    @cached_property
    def among(self) -> Set[int] | None:
        """The specs of `package`; None for all specs."""
        if self.package is None:
            return None
        return self._configured(configuration_conditions(SpecQuery(name=self.package)))

    @cached_property
    def edges(self) -> graph.Dependencies:
        """The dependencies of all specs."""
        return graph.Dependencies(self.lookups.conn)

    @cached_property
    def every(self) -> Set[int]:
        """The specs of `package`, or all specs."""
        return (
            select_ids(self.lookups.conn, "SELECT id FROM specs")
            if self.among is None
            else self.among
        )

    @cached_property
    def unrecorded(self) -> Set[int]:
        """The specs without a record, which only pages list."""
        conn = self.lookups.conn
        if self.among is not None:
            return self.among - {*graph.recorded_specs(conn, self.among)}
        return self.lookups.once(UNRECORDED, lambda: select_ids(conn, UNRECORDED))

    @cached_property
    def with_compiler(self) -> Set[int]:
        """The specs whose record names one compiler: those from before Spack 1.0."""
        return self._with_node(select_ids(self.lookups.conn, WITH_COMPILER))

    @cached_property
    def without_virtuals(self) -> Set[int]:
        """The specs whose record lacks the virtual packages that its dependencies
        provide.
        """
        mirrors = self._mirrors_without_virtuals
        return {
            spec
            for spec, _, mirror in (self._first if mirrors else ())
            if mirror in mirrors
        }

    @cached_property
    def has_virtuals(self) -> bool:
        """Whether any index has the virtual packages that dependencies provide."""
        mirrors = select_ids(self.lookups.conn, "SELECT id FROM mirrors")
        return not mirrors <= self._mirrors_without_virtuals

    @cached_property
    def _mirrors_without_virtuals(self) -> Set[int]:
        return select_ids(self.lookups.conn, WITHOUT_VIRTUALS)

    def _with_parameters(
        self, is_as_asked: Callable[[str, Mapping[str, Any]], bool]
    ) -> Set[int]:
        """Return the specs whose node's namespace and parameters satisfy a function."""
        nodes = select(self.lookups.conn, "SELECT id, namespace, parameters FROM nodes")
        return self._with_node(
            {
                key
                for key, space, values in nodes
                if is_as_asked(space, stored_json(values))
            }
        )

    def _with_node(self, nodes: Set[int]) -> Set[int]:
        return {
            spec for spec, node, _ in (self._first if nodes else ()) if node in nodes
        }

    @cached_property
    def _first(self) -> list[tuple[Any, ...]]:
        """The record of each spec that counts: spec, node and mirror."""
        # SQLite takes the node from the row that has the minimum ("SELECT", 2.5).
        conn, all_records = (
            self.lookups.conn,
            "SELECT spec, node, min(mirror) FROM records",
        )
        if self.among is None:
            return [*select(conn, f"{all_records} GROUP BY spec")]
        where = "WHERE spec IN (SELECT value FROM json_each(:ids))"
        return [*select_in(conn, f"{all_records} {where} GROUP BY spec", self.among)]

    def notes(self, query: SpecQuery) -> tuple[str, ...]:
        """Return notes on how the dependencies of a query were read."""
        direct = [edge for edge in query.dependencies if edge.direct]
        notes = [*(notes_on_pages(direct) if direct and self.unrecorded else ())]
        nodes = ((edge.node.name or "", edge.node) for edge in query.dependencies)
        for name, node in (
            (name, node) for name, node in nodes if self.is_virtual(name)
        ):
            if name in self.lookups.providers and not self.has_virtuals:
                notes.append(
                    f"{name} is known to be provided by {', '.join(self.lookups.providers[name])}; "
                    "the indexes in this database do not show it"
                )
            elif any(constraint_texts(replace(node, name=None))):
                notes.append(
                    f"{name} is a virtual package: only its name is compared, as in Spack"
                )
        return tuple(notes)

    def _parts(self, query: SpecQuery) -> Iterator[Verdict]:
        """Yield a verdict for each constraint that needs records."""
        if (name := query.namespace) is not None:
            yield Verdict(
                self._with_parameters(lambda space, _: space == name), self.unrecorded
            )
        if flags := query.flags:
            with_flags = self._with_parameters(
                lambda _, values: flags_match(flags, values)
            )
            yield Verdict(with_flags, self.unrecorded)
        for variant in query.variants:
            if variant.propagate:
                yield self._propagated(variant)
            elif needs_whole_patches(variant):
                yield self._patched(variant)
        for edge in query.dependencies:
            verdict = self._with_edge(edge)
            if edge.when is not None:
                when = (
                    *configuration_conditions(edge.when),
                    *self.conditions(edge.when),
                )
                verdict = self.satisfying(when).opposite(self.every) | verdict
            yield verdict

    def _with_edge(self, edge: Dependency) -> Verdict:
        """Return the specs with an edge that satisfies an edge of a query.

        The edge is one of the spec itself; or the compiler that an old record names, as
        a build dependency for all languages; or, for `^`, a link or run edge at any
        depth.
        """
        edges, unrecorded = self.edges, self.unrecorded
        types, run_time = edges.of_all_types(edge.deptypes), edges.run_time
        # With `^`, link and run edges are searched at any depth below.
        own_types = [
            types_id for types_id in types if edge.direct or types_id not in run_time
        ]
        holds, below = {*self._with_recorded_compiler(edge)}, set[int]()
        if self.is_run_time and not edge.direct and not edge.deptypes:
            own_types, holds = [], set()
        for of, virtuals in self._ways(edge):
            holds |= edges.needing(of, own_types, virtuals, self.among)
            if not edge.direct:
                below |= edges.needing(of, {*types}.intersection(run_time), virtuals)
        holds |= edges.with_ancestors(below, run_time)
        virtuals_of_edge = {
            *edge.virtuals,
            *filter(self.is_virtual, (edge.node.name or "",)),
        }
        unknown = (
            self.without_virtuals if virtuals_of_edge.difference(LANGUAGES) else NONE
        )
        on_pages = (
            self._shown_compiler(edge) if edge.direct else Verdict(NONE, unrecorded)
        )
        return Verdict(holds, unknown - unrecorded) | on_pages

    def _ways(self, edge: Dependency) -> Iterator[tuple[Set[int] | None, Set[str]]]:
        """Yield the specs that an edge may lead to, None for all, and the virtuals they
        provide.
        """
        node, virtuals = edge.node, frozenset(edge.virtuals)
        yield self._like(node), virtuals
        if node.name in self.edges.virtuals and node.versions is None:
            yield (
                self._like(SpecQuery(dependencies=node.dependencies)),
                virtuals | {node.name},
            )
        if not self.has_virtuals and self.is_virtual(node.name or ""):
            for name in self.lookups.providers.get(node.name or "", ()):
                yield self._like(replace(node, name=name)), virtuals

    def _with_recorded_compiler(self, edge: Dependency) -> Set[int]:
        """Return the specs whose record names one compiler that satisfies an edge.

        Only its name and version are known, so propagated variants are ignored.
        """
        node = edge.node
        if not ({*edge.deptypes} <= {"build"} and {*edge.virtuals}.issubset(LANGUAGES)):
            return NONE
        if node.name in LANGUAGES:
            return NONE if node.versions or node.dependencies else self.with_compiler
        more = replace(
            node,
            name=None,
            namespace=None,
            versions=None,
            variants=tuple(
                variant for variant in node.variants if not variant.propagate
            ),
            flags=tuple(flag for flag in node.flags if flag.value.split()),
            text="",
        )
        if more != SpecQuery():
            return NONE
        compiler = compiler_condition(CompilerConstraint(node.name, node.versions))
        return self._configured((compiler,)) & self.with_compiler

    def _shown_compiler(self, edge: Dependency) -> Verdict:
        """Return the specs without a record whose page shows this compiler."""
        try:
            compiler = compiler_condition(compiler_of_pages(replace(edge, when=None)))
        except UnsupportedQuery:
            return Verdict(NONE, self.unrecorded)
        return Verdict(
            self.unrecorded and self.unrecorded & self._configured((compiler,))
        )

    def _propagated(self, variant: VariantConstraint) -> Verdict:
        """Return the specs without another value in themselves or any dependency."""
        conn = self.lookups.conn
        contradicting = specs_of_configurations(conn, with_other_variant(conn, variant))
        needing = self.edges.with_ancestors(
            contradicting, self.edges.of_any_type(DEPTYPES)
        )
        possible = self.every - needing
        return Verdict(possible - self.unrecorded, possible & self.unrecorded)

    def _patched(self, variant: VariantConstraint) -> Verdict:
        """Return the specs with these patch checksums; pages print the beginning of
        each.
        """
        name = variant.name
        patched = self._with_parameters(
            lambda _, values: variant_matches(
                variant, Variant(name, tuple(values.get(name, ())), "multi")
            )
        )
        configured = self._configured(
            configuration_conditions(SpecQuery(variants=(variant,)))
        )
        return Verdict((patched | self.unrecorded) & configured)

    def _like(self, node: SpecQuery) -> Set[int] | None:
        """Return the specs of any package that satisfy a node of a query; None if all
        do.
        """
        records = self if self.package is None else self._whole
        conditions = (*configuration_conditions(node), *records.conditions(node))
        return records.satisfying(conditions).holds if conditions else None

    @cached_property
    def _whole(self) -> SpecRecords:
        return replace(self, package=None)

    def _configured(self, conditions: Conditions) -> Set[int]:
        ids = configuration_ids(self.lookups, conditions, every=True)
        return specs_of_configurations(self.lookups.conn, ids)

    def is_virtual(self, name: str) -> bool:
        """Return whether a name is a virtual package, and not a package of the
        database.
        """
        names = (VIRTUALS, self.edges.virtuals, self.lookups.providers)
        return name not in self.lookups.packages and any(
            name in group for group in names
        )
