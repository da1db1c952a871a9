"""Finds the specs that satisfy conditions which only the records of indexes can decide.

These are parts of queries (dependencies, namespaces, compiler flags, whole patch checksums and
propagated variants), compared as Spack 1.2 compares them with a concrete spec (`spec.py`:
`_satisfies`, `_get_satisfying_edge`), and the requirements of an environment's `packages:`. If
several indexes have a record of a spec, the first one by release and path counts. A spec that only
pages list has no record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import chain
from operator import and_
from typing import Any

from spack_cache_db.database_file import stored_json
from spack_cache_db.environments.rules import ALL, PackageRules, Requirement
from spack_cache_db.query import graph
from spack_cache_db.query.conditions import (
    COMPILERS,
    OF_SPECS,
    VIRTUALS,
    Condition,
    Conditions,
    OneOf,
    Question,
    UnsupportedQuery,
    Verdict,
    Word,
    asked,
    beyond_configurations,
    compiler_condition,
    compiler_of_pages,
    conditions_beside_records,
    configuration_conditions,
    needs_whole_patches,
    notes_on_pages,
    only,
    question_of_pages,
    without,
)
from spack_cache_db.query.configurations import Spec, specs_beginning, specs_of_configurations
from spack_cache_db.query.database import Lookups, has_records, select, select_ids, select_in
from spack_cache_db.query.names import read_spellings
from spack_cache_db.query.selection import configuration_ids, with_other_variant
from spack_cache_db.spack.facts import DEPTYPES, LANGUAGES
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained
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
# Edges have virtuals since database 7 and specfile 4; layout 2 has spec files of any version.
WITHOUT_VIRTUALS = """
SELECT id FROM mirrors
WHERE format IN ('5', '6', 'spec file 1', 'spec file 2', 'spec file 3')
  OR format = 'spec files, layout 2' AND NOT EXISTS (
    SELECT 1 FROM records
    JOIN dependencies ON dependencies.spec = records.spec
    JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.virtuals
    WHERE records.mirror = mirrors.id AND dependency_virtuals.virtuals <> '')
"""
_NONE: frozenset[int] = frozenset()
_NAMED_IN_SPECS = {"name": "dependency"} | {
    name: name for name in ("target", "os", "platform", "hash")
}
"""The parts of a spec that are names, and their kinds (`Spellings`)."""
RECORDED_PROVIDERS = """
SELECT DISTINCT packages.name FROM dependencies
JOIN specs ON specs.id = dependencies.dependency
JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
WHERE dependencies.virtuals IN (SELECT value FROM json_each(:sets))
ORDER BY packages.name
"""
OPTION = """
SELECT 1 FROM configurations
JOIN variant_set_members ON variant_set_members.variant_set = configurations.variants
JOIN variants ON variants.id = variant_set_members.variant
JOIN packages ON packages.id = configurations.package
WHERE packages.name = :package AND variants.text = :on LIMIT 1
"""
RUNTIMES = frozenset({"compiler-wrapper", "gcc-runtime", "glibc", "intel-oneapi-runtime", "musl"})
"""The packages with the tag `runtime`; `all` cannot require dependencies of them and compilers."""
MOST_EXPLAINED = 6
"""Maximum of requirements on one package that are explained one by one."""
MOST_NAMED = 3
USED_PROVIDERS = """
SELECT DISTINCT dependency FROM dependencies
WHERE virtuals IN (SELECT value FROM json_each(:virtuals))
  AND types IN (SELECT value FROM json_each(:types))
"""
_Broken = tuple[Set[int], Set[int], Set[int]]
"""The specs that break a requirement or use a provider that does, those for which this is unknown,
and those that an explanation names."""


@dataclass
class SpecRecords:
    """The records of a database, or of one package's specs, read at first use.

    With `is_run_time`, `^x` means link and run dependencies only, because Spack reuses a binary
    without its build dependencies.
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
        """Return the specs that satisfy conditions, whether they are binaries or not."""
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
            parts += [Verdict(self.every)] if self.package is not None or not parts else []
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
        """The specs whose record lacks the virtual packages that its dependencies provide."""
        mirrors = self._mirrors_without_virtuals
        return {spec for spec, _, mirror in (self._first if mirrors else ()) if mirror in mirrors}

    @cached_property
    def has_virtuals(self) -> bool:
        """Whether any index has the virtual packages that dependencies provide."""
        mirrors = select_ids(self.lookups.conn, "SELECT id FROM mirrors")
        return not mirrors <= self._mirrors_without_virtuals

    @cached_property
    def _mirrors_without_virtuals(self) -> Set[int]:
        return select_ids(self.lookups.conn, WITHOUT_VIRTUALS)

    def _with_parameters(self, is_as_asked: Callable[[str, Mapping[str, Any]], bool]) -> Set[int]:
        """Return the specs whose node's namespace and parameters satisfy a function."""
        nodes = select(self.lookups.conn, "SELECT id, namespace, parameters FROM nodes")
        return self._with_node(
            {key for key, space, values in nodes if is_as_asked(space, stored_json(values))}
        )

    def _with_node(self, nodes: Set[int]) -> Set[int]:
        return {spec for spec, node, _ in (self._first if nodes else ()) if node in nodes}

    @cached_property
    def _first(self) -> list[tuple[Any, ...]]:
        """The record of each spec that counts: spec, node and mirror."""
        # SQLite takes the node from the row that has the minimum ("SELECT", 2.5).
        conn, all_records = self.lookups.conn, "SELECT spec, node, min(mirror) FROM records"
        if self.among is None:
            return [*select(conn, f"{all_records} GROUP BY spec")]
        where = "WHERE spec IN (SELECT value FROM json_each(:ids))"
        return [*select_in(conn, f"{all_records} {where} GROUP BY spec", self.among)]

    def notes(self, query: SpecQuery) -> tuple[str, ...]:
        """Return notes on how the dependencies of a query were read."""
        direct = [edge for edge in query.dependencies if edge.direct]
        notes = [*(notes_on_pages(direct) if direct and self.unrecorded else ())]
        nodes = ((edge.node.name or "", edge.node) for edge in query.dependencies)
        for name, node in ((name, node) for name, node in nodes if self.is_virtual(name)):
            if name in self.lookups.providers and not self.has_virtuals:
                notes.append(
                    f"{name} is known to be provided by {', '.join(self.lookups.providers[name])}; "
                    "the indexes in this database do not show it"
                )
            elif any(constraint_texts(replace(node, name=None))):
                notes.append(f"{name} is a virtual package: only its name is compared, as in Spack")
        return tuple(notes)

    def _parts(self, query: SpecQuery) -> Iterator[Verdict]:
        """Yield a verdict for each constraint that needs records."""
        if (name := query.namespace) is not None:
            yield Verdict(self._with_parameters(lambda space, _: space == name), self.unrecorded)
        if flags := query.flags:
            with_flags = self._with_parameters(lambda _, values: flags_match(flags, values))
            yield Verdict(with_flags, self.unrecorded)
        for variant in query.variants:
            if variant.propagate:
                yield self._propagated(variant)
            elif needs_whole_patches(variant):
                yield self._patched(variant)
        for edge in query.dependencies:
            verdict = self._with_edge(edge)
            if edge.when is not None:
                when = (*configuration_conditions(edge.when), *self.conditions(edge.when))
                verdict = self.satisfying(when).opposite(self.every) | verdict
            yield verdict

    def _with_edge(self, edge: Dependency) -> Verdict:
        """Return the specs with an edge that satisfies an edge of a query.

        The edge is one of the spec itself; or the compiler that an old record names, as a build
        dependency for all languages; or, for `^`, a link or run edge at any depth.
        """
        edges, unrecorded = self.edges, self.unrecorded
        types, run_time = edges.of_all_types(edge.deptypes), edges.run_time
        # With `^`, link and run edges are searched at any depth below.
        own_types = [types_id for types_id in types if edge.direct or types_id not in run_time]
        holds, below = {*self._with_recorded_compiler(edge)}, set[int]()
        if self.is_run_time and not edge.direct and not edge.deptypes:
            own_types, holds = [], set()
        for of, virtuals in self._ways(edge):
            holds |= edges.needing(of, own_types, virtuals, self.among)
            if not edge.direct:
                below |= edges.needing(of, {*types}.intersection(run_time), virtuals)
        holds |= edges.with_ancestors(below, run_time)
        virtuals_of_edge = {*edge.virtuals, *filter(self.is_virtual, (edge.node.name or "",))}
        unknown = self.without_virtuals if virtuals_of_edge.difference(LANGUAGES) else _NONE
        on_pages = self._shown_compiler(edge) if edge.direct else Verdict(_NONE, unrecorded)
        return Verdict(holds, unknown - unrecorded) | on_pages

    def _ways(self, edge: Dependency) -> Iterator[tuple[Set[int] | None, Set[str]]]:
        """Yield the specs that an edge may lead to, None for all, and the virtuals they provide."""
        node, virtuals = edge.node, frozenset(edge.virtuals)
        yield self._like(node), virtuals
        if node.name in self.edges.virtuals and node.versions is None:
            yield self._like(SpecQuery(dependencies=node.dependencies)), virtuals | {node.name}
        if not self.has_virtuals and self.is_virtual(node.name or ""):
            for name in self.lookups.providers.get(node.name or "", ()):
                yield self._like(replace(node, name=name)), virtuals

    def _with_recorded_compiler(self, edge: Dependency) -> Set[int]:
        """Return the specs whose record names one compiler that satisfies an edge.

        Only its name and version are known, so propagated variants are ignored.
        """
        node = edge.node
        if not ({*edge.deptypes} <= {"build"} and {*edge.virtuals}.issubset(LANGUAGES)):
            return _NONE
        if node.name in LANGUAGES:
            return _NONE if node.versions or node.dependencies else self.with_compiler
        more = replace(
            node,
            name=None,
            namespace=None,
            versions=None,
            variants=tuple(variant for variant in node.variants if not variant.propagate),
            flags=tuple(flag for flag in node.flags if flag.value.split()),
            text="",
        )
        if more != SpecQuery():
            return _NONE
        compiler = compiler_condition(CompilerConstraint(node.name, node.versions))
        return self._configured((compiler,)) & self.with_compiler

    def _shown_compiler(self, edge: Dependency) -> Verdict:
        """Return the specs without a record whose page shows this compiler."""
        try:
            compiler = compiler_condition(compiler_of_pages(replace(edge, when=None)))
        except UnsupportedQuery:
            return Verdict(_NONE, self.unrecorded)
        return Verdict(self.unrecorded and self.unrecorded & self._configured((compiler,)))

    def _propagated(self, variant: VariantConstraint) -> Verdict:
        """Return the specs without another value in themselves or any dependency."""
        conn = self.lookups.conn
        contradicting = specs_of_configurations(conn, with_other_variant(conn, variant))
        needing = self.edges.with_ancestors(contradicting, self.edges.of_any_type(DEPTYPES))
        possible = self.every - needing
        return Verdict(possible - self.unrecorded, possible & self.unrecorded)

    def _patched(self, variant: VariantConstraint) -> Verdict:
        """Return the specs with these patch checksums; pages print the beginning of each."""
        name = variant.name
        patched = self._with_parameters(
            lambda _, values: variant_matches(
                variant, Variant(name, tuple(values.get(name, ())), "multi")
            )
        )
        configured = self._configured(configuration_conditions(SpecQuery(variants=(variant,))))
        return Verdict((patched | self.unrecorded) & configured)

    def _like(self, node: SpecQuery) -> Set[int] | None:
        """Return the specs of any package that satisfy a node of a query; None if all do."""
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
        """Return whether a name is a virtual package, and not a package of the database."""
        names = (VIRTUALS, self.edges.virtuals, self.lookups.providers)
        return name not in self.lookups.packages and any(name in group for group in names)


def question_of(lookups: Lookups, query: SpecQuery, scope: Conditions = ()) -> Question:
    """Return the conditions of a query in any spelling (`Spellings`) and its scope, with notes.

    Raises UnsupportedQuery if the database cannot answer the query.
    """
    query, spelled = respelled(lookups, query)
    package = asked(scope, "package")
    name = query.name or (package.text if isinstance(package, Word) else None)
    records = SpecRecords(lookups, name)
    question = read_query(records, query)
    notes = records.notes(query) if only(question.conditions, "specs") else ()
    notes = (*spelled, *question.notes, *notes)
    return Question((*question.conditions, *scope), notes, query)


def respelled(lookups: Lookups, query: SpecQuery) -> tuple[SpecQuery, tuple[str, ...]]:
    """Return a query with canonical names, and a note on each name that was replaced."""
    spellings, notes = read_spellings(lookups), []
    changes: dict[str, Any] = {}
    for part, kind in _NAMED_IN_SPECS.items():
        text = getattr(query, part)
        if text is not None and (name := spellings.canonical(kind, text)) != text:
            changes[part] = name
            notes.append(f"{text} is read as {name}")
    nodes = [respelled(lookups, edge.node) for edge in query.dependencies]
    notes += chain.from_iterable(node_notes for _, node_notes in nodes)
    if not notes:
        return query, ()
    edges = zip(query.dependencies, nodes, strict=True)
    dependencies = tuple(replace(edge, node=node) for edge, (node, _) in edges)
    return replace(query, dependencies=dependencies, **changes), tuple(notes)


def read_query(records: SpecRecords, query: SpecQuery) -> Question:
    """Return the conditions of a query with canonical names, without notes on its records.

    A virtual name is a package like any other if the database has a package of that name. Raises
    UnsupportedQuery if the database cannot answer the query.
    """
    name, is_package = query.name, query.name in records.lookups.packages
    if name is not None and not is_package and (provided := _provided(records, query, name)):
        question = read_query(replace(records, package=None), replace(query, name=None))
        names = ", ".join(sorted(provided))
        note = f"the virtual package {name} is known to be provided by {names}"
        condition = Condition("package", name, OneOf(provided))
        return Question((condition, *question.conditions), (note, *question.notes))
    if beyond_configurations(query) and has_records(records.lookups.conn):
        conditions = conditions_beside_records(query, records.is_virtual)
        return Question((*conditions, *records.conditions(query)))
    hint = partial(_instead, records, query)
    return question_of_pages(query, hint, is_package=is_package)


def _provided(records: SpecRecords, query: SpecQuery, name: str) -> frozenset[str]:
    """Return the packages that provide a name; empty if it is not a virtual package.

    Raises UnsupportedQuery if package data has no provider, or for versions and variants, which
    providers do not share.
    """
    sets = records.edges.of_virtuals({name})
    rows = select(records.lookups.conn, RECORDED_PROVIDERS, sets=json.dumps(sets)) if sets else ()
    recorded = [name for (name,) in rows]
    listed = records.lookups.providers.get(name, ())
    if recorded and not listed:
        raise UnsupportedQuery(
            f"{name} is a virtual package, provided in this database by "
            f"{', '.join(recorded)}: ask for a provider by name"
        )
    providers = sorted({*listed, *recorded})
    if providers and (query.versions is not None or query.variants):
        raise UnsupportedQuery(
            f"{name} is a virtual package: its versions and options are in Spack's recipes; "
            f"ask for a provider by name: {', '.join(providers)}"
        )
    return frozenset(providers)


def _instead(records: SpecRecords, query: SpecQuery, dependency: str | None) -> str:
    """Return advice if dependencies are unknown: the providers, and the variant of that name."""
    providers = records.lookups.providers.get(dependency or "", ())
    words = [f"{dependency} is known to be provided by {', '.join(providers)}"] if providers else []
    parameters = {"package": query.name, "on": f"+{dependency}"}
    if any(select(records.lookups.conn, OPTION, **parameters)):
        words.append(f"{f'{query.name}+{dependency}'!r} requires its variant")
    return "".join(f"; {text}" for text in words)


class CheckedRules:
    """The requirements of an environment, checked for all specs of a database.

    A requirement, conflict or preference (`prefer`) applies to a spec and its run-time
    dependencies, because Spack reuses a binary together with these (Spack 1.2,
    `solver/requirements.py` and `concretize.lp`). Build dependencies are not checked, except
    providers of `c`, `cxx` and `fortran`. Requirements of `all` are not checked for externals, and
    `buildable: false` excludes no binary. Without dependency data, requirements on the packages
    `roots` are checked for their own specs, and do not make all others unknown.
    """

    def __init__(self, records: SpecRecords, rules: PackageRules, roots: Set[str]) -> None:
        self._records = records = replace(records, is_run_time=True)
        self._roots = roots
        self._checks: list[_Check] = []
        run_time, with_users = records.edges.run_time, records.edges.with_ancestors
        for kind in (rules.required, rules.conflicts, rules.preferred):
            # `all` applies to packages without an entry.
            packages = [name for name in kind if kind[name] and name in records.lookups.packages]
            pairs = ((owner, requirement) for owner in kind for requirement in kind[owner])
            for owner, requirement in pairs:
                breaking, unknown, named = self._broken(owner, requirement, packages)
                excluded = with_users(breaking, run_time)
                unknown = with_users(unknown, run_time) - excluded
                self._checks.append(_Check(owner, requirement, named, excluded, unknown))

    def dropped_for(self, query: SpecQuery) -> frozenset[Requirement]:
        """Return the preferences that a spec contradicts, which Spack drops for it."""
        return frozenset(
            check.requirement
            for check in self._checks
            if check.requirement.is_preferred and _contradicts(query, check)
        )

    def conditions(self, ids: Set[int], dropped: Set[Requirement] = frozenset()) -> Conditions:
        """Return the requirements that one of the specs may break, as conditions.

        Args:
            ids: the specs, which are those of one package.
            dropped: preferences that do not count (`dropped_for`).
        """
        verdicts = []
        for check in self._checks:
            if check.requirement in dropped:
                continue
            holds = ids - check.excluded - check.unknown
            if len(holds) < len(ids):
                query = check.option if ids & check.named else None
                verdict = Verdict(holds, check.unknown & ids, query, check.named)
                verdicts.append((check.label, verdict))
        if len(verdicts) > MOST_EXPLAINED:
            label = f"'packages:' ({len(verdicts)} requirements)"
            named = _NONE.union(*(verdict.named or () for _, verdict in verdicts))
            combined = reduce(and_, (verdict for _, verdict in verdicts))
            verdicts = [(label, replace(combined, named=named))]
        return tuple(Condition("specs", label, verdict) for label, verdict in verdicts)

    def _broken(self, owner: str, requirement: Requirement, packages: list[str]) -> _Broken:
        if owner == ALL:
            return self._of_all(requirement, packages)
        when = requirement.when or SpecQuery()
        # Conditions on other packages cannot be checked.
        is_seen = when.name in (None, owner)
        if owner not in self._records.lookups.packages:
            return self._of_virtual(requirement, owner, is_seen and when.versions is None)
        specs = self._of(owner)

        def verdict_of(query: SpecQuery) -> Verdict:
            return self._satisfying(query if query.name else replace(query, name=owner))

        breaking, unknown = _breaking(requirement, verdict_of, specs, is_seen)
        # A package does not depend on itself.
        unrecorded = _NONE if owner in self._roots else self._records.unrecorded - specs
        return breaking, unknown | unrecorded, breaking

    def _of_all(self, requirement: Requirement, packages: list[str]) -> _Broken:
        """Check a requirement of `all`.

        An option applies only to packages that have its variants; one with dependencies does not
        apply to compilers and their runtimes.
        """
        provided = graph.externals(self._records.lookups)
        specs = self._records.every - provided.union(*map(self._of, packages))
        exempt: Set[int] = specs
        for option in requirement.options:
            not_counting: Set[int] = _NONE
            for variant in option.variants:
                exists = SpecQuery(variants=(VariantConstraint(variant.name, (), "multi"),))
                not_counting |= specs - self._satisfying(exists).holds
            for name in COMPILERS | RUNTIMES if option.dependencies else ():
                not_counting |= self._of(name)
            exempt = exempt & not_counting
        breaking, unknown = _breaking(requirement, self._satisfying, specs)
        return breaking - exempt, unknown - exempt, breaking - exempt

    def _of_virtual(self, requirement: Requirement, virtual: str, is_seen: bool) -> _Broken:
        """Check a requirement on a virtual package: it applies to the providers in use.

        A virtual package has no variants, flags, compiler or dependencies: a `when` with one of
        them never holds. Only recipes have its versions.
        """
        when, records, edges = requirement.when, self._records, self._records.edges
        if when and (when.variants or when.flags or when.dependencies):
            return _NONE, _NONE, _NONE
        types = edges.of_any_type(DEPTYPES) if virtual in LANGUAGES else edges.run_time
        used = {"virtuals": json.dumps(edges.of_virtuals({virtual})), "types": json.dumps(types)}
        providers = select_ids(records.lookups.conn, USED_PROVIDERS, None, **used)

        def verdict_of(query: SpecQuery) -> Verdict:
            return self._satisfying(replace(query, name=None) if query.name == virtual else query)

        def of_compiler(query: SpecQuery) -> Verdict:
            edge = Dependency(query, direct=True, virtuals=(virtual,))
            return self._satisfying(SpecQuery(dependencies=(edge,)))

        broken = _breaking(requirement, verdict_of, providers, is_seen)
        users, unknown = (
            edges.needing(specs, types, frozenset({virtual})) if specs else _NONE
            for specs in broken
        )
        if virtual not in LANGUAGES:
            return users, unknown | records.unrecorded | records.without_virtuals, broken[0]
        # Specs from before Spack 1.0 have one compiler.
        requirement = replace(requirement, when=None)
        old, _ = _breaking(requirement, of_compiler, records.with_compiler)
        return users | old, unknown | records.unrecorded, broken[0] | old

    def _of(self, package: str) -> Set[int]:
        if package not in self._records.lookups.packages:
            return _NONE
        return self._satisfying(SpecQuery(name=package)).holds

    def _satisfying(self, query: SpecQuery) -> Verdict:
        """Return the verdict on all specs, binaries or not, for a query."""
        try:
            query, _ = respelled(self._records.lookups, query)
            return self._records.satisfying(read_query(self._records, query).conditions)
        except UnsupportedQuery:
            return Verdict(_NONE, self._records.every)


@dataclass(frozen=True, slots=True, eq=False)
class _Check:
    """A requirement on a package, a virtual package or `all`, checked for all specs.

    Attributes:
        named: the specs that an explanation names.
        excluded: the specs that break it, or link or run one that does.
        unknown: the specs for which this is unknown.
    """

    owner: str
    requirement: Requirement
    named: Set[int]
    excluded: Set[int]
    unknown: Set[int]

    @property
    def option(self) -> SpecQuery | None:
        """The only option of the requirement, if it has one and no condition."""
        requirement = self.requirement
        if len(requirement.options) != 1 or requirement.when is not None:
            return None
        return None if requirement.is_conflict else requirement.options[0]

    @property
    def label(self) -> str:
        """The requirement as it is written in `packages:`."""
        return _label(self.owner, self.requirement)


def _contradicts(query: SpecQuery, check: _Check) -> bool:
    """Return whether a spec, or its constraint on a dependency, contradicts all options."""
    named = [query] if check.owner in (query.name, ALL) else []
    named += [edge.node for edge in query.dependencies if edge.node.name == check.owner]
    return any(
        not any(_intersects(node, option) for option in check.requirement.options) for node in named
    )


def _intersects(node: SpecQuery, option: SpecQuery) -> bool:
    try:
        constrained(replace(node, name=option.name and node.name), option)
    except UnsatisfiableSpec:
        return False
    return True


def _label(owner: str, requirement: Requirement) -> str:
    """Return a requirement as it is written in `packages:`, on one line."""
    texts = [spec_text(option) for option in requirement.options[:MOST_NAMED]]
    texts += ["…"] if len(requirement.options) > MOST_NAMED else []
    group = "" if len(texts) < 2 else "one_of " if requirement.is_single else "any_of "
    when = f" when {spec_text(requirement.when)}" if requirement.when else ""
    key = "require"
    if requirement.is_conflict:
        key = "conflict"
    elif requirement.is_preferred:
        key = "prefer"
    return f"'packages: {owner}: {key}: {group}{', '.join(texts)}{when}'"


def _breaking(
    requirement: Requirement,
    verdict_of: Callable[[SpecQuery], Verdict],
    specs: Set[int],
    is_seen: bool = True,
) -> tuple[Set[int], Set[int]]:
    """Return the specs that break a requirement, and those for which this is unknown.

    If its condition cannot be checked (`is_seen`), specs that do not meet it are unknown.
    """
    any_met = two_met = Verdict(_NONE)
    for verdict in map(verdict_of, requirement.options):
        any_met, two_met = any_met | verdict, two_met | (any_met & verdict)
    meets = any_met & two_met.opposite(specs) if requirement.is_single else any_met
    if requirement.is_conflict:
        meets = any_met.opposite(specs)
    if not is_seen:
        return _NONE, specs - meets.holds
    if requirement.when is not None:
        meets = verdict_of(requirement.when).opposite(specs) | meets
    return specs - meets.holds - meets.unknown, specs & meets.unknown


def breaking_dependencies(lookups: Lookups, verdicts: Sequence[Verdict], spec: Spec) -> list[str]:
    """Return the dependencies of a spec that break requirements which the spec itself meets."""
    groups = [verdict.named or _NONE for verdict in verdicts]
    named = _NONE.union(*(specs for specs in groups if spec.id not in specs))
    needs = graph.read_run_time(lookups, [spec.id] if named else [])
    nodes = graph.read_nodes(lookups.conn, needs.edges)
    return sorted(f"{nodes[key].package}@{nodes[key].version}" for key in named & nodes.keys())
