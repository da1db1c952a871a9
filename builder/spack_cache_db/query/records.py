"""Finds the specs that satisfy the parts of a query that need the records of indexes.

Dependencies, namespaces, compiler flags, whole patch checksums and propagated variants are compared
as Spack 1.2 compares them with a concrete spec (`spec.py`: `_satisfies`, `_get_satisfying_edge`,
`_satisfies_edge`, `_satisfies_node`). If several indexes have a record of a spec, the first one by
release and path counts. A spec that only pages list has no record.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import chain
from operator import and_
from typing import Any

from spack_cache_db.query.conditions import (
    ANYWHERE,
    COMPILERS,
    VIRTUALS,
    Condition,
    Conditions,
    OneOf,
    Question,
    UnsupportedQuery,
    Verdict,
    Word,
    asked,
    without,
)
from spack_cache_db.query.configurations import (
    configuration_ids,
    read_providers,
    specs_beginning,
    specs_of_configurations,
    with_other_variant,
)
from spack_cache_db.query.database import Lookups, select, select_in
from spack_cache_db.query.graph import RUN_TIME, Dependencies, recorded_specs
from spack_cache_db.query.names import read_spellings
from spack_cache_db.spack.constraints import (
    DEPTYPES,
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
    constraint_texts,
    flags_match,
    spec_text,
    variant_matches,
    variant_text,
)
from spack_cache_db.spack.normal_forms import LANGUAGES, PATCH_PRINTED, Variant
from spack_cache_db.spack.targets import unknown_bounds
from spack_cache_db.spack.versions import is_git_version

ANY_RECORD = "SELECT 1 FROM records LIMIT 1"
SPECS = "SELECT id FROM specs"
UNRECORDED = """
SELECT id FROM specs WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.spec = specs.id)
"""
# SQLite takes the node from the row that has the minimum ("SELECT", 2.5).
FIRST_RECORDS = "SELECT spec, node, min(mirror) FROM records {} GROUP BY spec"
NODES = "SELECT id, namespace, parameters FROM nodes"
WITH_COMPILER = "SELECT id FROM nodes WHERE has_compiler"
"""Nodes from before Spack 1.0: they name one compiler and have no edge to it."""
MIRRORS = "SELECT id FROM mirrors"
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
_OF_THE_HOST = frozenset(
    {"default_os", "default_target", "default_platform", "frontend", "fe", "backend", "be"}
)
MOST_PARTS = 8
"""A query with more parts that need records is evaluated as one condition."""
Way = tuple[Set[int] | None, Set[str]]
"""The specs that an edge may lead to, None for all, and the virtual packages that it provides."""
_NONE: frozenset[int] = frozenset()
_NAMED_IN_SPECS = {
    "name": "dependency",
    "target": "target",
    "os": "os",
    "platform": "platform",
    "hash": "hash",
}
"""The parts of a spec that are names, and their kinds (`Spellings`)."""
EXPLICIT = "SELECT spec FROM installs WHERE explicit"
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


def has_records(conn: sqlite3.Connection) -> bool:
    """Return whether a database has records of indexes."""
    return next(select(conn, ANY_RECORD), None) is not None


def configuration_conditions(query: SpecQuery) -> Conditions:
    """Return a query's conditions on configurations and on the hash."""
    conditions = []
    if query.name is not None:
        conditions.append(Condition("package", query.name, Word(query.name)))
    if query.versions is not None:
        conditions.append(Condition("version", f"@{query.versions.text}", query.versions))
    for variant in query.variants:
        if not variant.propagate:
            # The column is the position in the text, which does not change the meaning.
            asks = replace(variant, column=0)
            conditions.append(Condition("variant", variant_text(variant), asks))
    for kind in ("platform", "os", "target"):
        if (value := getattr(query, kind)) is not None:
            word = value if kind == "target" else Word(value)
            conditions.append(Condition(kind, f"{kind}={value}", word))
    if query.hash is not None:
        conditions.append(Condition("hash", f"/{query.hash}", query.hash))
    return tuple(dict.fromkeys(conditions))


def compiler_condition(compiler: CompilerConstraint) -> Condition:
    """Return the condition on the one compiler of a configuration."""
    versions = f"@{compiler.versions.text}" if compiler.versions else ""
    return Condition("compiler", f"%{compiler.name}{versions}", compiler)


def beyond_configurations(query: SpecQuery) -> list[SpecQuery]:
    """Return the parts of a query that need records, each of which becomes one condition.

    More than `MOST_PARTS` parts are returned as one.
    """
    beyond = SpecQuery(
        namespace=query.namespace,
        variants=tuple(
            variant
            for variant in query.variants
            if variant.propagate or needs_whole_patches(variant)
        ),
        flags=query.flags,
        dependencies=query.dependencies,
    )
    parts = [
        *([SpecQuery(namespace=beyond.namespace)] if beyond.namespace is not None else []),
        *([SpecQuery(flags=beyond.flags)] if beyond.flags else []),
        *(SpecQuery(variants=(variant,)) for variant in beyond.variants),
        *(SpecQuery(dependencies=(dependency,)) for dependency in beyond.dependencies),
    ]
    return parts if len(parts) <= MOST_PARTS else [beyond]


def needs_whole_patches(constraint: VariantConstraint) -> bool:
    """Return whether a constraint needs more of patch checksums than Spack prints."""
    longest = max(map(len, constraint.values), default=0)
    return constraint.name == "patches" and (constraint.exact or longest > PATCH_PRINTED)


def notes_on_pages(edges: Sequence[Dependency]) -> tuple[str, ...]:
    """Return notes on the compilers of an answer from pages."""
    notes = (
        "one compiler per binary is known, the one for C where C is used; "
        "compilers of other languages, and gcc or llvm used as a library, are not seen",
        "this database does not show which languages a package uses: "
        "%c,cxx=… is answered as % with the compiler alone",
    )
    count = 2 if any(edge.virtuals for edge in edges) else 1 if edges else 0
    return notes[:count]


def _refuse(reasons: Mapping[str, object]) -> None:
    """Raise UnsupportedQuery with the first reason that applies."""
    if applying := [reason for reason, applies in reasons.items() if applies]:
        raise UnsupportedQuery(applying[0])


def compiler_of_pages(edge: Dependency) -> CompilerConstraint:
    """Return a dependency as a constraint on the one compiler that a page shows.

    Raises:
        UnsupportedQuery: it is a constraint on something else.
    """
    node, name, what = edge.node, edge.node.name, f"%{edge.node.name or ''}"
    unknown = ", ".join(virtual for virtual in edge.virtuals if virtual not in LANGUAGES)
    more = replace(node, name=None, versions=None, text="") != SpecQuery()
    _refuse(
        {
            f"'%{what}' only guides Spack's solver; write {what!r}": edge.propagate,
            f"this database does not show how {name or 'a dependency'} is used (deptypes=, when=): "
            f"only {what!r} can be answered": edge.deptypes or edge.when is not None,
            "this database has no dependency data; name a compiler after '%'": name is None,
            f"this database does not have the providers of {unknown}": unknown,
            "this database has the compiler for C, not the one for Fortran": {*edge.virtuals}
            == {"fortran"},
            f"this database does not show which languages a package uses ({what!r})": name
            in LANGUAGES,
            f"this database has no dependency data, and {name} is not known as a compiler": not (
                edge.virtuals or name in COMPILERS
            ),
            f"constraints after {what} apply to {name}, and this database has only its version; "
            "write constraints on the package itself before the '%'": more,
        }
    )
    _check_node(node)
    return CompilerConstraint(name, node.versions)


def _check_node(query: SpecQuery) -> None:
    """Raise UnsupportedQuery for names that depend on a machine, and unknown git versions."""
    for part in query.versions.text.split(",") if query.versions else ():
        bare = part.removeprefix("=")
        if is_git_version(bare) and "=" not in bare and ":" not in bare:
            raise UnsupportedQuery(
                f"only a git repository has the version of {bare!r}: write '@{bare}=<version>'"
            )
    for value in (query.os, query.platform, query.target):
        if value in _OF_THE_HOST:
            raise UnsupportedQuery(f"{value!r} depends on a machine: write the name itself")
    if unknown := unknown_bounds(query.target or ""):
        raise UnsupportedQuery(
            f"archspec does not know the target {unknown[0]!r}, so it cannot bound a range"
        )


def check_answerable(query: SpecQuery, hint: Callable[[str | None], str] = lambda _: "") -> None:
    """Raise UnsupportedQuery for constraints that pages cannot answer.

    Args:
        hint: returns the advice on a dependency, given its name.
    """
    needed = next((edge.node.name or "" for edge in query.dependencies if not edge.direct), None)
    instead = "" if needed is None else hint(needed or None)
    doubled = next((variant.name for variant in query.variants if variant.propagate), None)
    flags = ", ".join(flag.name for flag in query.flags)
    check_recorded(replace(query, dependencies=()), VIRTUALS.__contains__)
    _refuse(
        {
            "this database has no namespaces; write the package's name alone": query.namespace
            is not None,
            f"this database has no compiler flags ({flags}=)": query.flags,
            f"the doubled sign of {doubled!r} is about dependencies too, and this database has no "
            "dependency data; write the sign once": doubled is not None,
            f"this database has no dependency data for {f'^{needed}'!r}; build it from an index or "
            f"a mirror{instead}": needed is not None,
        }
    )
    for edge in query.dependencies:
        compiler_of_pages(edge)
    names = {edge.node.name for edge in query.dependencies}
    _refuse({"this database has one compiler per binary; write only one": len(names) > 1})


def check_recorded(query: SpecQuery, is_virtual: Callable[[str], bool]) -> None:
    """Raise UnsupportedQuery for constraints that the records of indexes cannot answer."""
    if query.name is not None and is_virtual(query.name):
        raise UnsupportedQuery(
            f"{query.name} is a virtual package: its providers are in Spack's recipes, not in pages"
            " or indexes; ask for a provider by name"
        )
    _check_node(query)
    for edge in query.dependencies:
        name, node = edge.node.name, edge.node
        if name is not None and is_virtual(name):
            if node.versions is not None:
                raise UnsupportedQuery(
                    f"{name} is a virtual package: its versions are in Spack's recipes, not in "
                    f"indexes; ask for a provider: '{'%' if edge.direct else '^'}{name}=<package>'"
                )
            node = replace(node, name=None)
        check_recorded(node, is_virtual)
        if edge.when is not None:
            check_recorded(edge.when, is_virtual)


@dataclass
class SpecRecords:
    """The records of a database, read at first use.

    Attributes:
        lookups: the small tables of the database, which cache data for all packages.
        package: the only package whose specs are searched; None for all.
        is_run_time: whether `^x` means link and run dependencies only, because Spack reuses a
            binary without its build dependencies.
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
        if words := without(conditions, "specs", "hash"):
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
    def edges(self) -> Dependencies:
        """The dependencies of all specs."""
        return Dependencies(self.lookups.conn)

    @cached_property
    def every(self) -> Set[int]:
        """The specs of `package`, or all specs."""
        if self.among is not None:
            return self.among
        return frozenset(chain.from_iterable(select(self.lookups.conn, SPECS)))

    @cached_property
    def unrecorded(self) -> frozenset[int]:
        """The specs without a record, which only pages list."""
        conn = self.lookups.conn
        if self.among is not None:
            return frozenset(self.among).difference(recorded_specs(conn, self.among))
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
        """The specs whose record lacks the virtual packages that its dependencies provide."""
        first = self._first if self._mirrors_without_virtuals else ()
        return frozenset(
            spec for spec, _, mirror in first if mirror in self._mirrors_without_virtuals
        )

    @cached_property
    def has_virtuals(self) -> bool:
        """Whether any index has the virtual packages that dependencies provide."""
        return any(
            row[0] not in self._mirrors_without_virtuals
            for row in select(self.lookups.conn, MIRRORS)
        )

    def with_node(self, is_as_asked: Callable[[str, Mapping[str, Any]], bool]) -> frozenset[int]:
        """Return the specs whose node's namespace and parameters satisfy a function."""
        nodes = select(self.lookups.conn, NODES)
        return self._with_node(
            {key for key, space, values in nodes if is_as_asked(space, json.loads(values))}
        )

    @cached_property
    def _mirrors_without_virtuals(self) -> frozenset[int]:
        return frozenset(chain.from_iterable(select(self.lookups.conn, WITHOUT_VIRTUALS)))

    def _with_node(self, nodes: Set[int]) -> frozenset[int]:
        return frozenset(spec for spec, node, _ in (self._first if nodes else ()) if node in nodes)

    @cached_property
    def _first(self) -> list[tuple[Any, ...]]:
        """The record of each spec that counts: spec, node and mirror."""
        if self.among is not None:
            where = "WHERE spec IN (SELECT value FROM json_each(:ids))"
            return [*select_in(self.lookups.conn, FIRST_RECORDS.format(where), self.among)]
        return [*select(self.lookups.conn, FIRST_RECORDS.format(""))]

    def notes(self, query: SpecQuery) -> tuple[str, ...]:
        """Return notes on how the dependencies of a query were read."""
        direct = [edge for edge in query.dependencies if edge.direct]
        notes = [*(notes_on_pages(direct) if direct and self.unrecorded else ())]
        for name, node in ((edge.node.name or "", edge.node) for edge in query.dependencies):
            if not self.is_virtual(name):
                continue
            if name in self.providers and not self.has_virtuals:
                notes.append(
                    f"{name} is known to be provided by {', '.join(self.providers[name])}; "
                    "the indexes in this database do not show it"
                )
            elif any(constraint_texts(replace(node, name=None))):
                notes.append(f"{name} is a virtual package: only its name is compared, as in Spack")
        return tuple(notes)

    def _parts(self, query: SpecQuery) -> Iterator[Verdict]:
        if query.namespace is not None:
            with_namespace = self.with_node(lambda namespace, _: namespace == query.namespace)
            yield Verdict(with_namespace, self.unrecorded)
        if query.flags:
            with_flags = self.with_node(lambda _, values: flags_match(query.flags, values))
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
        edges, name = self.edges, edge.node.name or ""
        types, run_time = edges.of_all_types(edge.deptypes), edges.of_any_type(RUN_TIME)
        # With `^`, link and run edges are searched at any depth below.
        own_types = [types_id for types_id in types if edge.direct or types_id not in run_time]
        holds, below = self._with_recorded_compiler(edge), set[int]()
        if self.is_run_time and not edge.direct and not edge.deptypes:
            own_types, holds = [], set()
        for of, virtuals in self._ways(edge):
            holds |= edges.needing(of, own_types, virtuals, self.among)
            if not edge.direct:
                below |= edges.needing(of, {*types}.intersection(run_time), virtuals)
        holds |= edges.with_ancestors(below, run_time)
        unknown: Set[int] = self.unrecorded
        if {*edge.virtuals, *filter(self.is_virtual, (name,))}.difference(LANGUAGES):
            unknown |= self.without_virtuals
        on_pages = self._shown_compiler(edge) if edge.direct else Verdict(_NONE, self.unrecorded)
        return Verdict(holds, unknown - self.unrecorded) | on_pages

    def _ways(self, edge: Dependency) -> Iterator[Way]:
        """Yield the targets of an edge: the package itself, or the packages that provide it."""
        node, virtuals = edge.node, frozenset(edge.virtuals)
        yield self._like(node), virtuals
        if node.name in self.edges.virtuals and node.versions is None:
            yield self._like(SpecQuery(dependencies=node.dependencies)), virtuals | {node.name}
        if not self.has_virtuals and self.is_virtual(node.name or ""):
            for name in self.providers.get(node.name or "", ()):
                yield self._like(replace(node, name=name)), virtuals

    def _with_recorded_compiler(self, edge: Dependency) -> set[int]:
        """Return the specs whose record names one compiler that satisfies an edge.

        Only its name and version are known, so propagated variants are ignored.
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
            variants=tuple(variant for variant in node.variants if not variant.propagate),
            flags=tuple(flag for flag in node.flags if flag.value.split()),
            text="",
        )
        if more != SpecQuery():
            return set()
        compiler = compiler_condition(CompilerConstraint(node.name, node.versions))
        compiled = self._configured((compiler,))
        return compiled & self.with_compiler if compiled else set()

    def _shown_compiler(self, edge: Dependency) -> Verdict:
        """Return the specs without a record whose page shows this compiler."""
        among = self.unrecorded
        try:
            constraint = compiler_of_pages(replace(edge, when=None))
        except UnsupportedQuery:
            return Verdict(_NONE, among)
        compiler = compiler_condition(constraint)
        return Verdict(among & self._configured((compiler,)) if among else _NONE)

    def _propagated(self, variant: VariantConstraint) -> Verdict:
        """Return the specs without another value in themselves or any dependency."""
        conn = self.lookups.conn
        contradicting = specs_of_configurations(conn, with_other_variant(conn, variant))
        needing = self.edges.with_ancestors(contradicting, self.edges.of_any_type(DEPTYPES))
        possible = self.every - needing
        return Verdict(possible - self.unrecorded, possible & self.unrecorded)

    def _patched(self, variant: VariantConstraint) -> Verdict:
        """Return the specs with these patch checksums, of which pages print the beginnings."""

        def is_patched(_: str, values: Mapping[str, Any]) -> bool:
            sums = tuple(values.get(variant.name, ()))
            return variant_matches(variant, Variant(variant.name, sums, "multi"))

        configured = self._configured(configuration_conditions(SpecQuery(variants=(variant,))))
        return Verdict((self.with_node(is_patched) | self.unrecorded) & configured)

    def _like(self, node: SpecQuery) -> Set[int] | None:
        """Return the specs that satisfy a node of a query; None if all do."""
        # Dependencies may be of any package.
        records = self if self.package is None else self._whole
        conditions = (*configuration_conditions(node), *records.conditions(node))
        return records.satisfying(conditions).holds if conditions else None

    @cached_property
    def _whole(self) -> SpecRecords:
        return replace(self, package=None)

    def _configured(self, conditions: Conditions) -> set[int]:
        ids = configuration_ids(self.lookups, conditions, every=True)
        return specs_of_configurations(self.lookups.conn, ids)

    def is_package(self, name: str) -> bool:
        """Return whether the database has a package of that name."""
        return name in self.lookups.packages

    @cached_property
    def providers(self) -> Mapping[str, tuple[str, ...]]:
        """The providers of each virtual package, from package data."""
        return read_providers(self.lookups.conn)

    def is_virtual(self, name: str) -> bool:
        """Return whether a name is a virtual package, and not a package of the database."""
        is_virtual_name = name in VIRTUALS or name in self.edges.virtuals or name in self.providers
        return is_virtual_name and not self.is_package(name)


def question_of(lookups: Lookups, query: SpecQuery, scope: Conditions = ANYWHERE) -> Question:
    """Return the conditions of a query and its scope, with notes.

    Raises:
        UnsupportedQuery: the database cannot answer the query.
    """
    package = asked(scope, "package")
    query, _ = respelled(lookups, query_as_typed := query)
    name = query.name or (package.text if isinstance(package, Word) else None)
    records = SpecRecords(lookups, name)
    question = read_query(records, query_as_typed)
    is_recorded = any(condition.kind == "specs" for condition in question.conditions)
    notes = records.notes(query) if is_recorded else ()
    return Question((*question.conditions, *scope), (*question.notes, *notes))


def read_query(records: SpecRecords, query: SpecQuery) -> Question:
    """Return the conditions of a query, without notes on its records.

    A virtual name is a package like any other if the database has a package of that name. Names are
    read in any spelling (`Spellings`).

    Raises:
        UnsupportedQuery: the database cannot answer the query.
    """
    query, notes = respelled(records.lookups, query)
    question = _read_query(records, query)
    return replace(question, notes=(*notes, *question.notes))


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
    notes += [note for _, node_notes in nodes for note in node_notes]
    if not notes:
        return query, ()
    edges = zip(query.dependencies, nodes, strict=True)
    dependencies = tuple(replace(edge, node=node) for edge, (node, _) in edges)
    return replace(query, dependencies=dependencies, **changes), tuple(notes)


def _read_query(records: SpecRecords, query: SpecQuery) -> Question:
    conn, name = records.lookups.conn, query.name
    if name is not None and not records.is_package(name):
        provided = _provided(records, query, name)
        if provided:
            question = _read_query(replace(records, package=None), replace(query, name=None))
            names = ", ".join(sorted(provided))
            note = f"the virtual package {name} is known to be provided by {names}"
            condition = Condition("package", name, OneOf(provided))
            return Question((condition, *question.conditions), (note, *question.notes))
    if beyond_configurations(query) and has_records(conn):
        check_recorded(query, records.is_virtual)
        variants = tuple(variant for variant in query.variants if not needs_whole_patches(variant))
        conditions = configuration_conditions(replace(query, variants=variants))
        return Question((*conditions, *records.conditions(query)))
    is_package = name in VIRTUALS and name is not None and records.is_package(name)
    check_answerable(
        replace(query, name=None) if is_package else query,
        lambda dependency: _instead(records, query, dependency),
    )
    compilers = (compiler_condition(compiler_of_pages(edge)) for edge in query.dependencies)
    conditions = (*configuration_conditions(query), *dict.fromkeys(compilers))
    return Question(conditions, notes_on_pages(query.dependencies))


def _provided(records: SpecRecords, query: SpecQuery, name: str) -> frozenset[str]:
    """Return the packages that provide a name; empty if it is not a virtual package.

    Raises:
        UnsupportedQuery: package data has no provider, or the query has versions or variants, which
            providers do not share.
    """
    sets = records.edges.of_virtuals({name})
    rows = select(records.lookups.conn, RECORDED_PROVIDERS, sets=json.dumps(sets)) if sets else ()
    recorded = [name for (name,) in rows]
    from_package_data = records.providers.get(name, ())
    if recorded and not from_package_data:
        raise UnsupportedQuery(
            f"{name} is a virtual package, provided in this database by "
            f"{', '.join(recorded)}: ask for a provider by name"
        )
    providers = frozenset((*from_package_data, *recorded)) if from_package_data else frozenset()
    if providers and (query.versions is not None or query.variants):
        raise UnsupportedQuery(
            f"{name} is a virtual package: its versions and options are in Spack's recipes; "
            f"ask for a provider by name: {', '.join(sorted(providers))}"
        )
    return providers


def _instead(records: SpecRecords, query: SpecQuery, dependency: str | None) -> str:
    """Return advice if dependencies are unknown: the providers, and the variant of that name."""
    providers = records.providers.get(dependency or "", ())
    words = [f"{dependency} is known to be provided by {', '.join(providers)}"] if providers else []
    parameters = {"package": query.name, "on": f"+{dependency}"}
    if any(select(records.lookups.conn, OPTION, **parameters)):
        words.append(f"{f'{query.name}+{dependency}'!r} requires its variant")
    return "".join(f"; {text}" for text in words)


def explicitly(conn: sqlite3.Connection) -> Conditions:
    """Return the condition that a spec was installed by name, not as a dependency."""
    specs = frozenset(spec for (spec,) in select(conn, EXPLICIT))
    return (Condition("specs", "asked for explicitly", Verdict(specs)),)
