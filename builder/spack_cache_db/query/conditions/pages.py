"""What pages of the build-cache site cannot answer about a spec."""

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
"""A query with more parts that need records is evaluated as one condition."""
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
    """Return the conditions of a query that pages can answer; see `check_answerable`.

    Args:
        is_package: the database has a package of this name, even if it is virtual in
            Spack.
    """
    check_answerable(replace(query, name=None) if is_package else query, hint)
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

    `hint` returns the advice on a dependency, given its name.
    """
    check_recorded(replace(query, dependencies=()), VIRTUALS.__contains__)
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
    for edge in query.dependencies:
        compiler_of_pages(edge)
    names = {edge.node.name for edge in query.dependencies}
    if len(names) > 1:
        raise UnsupportedQuery(
            "this database has one compiler per binary; write only one"
        )


def compiler_of_pages(edge: Dependency) -> CompilerConstraint:
    """Return a dependency as a constraint on the one compiler that a page shows.

    Raises UnsupportedQuery if it is a constraint on something else.
    """
    _check_use(edge)
    _check_compiler(edge)
    _check_node(edge.node)
    return CompilerConstraint(edge.node.name, edge.node.versions)


def _check_use(edge: Dependency) -> None:
    """Raise UnsupportedQuery for a `%` about more than which compiler was used."""
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
    """Raise UnsupportedQuery for all but a compiler with a version: `%gcc@13`, or
    `%c=gcc` and `%c,cxx=gcc`, whose languages are in `edge.virtuals`.
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
    # A package that is named for a language is a compiler, even if we do not know it.
    if not edge.virtuals and name not in COMPILERS:
        raise UnsupportedQuery(
            f"this database has no dependency data, and {name} is not known as a compiler"
        )
    rest = replace(edge.node, name=None, versions=None, text="")
    if rest != SpecQuery():
        raise UnsupportedQuery(
            f"constraints after {compiler} apply to {name}, and this database has only its "
            "version; write constraints on the package itself before the '%'"
        )


def notes_on_pages(edges: Sequence[Dependency]) -> tuple[str, ...]:
    """Return notes on the compilers of an answer from pages."""
    if not edges:
        return ()
    if any(edge.virtuals for edge in edges):
        return (_ONE_COMPILER, _NO_LANGUAGES)
    return (_ONE_COMPILER,)


def conditions_beside_records(
    query: SpecQuery, is_virtual: Callable[[str], bool]
) -> Conditions:
    """Return the conditions of a query on configurations, if records answer the rest of
    it.
    """
    check_recorded(query, is_virtual)
    variants = tuple(
        variant for variant in query.variants if not needs_whole_patches(variant)
    )
    return configuration_conditions(replace(query, variants=variants))


def check_recorded(query: SpecQuery, is_virtual: Callable[[str], bool]) -> None:
    """Raise UnsupportedQuery for constraints that the records of indexes cannot
    answer.
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
        check_recorded(node, is_virtual)
        if edge.when is not None:
            check_recorded(edge.when, is_virtual)


def _check_node(query: SpecQuery) -> None:
    """Raise UnsupportedQuery for names that depend on a machine, and unknown git
    versions.
    """
    versions = query.versions.text.split(",") if query.versions else []
    for version in versions:
        # `git.main=1.2` has the version itself.
        bare = version.removeprefix("=")
        if is_git_version(bare) and "=" not in bare and ":" not in bare:
            raise UnsupportedQuery(
                f"only a git repository has the version of {bare!r}: write '@{bare}=<version>'"
            )
    for name in (query.os, query.platform, query.target):
        if name in _OF_THE_HOST:
            raise UnsupportedQuery(
                f"{name!r} depends on a machine: write the name itself"
            )
    unknown = unknown_bounds(query.target or "")
    if unknown:
        raise UnsupportedQuery(
            f"archspec does not know the target {unknown[0]!r}, so it cannot bound a range"
        )


def beyond_configurations(query: SpecQuery) -> list[SpecQuery]:
    """Return the parts of a query that need records; more than `MOST_PARTS` as one."""
    variants = tuple(
        variant
        for variant in query.variants
        if variant.propagate or needs_whole_patches(variant)
    )
    # Each part is a query of its own.
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
    """Return whether a constraint needs more of patch checksums than Spack prints."""
    if constraint.name != PATCHES:
        return False
    longest = max((len(checksum) for checksum in constraint.values), default=0)
    return constraint.exact or longest > PATCH_PRINTED
