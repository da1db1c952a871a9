"""Finds the specs that satisfy what only the records of indexes can decide.

These are the parts of queries that pages do not show: dependencies (`^zlib@1.3`,
`%gcc`), namespaces, compiler flags, whole patch checksums and propagated variants
(`++mpi`). They are compared as Spack 1.2 compares them with a concrete spec (`spec.py`:
`_satisfies`, `_get_satisfying_edge`).

A dependency of a query is an edge, and the constraints on it are its node, which is a
query again: `zlib@1.3`. The database has edges between specs, each with types such as
`link`, and with the virtual packages that it provides. An answer is a `Verdict`: the
ids of the specs that satisfy a part of a query, and of those for which the database
lacks the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from spack_cache_db.query.conditions.conditions import (
    OF_SPECS,
    Condition,
    Conditions,
    Verdict,
    all_of,
    compiler_condition,
    condition_value,
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
from spack_cache_db.query.match.recorded import NONE, RecordedSpecs
from spack_cache_db.query.match.selection import with_other_variant
from spack_cache_db.query.stored.binary import specs_beginning, specs_of_configurations
from spack_cache_db.spack.facts import DEPTYPES, LANGUAGES
from spack_cache_db.spack.matching import flags_match, variant_matches
from spack_cache_db.spack.normal_forms import Variant
from spack_cache_db.spack.printing import constraint_texts, spec_text
from spack_cache_db.spack.queries import (
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
)


@dataclass
class SpecRecords(RecordedSpecs):
    """The specs of a database, or of one package, that satisfy parts of queries.

    Sets of specs such as `every` and `unrecorded`, and `edges`, the dependencies of
    all specs, are inherited.

    Args:
        lookups: the database.
        package: the package; None for all.
        is_run_time: `^x` means link and run dependencies only, because Spack reuses a
            binary without its build dependencies. Otherwise it also means build and
            test dependencies of the spec itself.
    """

    is_run_time: bool = False
    _verdicts: dict[str, Verdict] = field(default_factory=dict, init=False)

    def conditions(self, query: SpecQuery) -> Conditions:
        """Return the conditions of a query that need records, such as `^zlib@1.3`."""
        conditions = []
        # Each part is a query of its own.
        for part in beyond_configurations(query):
            conditions.append(Condition("specs", spec_text(part), self._verdict(part)))
        return tuple(conditions)

    def satisfying(self, conditions: Conditions) -> Verdict:
        """Return the specs that satisfy conditions, whether they are binaries or
        not.
        """
        verdicts = []
        # The specs of the configurations that satisfy conditions on words.
        of_words = without(conditions, *OF_SPECS)
        if of_words:
            verdicts.append(Verdict(self.configured(of_words)))
        # The specs by their hashes and by their records.
        prefix = condition_value(conditions, "hash")
        if prefix is not None:
            verdicts.append(Verdict(specs_beginning(self.lookups.conn, prefix).keys()))
        of_records = condition_value(conditions, "specs")
        if of_records is not None:
            verdicts.append(of_records)
        return all_of(verdicts) if verdicts else Verdict(self.every)

    def notes(self, query: SpecQuery) -> tuple[str, ...]:
        """Return notes on how the dependencies of a query were read."""
        notes: list[str] = []
        # Specs without a record are compared by what pages show.
        direct = [edge for edge in query.dependencies if edge.direct]
        if direct and self.unrecorded:
            notes += notes_on_pages(direct)
        # Virtual packages, of which Spack compares the name only.
        for edge in query.dependencies:
            name = edge.node.name
            if name is None or not self.is_virtual(name):
                continue
            providers = self.lookups.providers.get(name)
            # The constraints beside the name: `mpi@3`.
            constraints = constraint_texts(replace(edge.node, name=None))
            if providers is not None and not self.has_virtuals:
                notes.append(
                    f"{name} is known to be provided by {', '.join(providers)}; "
                    "the indexes in this database do not show it"
                )
            elif any(constraints):
                notes.append(
                    f"{name} is a virtual package: only its name is compared, as in Spack"
                )
        return tuple(notes)

    def _verdict(self, query: SpecQuery) -> Verdict:
        """Return the verdict on a part of a query (`beyond_configurations`)."""
        # Cached, because the specs of an environment repeat the same few compilers.
        text = spec_text(query)
        verdict = self._verdicts.get(text)
        if verdict is None:
            # With its query, for which explanations say what exists instead.
            verdict = replace(self._verdict_on_all(query), query=query)
            self._verdicts[text] = verdict
        return verdict

    def _verdict_on_all(self, query: SpecQuery) -> Verdict:
        """Return the specs that satisfy all constraints of a query that need
        records.
        """
        verdicts = list(self._verdicts_on_parts(query))
        # The verdicts may be on specs of other packages: keep those of this package.
        if self.package is not None or not verdicts:
            verdicts.append(Verdict(self.every))
        return all_of(verdicts)

    def _verdicts_on_parts(self, query: SpecQuery) -> Iterator[Verdict]:
        """Yield a verdict for each constraint that needs records.

        Specs without a record may satisfy it.
        """
        if query.namespace is not None:
            yield Verdict(self.with_namespace(query.namespace), self.unrecorded)
        if query.flags:
            flags = query.flags
            with_flags = self.with_parameters(lambda values: flags_match(flags, values))
            yield Verdict(with_flags, self.unrecorded)
        for variant in query.variants:
            if variant.propagate:
                yield self._propagated(variant)
            elif needs_whole_patches(variant):
                yield self._patched(variant)
        for edge in query.dependencies:
            verdict = self._with_edge(edge)
            if edge.when is not None:
                # A spec that does not satisfy `when` needs no such edge.
                when = self.satisfying(self._all_conditions(edge.when))
                verdict = when.opposite(self.every) | verdict
            yield verdict

    def _propagated(self, variant: VariantConstraint) -> Verdict:
        """Return the specs without another value in themselves or any dependency: for
        `++shared`, those that do not need any `~shared`.
        """
        conn = self.lookups.conn
        contradicting = specs_of_configurations(conn, with_other_variant(conn, variant))
        all_types = self.edges.of_any_type(DEPTYPES)
        needing = self.edges.with_ancestors(contradicting, all_types)
        # Of specs without a record, the dependencies are not known.
        possible = self.every - needing
        return Verdict(possible - self.unrecorded, possible & self.unrecorded)

    def _patched(self, variant: VariantConstraint) -> Verdict:
        """Return the specs with these patch checksums.

        Records have whole checksums. Pages print the beginning of each, so specs
        without a record satisfy it if the beginnings do.
        """
        name = variant.name

        def has_patches(values: Mapping[str, Any]) -> bool:
            patches = Variant(name, tuple(values.get(name, ())), "multi")
            return variant_matches(variant, patches)

        patched = self.with_parameters(has_patches)
        of_beginnings = configuration_conditions(SpecQuery(variants=(variant,)))
        with_beginnings = self.configured(of_beginnings)
        return Verdict((patched | self.unrecorded) & with_beginnings)

    def _with_edge(self, edge: Dependency) -> Verdict:
        """Return the specs with an edge that satisfies an edge of a query.

        These edges of a spec are compared:

        - its own;
        - the compiler that an old record names, like a build dependency for all
          languages;
        - for `^`, link and run edges at any depth.
        """
        # Specs with a record. Some records lack virtual packages, and do not show which
        # dependency provides `mpi`. They do show the compiler of a language.
        satisfying = self._with_recorded_edge(edge)
        virtuals = set(edge.virtuals)
        if edge.node.name is not None and self.is_virtual(edge.node.name):
            virtuals.add(edge.node.name)
        needs_virtuals = not virtuals.issubset(LANGUAGES)
        unknown = self.without_virtuals if needs_virtuals else NONE
        recorded = Verdict(satisfying, unknown)

        # Specs without a record, of which pages show only a compiler.
        if edge.direct:
            return recorded | self._with_shown_compiler(edge)
        return recorded | Verdict(NONE, self.unrecorded)

    def _with_recorded_edge(self, edge: Dependency) -> Set[int]:
        """Return the specs with a record of an edge; see `_with_edge`."""
        edges = self.edges
        # The ids of sets of types: those that the edge may have, and those of link and
        # run edges.
        allowed_types = edges.of_all_types(edge.deptypes)
        run_time = set(edges.run_time)
        ends = list(self._ends(edge))
        # With `%`, the edges of the spec itself count.
        if edge.direct:
            satisfying = set(self._with_recorded_compiler(edge))
            return satisfying | self._with_own_edge(ends, allowed_types)

        # With `^`, link and run edges count at any depth.
        types_at_any_depth = run_time.intersection(allowed_types)
        needing: set[int] = set()
        for end in ends:
            needing |= edges.needing(end.specs, types_at_any_depth, end.virtuals)
        satisfying = edges.with_ancestors(needing, edges.run_time)
        # Build and test edges count if they are the spec's own; of a binary that is
        # reused, only if the query asks for types (`^[deptypes=build]`).
        if not self.is_run_time or edge.deptypes:
            satisfying |= self._with_recorded_compiler(edge)
            own_types = [key for key in allowed_types if key not in run_time]
            satisfying |= self._with_own_edge(ends, own_types)
        return satisfying

    def _with_own_edge(
        self, ends: Iterable[_EdgeEnd], types: Sequence[int]
    ) -> set[int]:
        """Return the specs that themselves have an edge of these types to an end."""
        needing: set[int] = set()
        for end in ends:
            needing |= self.edges.needing(end.specs, types, end.virtuals, self.among)
        return needing

    def _ends(self, edge: Dependency) -> Iterator[_EdgeEnd]:
        """Yield what an edge of a query may lead to."""
        node = edge.node
        virtuals = frozenset(edge.virtuals)
        # A package of this name.
        yield _EdgeEnd(self._like(node), virtuals)
        if node.name is None:
            return
        # A provider, if the name is a virtual package: the edge provides it. Of other
        # constraints, only those on its dependencies are compared, as in Spack. The
        # version of `mpi@3` is not that of a provider, and indexes do not have it.
        if node.name in self.edges.virtuals and node.versions is None:
            provider = self._like(SpecQuery(dependencies=node.dependencies))
            yield _EdgeEnd(provider, virtuals | {node.name})
        # A known provider, if no record has virtual packages.
        if not self.has_virtuals and self.is_virtual(node.name):
            for name in self.lookups.providers.get(node.name, ()):
                yield _EdgeEnd(self._like(replace(node, name=name)), virtuals)

    def _with_recorded_compiler(self, edge: Dependency) -> Set[int]:
        """Return the specs whose record names one compiler that satisfies an edge.

        Only its name and version are known, so propagated variants are ignored.
        """
        # The compiler is a build dependency that provides languages, and nothing else.
        is_of_build = set(edge.deptypes) <= {"build"}
        provides_languages = set(edge.virtuals).issubset(LANGUAGES)
        if not is_of_build or not provides_languages:
            return NONE
        # `%c` is any compiler.
        node = edge.node
        if node.name in LANGUAGES:
            has_constraints = node.versions or node.dependencies
            return NONE if has_constraints else self.with_compiler
        # A query with any other constraint cannot be compared. Here, all that can be
        # compared or does not matter is taken away: flags without a value ask for
        # nothing.
        others = replace(
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
        if others != SpecQuery():
            return NONE
        compiler = compiler_condition(CompilerConstraint(node.name, node.versions))
        return self.configured((compiler,)) & self.with_compiler

    def _with_shown_compiler(self, edge: Dependency) -> Verdict:
        """Return the specs without a record whose page shows this compiler; if the edge
        is about anything else, they are unknown.
        """
        if not self.unrecorded:
            return Verdict(NONE)
        # `when` has its own verdict (`_verdicts_on_parts`).
        unconditional = replace(edge, when=None)
        try:
            compiler = compiler_condition(compiler_of_pages(unconditional))
        except UnsupportedQuery:
            return Verdict(NONE, self.unrecorded)
        return Verdict(self.unrecorded & self.configured((compiler,)))

    def _like(self, node: SpecQuery) -> Set[int] | None:
        """Return the specs of any package that satisfy a node of a query; None if all
        do.
        """
        # A dependency is of another package than the spec.
        records = self if self.package is None else self._of_all_packages
        conditions = records._all_conditions(node)
        return records.satisfying(conditions).matching if conditions else None

    def _all_conditions(self, query: SpecQuery) -> Conditions:
        """Return all conditions of a query, with and without records."""
        return (*configuration_conditions(query), *self.conditions(query))

    @cached_property
    def _of_all_packages(self) -> SpecRecords:
        return replace(self, package=None)


class _EdgeEnd(NamedTuple):
    """What an edge of a query may lead to.

    Attributes:
        specs: the specs at its end; None for all.
        virtuals: the virtual packages that the edge must provide.
    """

    specs: Set[int] | None
    virtuals: frozenset[str]
