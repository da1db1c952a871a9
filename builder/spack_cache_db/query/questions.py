"""A spec query → the question that it asks of a file; what the file cannot answer is refused.

What is asked of configurations is answered alike from every file. Pages show of a spec its name,
version, one compiler, architecture and variants. Records of indexes, where the file has some, add
dependencies, flags and namespaces. What is asked of these, of whole patch sums and of propagated
variants is compared as Spack 1.1 compares it with a concrete spec (`Spec.satisfies`). A spec has
its own configuration there, whatever a release shows of it (see `catalogue`). What Spack decides
by recipes or by the machine that asks is in neither.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from functools import cached_property, reduce
from itertools import chain
from operator import and_

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.catalogue import specs_beginning
from spack_cache_db.query.conditions import (
    ANYWHERE,
    Condition,
    Conditions,
    OneOf,
    Question,
    asked,
    compiler_condition,
    configuration_conditions,
    without,
)
from spack_cache_db.query.connection import Lookups, select, select_in
from spack_cache_db.query.index_records import (
    RUN_TIME,
    Dependencies,
    IndexNode,
    IndexRecords,
    Verdict,
    has_records,
    read_sets,
)
from spack_cache_db.query.index_records import VIRTUALS as PROVIDED
from spack_cache_db.query.selection import (
    configuration_ids,
    package_id,
    providers_of,
    read_providers,
    with_other_variant,
)
from spack_cache_db.spack.constraints import (
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
    flags_match,
    spec_text,
    variant_matches,
)
from spack_cache_db.spack.normal_forms import LANGUAGES, PATCH_PRINTED, Variant
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.targets import unknown_bounds
from spack_cache_db.spack.versions import VersionRanges, is_git_version

WITH_CONFIGURATION = """
SELECT specs.id FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.configuration = wanted.value
"""
SHOWN_WITH = """
SELECT listings.spec FROM json_each(:ids) AS wanted
CROSS JOIN listings ON listings.configuration = wanted.value
"""

PROVIDERS = """
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
WHERE configurations.package = :package AND variants.text = :on LIMIT 1
"""

Way = tuple[Set[int] | None, frozenset[str]]
"""What an edge may lead to, None for anything; and the virtual packages of which it provides one,
where any are given."""

MOST_PARTS = 8
"""A query that asks more beyond configurations is answered as a whole."""

_BUILD = ("build",)
_NONE: frozenset[int] = frozenset()


def question_of(
    conn: sqlite3.Connection,
    lookups: Lookups,
    query: SpecQuery,
    scope: Conditions = ANYWHERE,
    records: SpecRecords | None = None,
) -> Question:
    """Return what a query asks of a file.

    A name that is virtual in Spack is a package like any other where the file has one. What is
    asked beyond configurations is answered here where the file has records: as conditions of the
    kind `specs`.

    Args:
        conn: a connection to the file.
        lookups: its small tables.
        query: what is asked.
        scope: where it is asked: what the records of this release and stack say counts.
        records: the records of the file in that scope, where they are asked more than once.

    Raises:
        QuerySyntaxError: the condition of a dependency (`when=`) is no spec.
        UnsupportedQuery: the file cannot answer the query.
    """
    named = _in_lowercase(conn, query)
    if named != query:
        found = question_of(conn, lookups, named, scope, records)
        return replace(found, notes=(f"{query.name} is read as {named.name}", *found.notes))
    provided = _provided(conn, query)
    if provided is not None:
        found = question_of(conn, lookups, replace(query, name=None), scope, records)
        names = ", ".join(sorted(provided.asked.words))
        note = f"the virtual package {query.name} is known to be provided by {names}"
        return Question((provided, *found.conditions), (note, *found.notes))
    _refuse_virtual_root(conn, query.name)
    conditions = configuration_conditions(query)
    beyond = beyond_configurations(query)
    if beyond == SpecQuery() or not has_records(conn):
        is_package = query.name in VIRTUALS and package_id(conn, query.name) is not None
        check_answerable(
            replace(query, name=None) if is_package else query,
            lambda name: _instead(conn, query, name),
        )
        compilers = (compiler_condition(compiler_of_pages(each)) for each in query.dependencies)
        return Question((*conditions, *dict.fromkeys(compilers)), notes_on_pages(query))
    records = records or SpecRecords(conn, lookups, scope).about(query.name)
    return Question((*conditions, *records.conditions(query)), records.notes(query))


def _in_lowercase(conn: sqlite3.Connection, query: SpecQuery) -> SpecQuery:
    """Return a query for the package whose name is written so but for capitals, if there is one."""
    if query.name is None or query.name.islower() or package_id(conn, query.name) is not None:
        return query
    name = query.name.lower()
    return query if package_id(conn, name) is None else replace(query, name=name)


def _provided(conn: sqlite3.Connection, query: SpecQuery) -> Condition | None:
    """Return what a query for a virtual package asks of packages, where their data says it.

    Raises:
        UnsupportedQuery: it asks for versions or variants, which are those of no provider.
    """
    if query.name is None or package_id(conn, query.name) is not None:
        return None
    providers = {*providers_of(conn, query.name)}
    if not providers:
        return None
    providers.update(_recorded_providers(conn, query.name))
    if query.versions is not None or query.variants:
        raise UnsupportedQuery(
            f"{query.name} is a virtual package: its versions and options are in Spack's recipes; "
            f"ask for a provider by name: {', '.join(sorted(providers))}"
        )
    return Condition("package", query.name, OneOf(frozenset(providers)))


def _instead(conn: sqlite3.Connection, query: SpecQuery, dependency: str | None) -> str:
    """Return what can be said of a dependency where no binary's are known.

    That is what provides it, and the option of the package that is called so.
    """
    providers = providers_of(conn, dependency or "")
    words = [f"{dependency} is known to be provided by {', '.join(providers)}"] if providers else []
    package = package_id(conn, query.name) if query.name else None
    if package is not None and next(select(conn, OPTION, package=package, on=f"+{dependency}"), ()):
        words.append(f"{f'{query.name}+{dependency}'!r} asks for its option")
    return "".join(f"; {each}" for each in words)


def _recorded_providers(conn: sqlite3.Connection, name: str) -> list[str]:
    """Return the packages that provide a virtual one to what depends on them here."""
    sets = [key for key, names in read_sets(conn, PROVIDED).items() if name in names]
    return [each for (each,) in select(conn, PROVIDERS, sets=json.dumps(sets))] if sets else []


def _refuse_virtual_root(conn: sqlite3.Connection, name: str | None) -> None:
    """Refuse a name that is no package here, and that dependencies here provide.

    Raises:
        UnsupportedQuery: with the packages that do.
    """
    if name is None or package_id(conn, name) is not None:
        return
    packages = ", ".join(_recorded_providers(conn, name))
    if packages:
        raise UnsupportedQuery(
            f"{name} is a virtual package, provided here by {packages}: ask for one by name"
        )


def parts_of(query: SpecQuery) -> tuple[SpecQuery, ...]:
    """Return what a query asks beyond configurations, one thing in each part."""
    beyond = beyond_configurations(query)
    parts = [
        *([SpecQuery(namespace=beyond.namespace)] if beyond.namespace is not None else []),
        *([SpecQuery(flags=beyond.flags)] if beyond.flags else []),
        *(SpecQuery(variants=(each,)) for each in beyond.variants),
        *(SpecQuery(dependencies=(each,)) for each in beyond.dependencies),
    ]
    return tuple(parts) if len(parts) <= MOST_PARTS else (beyond,)


def rooted(query: SpecQuery) -> SpecQuery:
    """Return a query whose root has the `%` that Spack asks of it.

    Those are the ones behind a `^` without a name, and behind one of their own name, such as
    `^gcc %gcc`; they are asked even if the condition of that `^` does not hold (Spack 1.1
    `Spec.satisfies`).
    """
    edges: list[Dependency] = []
    for edge in query.dependencies:
        moved = tuple(
            each for each in edge.node.dependencies if edge.node.name in (None, each.node.name)
        )
        kept = tuple(each for each in edge.node.dependencies if each not in moved)
        edges += (replace(edge, node=replace(edge.node, dependencies=kept)), *moved)
    return replace(query, dependencies=tuple(edges))


def without_condition(edge: Dependency) -> Dependency:
    """Return what a `^` with a condition asks in any case: the `%` behind it of its package."""
    node = SpecQuery(name=edge.node.name, dependencies=edge.node.dependencies)
    return Dependency(node, direct=False)


def beyond_configurations(query: SpecQuery) -> SpecQuery:
    """Return what a query asks that configurations do not show, or do not show in full."""
    return SpecQuery(
        namespace=query.namespace,
        variants=tuple(
            each for each in query.variants if each.propagate or needs_whole_patches(each)
        ),
        flags=query.flags,
        dependencies=rooted(query).dependencies,
    )


def _compilers(query: SpecQuery) -> int:
    """Return how many compilers are asked for at most."""
    return len({edge.node.name for edge in rooted(query).dependencies if edge.direct})


def needs_whole_patches(constraint: VariantConstraint) -> bool:
    """Return whether more is asked of patches than the characters of each that Spack prints."""
    longest = max(map(len, constraint.values), default=0)
    return constraint.name == "patches" and (constraint.exact or longest > PATCH_PRINTED)


def notes_on_pages(query: SpecQuery) -> tuple[str, ...]:
    """Return what a user should know of an answer from pages: how they read a compiler."""
    notes = []
    if query.dependencies:
        notes.append(
            "one compiler per binary is known, the one for C where C is used; "
            "compilers of other languages, and gcc or llvm used as a library, are not seen"
        )
    if any(edge.virtuals for edge in query.dependencies):
        notes.append(
            "nothing here says which languages a package uses: "
            "%c,cxx=… is answered as % with the compiler alone"
        )
    return tuple(notes)


class SpecRecords:
    """The records of a file, read when they are asked for, and kept.

    Those of the release and stack in `scope` count first. `among`: about these specs only.
    """

    def __init__(
        self,
        conn: sqlite3.Connection,
        lookups: Lookups,
        scope: Conditions = ANYWHERE,
        among: Set[int] | None = None,
    ) -> None:
        self._conn = conn
        self._lookups = lookups
        self._scope = scope
        self._among = among
        self._edges = Dependencies(conn)
        place = asked(scope, "release"), asked(scope, "stack")
        self._recorded = IndexRecords(conn, lookups, among, *place)
        self._known: dict[tuple[str, int], Verdict] = {}

    def about(self, package: str | None) -> SpecRecords:
        """Return the records for a query about one package: few specs to look at.

        They are those that some release shows as one of the package, whatever they are themselves.
        """
        if package is None:
            return self
        ids = self._configurations(configuration_conditions(SpecQuery(name=package)))
        shown = chain.from_iterable(select_in(self._conn, SHOWN_WITH, ids))
        return SpecRecords(self._conn, self._lookups, self._scope, self._with(ids).union(shown))

    def conditions(self, query: SpecQuery) -> Conditions:
        """Return what is asked beyond configurations, with the specs that satisfy it.

        Raises:
            QuerySyntaxError: the condition of a dependency (`when=`) is no spec.
            UnsupportedQuery: the file cannot answer the query.
        """
        provided = self._edges.virtuals if self._recorded.tells_virtuals else None
        check_recorded(query, provided, self._is_package, self._providers.keys())
        compilers = _compilers(query)
        return tuple(
            Condition("specs", spec_text(part), self._verdict(part, compilers))
            for part in parts_of(query)
        )

    def _verdict(self, query: SpecQuery, compilers: int) -> Verdict:
        """Return which specs satisfy a part of a query that names so many compilers."""
        known = (spec_text(query), compilers)
        # A thousand specs of an environment name the same few compilers.
        if known not in self._known:
            self._known[known] = self._beyond(query, compilers)
        return self._known[known]

    def notes(self, query: SpecQuery) -> tuple[str, ...]:
        """Return what a user should know of the answer."""
        notes: list[str] = []
        direct = [edge for edge in query.dependencies if edge.direct]
        if direct and self._recorded.unrecorded:
            notes += notes_on_pages(replace(query, dependencies=tuple(direct)))
        if direct and self._recorded.old:
            notes.append("records of before Spack 1.0 name one compiler, and '%' asks for that")
        needed = [edge.node.name or "" for edge in query.dependencies if not edge.direct]
        if not self._recorded.tells_virtuals:
            notes += (
                f"{name} is known to be provided by {', '.join(self._providers[name])}; "
                "the indexes of this file do not say what provides it"
                for name in needed
                if name in self._providers and not self._is_package(name)
            )
        if any(edge.deptypes for edge in query.dependencies if not edge.direct):
            notes.append("Spack compares deptypes of direct dependencies only: write '%', not '^'")
        return tuple(notes)

    def _beyond(self, query: SpecQuery, compilers: int) -> Verdict:
        parts = [*self._parts(query, compilers)]
        if self._among is not None or not parts:
            parts.append(Verdict(self._recorded.every))
        return reduce(and_, parts)

    def _parts(self, query: SpecQuery, compilers: int) -> Iterator[Verdict]:
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
            if edge.direct:
                found = self._direct(edge, is_only=compilers == 1)
            else:
                found = self._needed(edge)
            yield found if edge.when is None else self._unless(edge.when) | found
            if edge.when is not None and edge.node.dependencies:
                # Spack 1.1 asks the `%` behind `^y` of `y` even if that condition does not hold.
                yield self._needed(without_condition(edge))

    def _direct(self, edge: Dependency, *, is_only: bool) -> Verdict:
        """Return the specs that have such a dependency themselves.

        Args:
            is_only: no other compiler is asked for, since pages show one.
        """
        virtuals = frozenset(edge.virtuals)
        types = self._edges.of_all_types(edge.deptypes)
        needing = (
            self._edges.needing(of, types, provided or virtuals, self._among)
            for of, provided in self._ways(edge.node)
        )
        by_edges = Verdict(set(chain.from_iterable(needing)) - self._recorded.by_compiler)
        shown = self._shown_compiler(edge) if is_only else Verdict(_NONE, self._recorded.unrecorded)
        return by_edges | self._named_compiler(edge) | shown

    def _named_compiler(self, edge: Dependency) -> Verdict:
        """Return the specs whose record names one compiler, this one.

        Spack then asks nothing of the edge, and of the compiler its name and version.
        """
        among, node = self._recorded.by_compiler, edge.node
        if not among or self._is_virtual(node.name):
            return Verdict(_NONE, among)
        known = SpecQuery(name=node.name, versions=node.versions, namespace=node.namespace)
        if node != replace(known, text=node.text):
            return Verdict(_NONE)
        return Verdict(among & self._compiled(CompilerConstraint(node.name, node.versions)))

    def _shown_compiler(self, edge: Dependency) -> Verdict:
        """Return the specs without a record whose page shows this compiler."""
        among = self._recorded.unrecorded
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
        unknown = self._recorded.unrecorded
        if edge.virtuals or self._is_virtual(edge.node.name):
            unknown |= self._recorded.without_virtuals
        return Verdict(holds, unknown - holds)

    def _reaching(self, ways: Iterable[Way]) -> set[int]:
        """Return the specs that reach such an edge by link and run, or have it to be built."""
        run, build = self._edges.of_any_type(RUN_TIME), self._edges.of_any_type(_BUILD)
        needing: set[int] = set()
        building: set[int] = set()
        for of, virtuals in ways:
            needing |= self._edges.needing(of, run, virtuals)
            building |= self._edges.needing(of, build, virtuals)
        if self._among is not None:
            return self._edges.leading_to(needing, run, self._among) | building
        return self._edges.with_ancestors(needing, run) | building

    def _ways(self, node: SpecQuery) -> list[Way]:
        """Return what an edge leads to: a package as asked, or whatever provides a virtual one."""
        if node.name is None or not self._is_virtual(node.name):
            return [(self._like(node), frozenset())]
        ways: list[Way] = []
        if self._is_package(node.name):
            ways.append((self._like(node), frozenset()))
        if node == provider_of(node, node.name):
            ways.append((self._like(provider_of(node)), frozenset({node.name})))
        if not self._recorded.tells_virtuals:
            providers = self._providers.get(node.name, ())
            ways += ((self._like(replace(node, name=each)), frozenset()) for each in providers)
        return ways

    def _unless(self, condition: str) -> Verdict:
        """Return the specs that do not satisfy the condition of a dependency."""
        query = parse_query(condition)
        like = self._configured(query)
        met = Verdict(self._recorded.every if like is None else like)
        met = reduce(and_, (each.asked for each in self.conditions(query)), met)
        return met.opposite(self._recorded.every)

    def _propagated(self, variant: VariantConstraint) -> Verdict:
        """Return the specs of which neither they nor anything they need has another value."""
        others = self._with(with_other_variant(self._conn, variant))
        needing = self._edges.with_ancestors(others, self._edges.of_any_type(DEPTYPES))
        possible = self._recorded.every - needing
        return Verdict(possible - self._recorded.unrecorded, possible & self._recorded.unrecorded)

    def _patched(self, variant: VariantConstraint) -> Verdict:
        """Return the specs with such whole patch sums; pages print the beginning of each."""

        def is_patched(node: IndexNode) -> bool:
            sums = node.parameters.get(variant.name, ())
            return variant_matches(variant, Variant(variant.name, tuple(sums), "multi"))

        return Verdict(self._recorded.with_node(is_patched) | self._recorded.unrecorded)

    def _by_node(self, is_as_asked: Callable[[IndexNode], bool]) -> Verdict:
        return Verdict(self._recorded.with_node(is_as_asked), self._recorded.unrecorded)

    def _like(self, node: SpecQuery) -> Set[int] | None:
        """Return the specs that are as asked; None where nothing is."""
        found = self._configured(node)
        if beyond_configurations(node) == SpecQuery():
            return found
        holds = self._whole._beyond(beyond_configurations(node), _compilers(node)).holds
        return holds if found is None else found & holds

    @cached_property
    def _whole(self) -> SpecRecords:
        """The records of the whole file: what is needed may be of any package."""
        if self._among is None:
            return self
        return SpecRecords(self._conn, self._lookups, self._scope)

    def _configured(self, node: SpecQuery) -> Set[int] | None:
        """Return the specs whose configuration and hash are as asked; None where none is."""
        conditions = configuration_conditions(node)
        words, prefix = without(conditions, "hash"), asked(conditions, "hash")
        found = self._with(self._configurations(words)) if words else None
        if prefix is not None:
            beginning = specs_beginning(self._conn, prefix)
            found = beginning if found is None else found & beginning
        return found

    def _compiled(self, constraint: CompilerConstraint) -> frozenset[int]:
        return self._with(self._configurations((compiler_condition(constraint),)))

    def _configurations(self, conditions: Conditions) -> list[int]:
        return configuration_ids(self._conn, self._lookups, conditions, every=True)

    def _with(self, configurations: Iterable[int]) -> frozenset[int]:
        rows = select_in(self._conn, WITH_CONFIGURATION, configurations)
        return frozenset(chain.from_iterable(rows))

    def _is_package(self, name: str) -> bool:
        return package_id(self._conn, name) is not None

    @cached_property
    def _providers(self) -> Mapping[str, tuple[str, ...]]:
        return read_providers(self._conn)

    def _is_virtual(self, name: str | None) -> bool:
        return name in VIRTUALS or name in self._edges.virtuals or name in self._providers


# The packages that Spack 1.1 knows as compilers, and the names that only old releases print.
_COMPILERS = """
    acfl aocc apple-clang cce dpcpp fj gcc intel-oneapi-compilers intel-oneapi-compilers-classic
    llvm llvm-amdgpu msvc nag nvhpc pgi xl xl_r
"""
COMPILERS = frozenset(_COMPILERS.split())

# A binary is never named for a virtual package: which packages provide one is in recipes only.
_VIRTUALS = """
    armci awk blas c cxx daal egl elf fftw-api flame fortran fortran-rt fuse gl glu glx
    go-or-gccgo-bootstrap golang iconv ipp java jpeg lapack libc libgfortran libglx libifcore
    libllvm libosmesa lua-lang luajit mariadb-client mkl mpe mpi mysql-client onedal opencl osmesa
    pbs pil pkgconfig qmake rpc scalapack sycl szip tbb unwind uuid wasi-sdk xkbdata-api xxd yacc
    ziglang zlib-api
"""
VIRTUALS = frozenset(_VIRTUALS.split())
DEPTYPES = frozenset({"build", "link", "run", "test"})

_OF_THE_HOST = frozenset(
    {"default_os", "default_target", "default_platform", "frontend", "fe", "backend", "be"}
)


class UnsupportedQuery(BuilderError, ValueError):
    """A well-formed query that a file cannot answer; its text says why."""


def compiler_of_pages(edge: Dependency) -> CompilerConstraint:
    """Return what a dependency asks of the one compiler that a page shows.

    Raises:
        UnsupportedQuery: it asks for something else.
    """
    name, what = edge.node.name, f"%{edge.node.name or ''}"
    if edge.propagate:
        raise UnsupportedQuery(f"'%{what}' is a wish for the solver: ask for {what!r}")
    if edge.deptypes or edge.when is not None:
        raise UnsupportedQuery(
            f"nothing here says how {name or 'a dependency'} is used (deptypes=, when=): "
            f"only {what!r} can be answered"
        )
    if name is None:
        raise UnsupportedQuery("no dependencies are known here: name a compiler after '%'")
    if not {*LANGUAGES}.issuperset(edge.virtuals):
        raise UnsupportedQuery(f"nothing here says what provides {', '.join(edge.virtuals)}")
    if set(edge.virtuals) == {"fortran"}:
        raise UnsupportedQuery("the compiler for C is known here, not the one for Fortran")
    if name in LANGUAGES:
        raise UnsupportedQuery(f"nothing here says which languages a package uses ({what!r})")
    if not edge.virtuals and name not in COMPILERS:
        raise UnsupportedQuery(
            f"no dependencies are known here but the compiler, and {name} is not known as one"
        )
    _check_compiler_options(edge.node)
    return CompilerConstraint(name, edge.node.versions)


def _check_compiler_options(node: SpecQuery) -> None:
    arch = node.os or node.platform or node.target
    if node.variants or node.flags or node.hash or node.namespace or arch:
        raise UnsupportedQuery(
            f"what follows %{node.name} is asked of {node.name}, of which the "
            "version alone is known here: write what the package itself must have before the '%'"
        )
    _check_versions(node.versions)


def _check_versions(versions: VersionRanges | None) -> None:
    if versions is None:
        return
    for part in versions.text.split(","):
        bare = part.removeprefix("=")
        if is_git_version(bare) and "=" not in bare and ":" not in bare:
            raise UnsupportedQuery(
                f"the version of {bare!r} is known to its git repository only: "
                f"write '@{bare}=<version>'"
            )


def _check_arch(query: SpecQuery) -> None:
    for value in (query.os, query.platform, query.target):
        if value in _OF_THE_HOST:
            raise UnsupportedQuery(f"{value!r} depends on a machine: write the name itself")
    unknown = unknown_bounds(query.target or "")
    if unknown:
        raise UnsupportedQuery(
            f"archspec does not know the target {unknown[0]!r}, so it cannot bound a range"
        )


def _check_root(query: SpecQuery, virtuals: Set[str]) -> None:
    if query.name in virtuals:
        raise UnsupportedQuery(
            f"{query.name} is a virtual package: which packages provide it is in Spack's recipes, "
            "not in pages or indexes; ask for a provider by name"
        )


def _check_shown(query: SpecQuery) -> None:
    """Refuse what only records of indexes tell."""
    if query.namespace is not None:
        raise UnsupportedQuery("no namespaces are known here: ask for the package by name alone")
    if query.flags:
        raise UnsupportedQuery(f"no compiler flags are known here ({query.flags[0].name}=)")
    for variant in query.variants:
        if variant.propagate:
            raise UnsupportedQuery(
                f"the doubled sign of {variant.name!r} asks its dependencies too, which are "
                "not known here: write it once to ask the package itself"
            )


def check_answerable(query: SpecQuery, hint: Callable[[str | None], str] = lambda _: "") -> None:
    """Refuse what pages cannot answer.

    Args:
        query: what is asked.
        hint: what to say of a dependency by its name, after the reason.

    Raises:
        UnsupportedQuery: with the reason, and what to ask instead where there is something.
    """
    _check_root(query, VIRTUALS)
    _check_shown(query)
    _check_versions(query.versions)
    _check_arch(query)
    for edge in query.dependencies:
        if not edge.direct:
            asked = f"^{edge.node.name or ''}"
            reason = f"no dependencies are known here: {asked!r} cannot be answered"
            raise UnsupportedQuery(reason + hint(edge.node.name))
        compiler_of_pages(edge)
    names = {edge.node.name for edge in query.dependencies}
    if len(names) > 1:
        raise UnsupportedQuery("one compiler per binary is known here: only one can be asked for")


def check_recorded(
    query: SpecQuery,
    provided: Set[str] | None,
    is_package: Callable[[str], bool],
    known: Set[str] = frozenset(),
) -> None:
    """Refuse what the records of indexes cannot answer.

    Args:
        query: what is asked.
        provided: the virtual packages that dependencies in the file provide; None where no record
            is of a format that says so.
        is_package: whether the file has a package of that name.
        known: the virtual packages of which package data says what provides them.

    Raises:
        UnsupportedQuery: with the reason, and what to ask instead where there is something.
    """
    virtuals = {name for name in VIRTUALS | (provided or set()) if not is_package(name)}
    _check_root(query, virtuals)
    _check_versions(query.versions)
    _check_arch(query)
    for edge in query.dependencies:
        _check_edge(edge, virtuals)
        if provided is None:
            _check_virtuals(edge, virtuals, known)
        node = replace(edge.node, name=None) if edge.node.name in virtuals else edge.node
        check_recorded(node, provided, is_package, known)


def provider_of(node: SpecQuery, name: str | None = None) -> SpecQuery:
    """Return what can be asked of the provider of a virtual package: its hash, what it needs."""
    return SpecQuery(name=name, hash=node.hash, dependencies=node.dependencies, text=node.text)


def _check_edge(edge: Dependency, virtuals: Set[str]) -> None:
    """Refuse unknown types of dependencies, and what recipes alone say of virtual packages."""
    unknown = sorted({*edge.deptypes} - DEPTYPES)
    if unknown:
        raise UnsupportedQuery(
            f"no dependency is of type {unknown[0]!r}: the types are {', '.join(sorted(DEPTYPES))}"
        )
    node, name = edge.node, edge.node.name
    if name in virtuals and (edge.virtuals or node != provider_of(node, name)):
        raise UnsupportedQuery(
            f"{name} is a virtual package: its versions and options are in Spack's recipes, not in "
            f"indexes; ask for a provider, as in '{'%' if edge.direct else '^'}{name}=<package>'"
        )


def _check_virtuals(edge: Dependency, virtuals: Set[str], known: Set[str]) -> None:
    """Refuse virtual packages; of a direct dependency, older records name the compiler alone."""
    answerable: Set[str] = frozenset() if edge.direct else known
    asked = [each for each in (edge.node.name,) if each in virtuals and each not in answerable]
    asked += [] if edge.direct else edge.virtuals
    if asked:
        raise UnsupportedQuery(
            f"no index in this file says what provides {asked[0]}: those of Spack 0.21 and later do"
        )
