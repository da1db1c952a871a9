"""Which queries a database can answer, and the conditions that a query becomes.

A source is either a page of the build-cache site or the index of a mirror. A page has
the configurations of binaries, each with one compiler, and no dependencies. An index
has a record of each spec, with its dependencies, flags and namespace. So a database of
pages answers `hdf5@1.14 +mpi %gcc`, and one with records also `hdf5 ^zlib@1.3
cflags=-O2`.

Queries that a database cannot answer raise `UnsupportedQuery`. Some of them no source
answers, because Spack answers them from its recipes, or from the machine on which it
runs: `mpi@3:`, `hdf5 os=default_os`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.conditions.conditions import (
    Conditions,
    ReadSpec,
    compiler_condition,
    configuration_conditions,
)
from spack_cache_db.spack.facts import COMPILERS, LANGUAGES, PATCHES, VIRTUALS
from spack_cache_db.spack.normal_forms import PATCH_PRINTED
from spack_cache_db.spack.queries import (
    CompilerConstraint,
    Dependency,
    SpecQuery,
    VariantConstraint,
)
from spack_cache_db.spack.targets import unknown_bounds
from spack_cache_db.spack.versions import is_git_version

MOST_PARTS = 8
"""Maximum of parts of a query that become a condition each; more become one."""
_OF_THE_HOST = frozenset(
    {
        "default_os",
        "default_target",
        "default_platform",
        "frontend",
        "fe",
        "backend",
        "be",
    }
)
"""Names that Spack replaces by those of the machine on which it runs."""
# Notes on answers.
_ONE_COMPILER = (
    "pages show one compiler per binary, for C if C is used; other compilers, and gcc or llvm "
    "used as a library, are not matched"
)
_NO_LANGUAGES = (
    "this database does not show which languages a package uses: "
    "%c,cxx=… is answered as % with the compiler alone"
)


class UnsupportedQuery(BuilderError, ValueError):
    """A well-formed query that a database cannot answer; the message says why."""


def read_for_pages(
    query: SpecQuery, hint: Callable[[str | None], str], *, is_package: bool
) -> ReadSpec:
    """Return the conditions of a query that pages can answer.

    Args:
        query: the query.
        hint: returns the advice on a dependency, given its name; see
            `check_answerable`.
        is_package: the database has a package of this name, even if it is virtual in
            Spack.

    Raises:
        UnsupportedQuery: see `check_answerable`.
    """
    # A package that the database has need not be checked for a virtual name.
    checked_query = replace(query, name=None) if is_package else query
    check_answerable(checked_query, hint)

    # All dependencies are the compiler, which may be written twice: `%gcc %gcc@13`.
    conditions = list(configuration_conditions(query))
    for edge in query.dependencies:
        condition = compiler_condition(compiler_of_pages(edge))
        if condition not in conditions:
            conditions.append(condition)
    return ReadSpec(tuple(conditions), notes_on_pages(query.dependencies))


def check_answerable(
    query: SpecQuery, hint: Callable[[str | None], str] = lambda _: ""
) -> None:
    """Raise UnsupportedQuery for constraints that pages cannot answer.

    `hint` returns the advice on a dependency, given its name: a text behind the
    message.
    """
    # First what no source can answer.
    check_recorded(replace(query, dependencies=()), _is_virtual_in_spack)
    # Then what only records have.
    if query.namespace is not None:
        raise UnsupportedQuery(
            "this database has no namespaces; write the package's name alone"
        )
    if query.flags:
        flags = ", ".join(flag.name for flag in query.flags)
        raise UnsupportedQuery(f"this database has no compiler flags ({flags}=)")
    for variant in query.variants:
        if variant.propagate:
            raise UnsupportedQuery(
                f"the doubled sign of {variant.name!r} is about dependencies too, and this "
                "database has no dependency data; write the sign once"
            )
    for edge in query.dependencies:
        if not edge.direct:
            needed = f"^{edge.node.name or ''}"
            raise UnsupportedQuery(
                f"this database has no dependency data for {needed!r}; build it from an index or "
                f"a mirror{hint(edge.node.name or None)}"
            )
    # The dependencies that are left must be one compiler.
    for edge in query.dependencies:
        compiler_of_pages(edge)
    names = {edge.node.name for edge in query.dependencies}
    if len(names) > 1:
        raise UnsupportedQuery(
            "this database has one compiler per binary; write only one"
        )


def _is_virtual_in_spack(name: str) -> bool:
    return name in VIRTUALS


def compiler_of_pages(edge: Dependency) -> CompilerConstraint:
    """Return a dependency as a constraint on the one compiler that a page shows, such
    as `%gcc@13` or `%c=gcc@13`.

    Raises UnsupportedQuery if it is a constraint on something else.
    """
    _check_use(edge)
    _check_compiler(edge)
    _check_node(edge.node)
    return CompilerConstraint(edge.node.name, edge.node.versions)


def _check_use(edge: Dependency) -> None:
    """Raise UnsupportedQuery for a `%` about more than which compiler was used, such as
    `%[deptypes=build] cmake`.
    """
    name = edge.node.name
    compiler = f"%{name or ''}"
    if edge.propagate:
        raise UnsupportedQuery(
            f"'%{compiler}' only guides Spack's solver; write {compiler!r}"
        )
    if edge.deptypes or edge.when is not None:
        raise UnsupportedQuery(
            f"this database does not show how {name or 'a dependency'} is used (deptypes=, when=): "
            f"only {compiler!r} can be answered"
        )


def _check_compiler(edge: Dependency) -> None:
    """Raise UnsupportedQuery for all but a compiler with a version.

    That is `%gcc@13`, or `%c=gcc` and `%c,cxx=gcc`, whose languages are in
    `edge.virtuals`.
    """
    name = edge.node.name
    compiler = f"%{name or ''}"
    if name is None:
        raise UnsupportedQuery(
            "this database has no dependency data; name a compiler after '%'"
        )
    unknown = [virtual for virtual in edge.virtuals if virtual not in LANGUAGES]
    if unknown:
        raise UnsupportedQuery(
            f"this database does not have the providers of {', '.join(unknown)}"
        )
    if set(edge.virtuals) == {"fortran"}:
        raise UnsupportedQuery(
            "this database has the compiler for C, not the one for Fortran"
        )
    if name in LANGUAGES:
        raise UnsupportedQuery(
            f"this database does not show which languages a package uses ({compiler!r})"
        )
    # With a language (`%c=tcc`), the package is a compiler, even if it is not known.
    if not edge.virtuals and name not in COMPILERS:
        raise UnsupportedQuery(
            f"this database has no dependency data, and {name} is not known as a compiler"
        )
    # The compiler has a version only.
    rest = replace(edge.node, name=None, versions=None, text="")
    if rest != SpecQuery():
        raise UnsupportedQuery(
            f"constraints after {compiler} apply to {name}, and this database has only its "
            "version; write constraints on the package itself before the '%'"
        )


def notes_on_pages(edges: Sequence[Dependency]) -> tuple[str, ...]:
    """Return notes on the compilers of an answer from pages; `edges` are the
    dependencies of the query.
    """
    if not edges:
        return ()
    if any(edge.virtuals for edge in edges):
        return (_ONE_COMPILER, _NO_LANGUAGES)
    return (_ONE_COMPILER,)


def conditions_beside_records(
    query: SpecQuery, is_virtual: Callable[[str], bool]
) -> Conditions:
    """Return the conditions of a query on configurations, if records answer the rest of
    it (`beyond_configurations`).

    Args:
        query: the query.
        is_virtual: returns whether a name is that of a virtual package.

    Raises:
        UnsupportedQuery: see `check_recorded`.
    """
    check_recorded(query, is_virtual)
    variants = tuple(
        variant for variant in query.variants if not needs_whole_patches(variant)
    )
    return configuration_conditions(replace(query, variants=variants))


def check_recorded(query: SpecQuery, is_virtual: Callable[[str], bool]) -> None:
    """Raise UnsupportedQuery for constraints that the records of indexes cannot
    answer; see `conditions_beside_records`.
    """
    if query.name is not None and is_virtual(query.name):
        raise UnsupportedQuery(
            f"{query.name} is a virtual package: its providers are in Spack's recipes, not in pages"
            " or indexes; ask for a provider by name"
        )
    _check_node(query)
    for edge in query.dependencies:
        node = edge.node
        # Records have the virtual packages of a dependency, but not their versions.
        if node.name is not None and is_virtual(node.name):
            if node.versions is not None:
                sign = "%" if edge.direct else "^"
                raise UnsupportedQuery(
                    f"{node.name} is a virtual package: its versions are in Spack's recipes, not "
                    f"in indexes; ask for a provider: '{sign}{node.name}=<package>'"
                )
            node = replace(node, name=None)
        # The constraints on a dependency are a query, which may have dependencies.
        check_recorded(node, is_virtual)
        if edge.when is not None:
            check_recorded(edge.when, is_virtual)


def _check_node(query: SpecQuery) -> None:
    """Raise UnsupportedQuery for the names of one package, without its dependencies,
    that only a machine, a git repository or nobody knows.
    """
    versions = query.versions.text.split(",") if query.versions else []
    # Only the repository knows the version of a commit or a branch.
    for version in versions:
        bare = version.removeprefix("=")
        # `git.main=1.2` has the version itself.
        has_version = "=" in bare
        is_range = ":" in bare
        if is_git_version(bare) and not has_version and not is_range:
            raise UnsupportedQuery(
                f"only a git repository has the version of {bare!r}: write '@{bare}=<version>'"
            )
    # Only the machine knows its own names.
    for name in (query.os, query.platform, query.target):
        if name in _OF_THE_HOST:
            raise UnsupportedQuery(
                f"{name!r} depends on a machine: write the name itself"
            )
    # Nobody knows which targets are between unknown ones.
    unknown = unknown_bounds(query.target or "")
    if unknown:
        raise UnsupportedQuery(
            f"archspec does not know the target {unknown[0]!r}, so it cannot bound a range"
        )


def beyond_configurations(query: SpecQuery) -> list[SpecQuery]:
    """Return the parts of a query that need records, each as a query of its own.

    Of `hdf5 +mpi ^zlib cflags=-O2`, these are `cflags=-O2` and `^zlib`. More than
    `MOST_PARTS` are one query.
    """
    # A doubled sign (`++mpi`) is about dependencies too.
    variants = tuple(
        variant
        for variant in query.variants
        if variant.propagate or needs_whole_patches(variant)
    )
    parts = []
    if query.namespace is not None:
        parts.append(SpecQuery(namespace=query.namespace))
    if query.flags:
        parts.append(SpecQuery(flags=query.flags))
    for variant in variants:
        parts.append(SpecQuery(variants=(variant,)))
    for dependency in query.dependencies:
        parts.append(SpecQuery(dependencies=(dependency,)))
    if len(parts) <= MOST_PARTS:
        return parts

    whole = SpecQuery(
        namespace=query.namespace,
        flags=query.flags,
        variants=variants,
        dependencies=query.dependencies,
    )
    return [whole]


def needs_whole_patches(constraint: VariantConstraint) -> bool:
    """Return whether a constraint is on `patches`, and needs more of their checksums
    than a configuration has: the characters that Spack prints.
    """
    if constraint.name != PATCHES:
        return False
    longest = max((len(checksum) for checksum in constraint.values), default=0)
    return constraint.exact or longest > PATCH_PRINTED
