"""What pages of the build-cache site cannot answer about a spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    compilers = (
        compiler_condition(compiler_of_pages(edge)) for edge in query.dependencies
    )
    conditions = (*configuration_conditions(query), *dict.fromkeys(compilers))
    return ReadSpec(conditions, notes_on_pages(query.dependencies))


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


def beyond_configurations(query: SpecQuery) -> list[SpecQuery]:
    """Return the parts of a query that need records; more than `MOST_PARTS` as one."""
    variants = tuple(
        variant
        for variant in query.variants
        if variant.propagate or needs_whole_patches(variant)
    )
    parts = [
        *(
            [SpecQuery(namespace=query.namespace)]
            if query.namespace is not None
            else []
        ),
        *([SpecQuery(flags=query.flags)] if query.flags else []),
        *(SpecQuery(variants=(variant,)) for variant in variants),
        *(SpecQuery(dependencies=(dependency,)) for dependency in query.dependencies),
    ]
    if len(parts) <= MOST_PARTS:
        return parts
    dependencies = query.dependencies
    beyond = SpecQuery(
        namespace=query.namespace, variants=variants, dependencies=dependencies
    )
    return [replace(beyond, flags=query.flags)]


def needs_whole_patches(constraint: VariantConstraint) -> bool:
    """Return whether a constraint needs more of patch checksums than Spack prints."""
    longest = max(map(len, constraint.values), default=0)
    return constraint.name == PATCHES and (constraint.exact or longest > PATCH_PRINTED)


def notes_on_pages(edges: Sequence[Dependency]) -> tuple[str, ...]:
    """Return notes on the compilers of an answer from pages."""
    notes = (
        "pages show one compiler per binary, for C if C is used; other compilers, and gcc or llvm "
        "used as a library, are not matched",
        "this database does not show which languages a package uses: "
        "%c,cxx=… is answered as % with the compiler alone",
    )
    return notes[: 2 if any(edge.virtuals for edge in edges) else len(edges[:1])]


def _refuse(reasons: Mapping[str, object]) -> None:
    """Raise UnsupportedQuery with the first reason that applies."""
    for reason, applies in reasons.items():
        if applies:
            raise UnsupportedQuery(reason)


def compiler_of_pages(edge: Dependency) -> CompilerConstraint:
    """Return a dependency as a constraint on the one compiler that a page shows.

    Raises UnsupportedQuery if it is a constraint on something else.
    """
    node, name, what = edge.node, edge.node.name, f"%{edge.node.name or ''}"
    unknown = ", ".join(
        virtual for virtual in edge.virtuals if virtual not in LANGUAGES
    )
    more = replace(node, name=None, versions=None, text="") != SpecQuery()
    _refuse(
        {
            f"'%{what}' only guides Spack's solver; write {what!r}": edge.propagate,
            f"this database does not show how {name or 'a dependency'} is used (deptypes=, when=): "
            f"only {what!r} can be answered": edge.deptypes or edge.when is not None,
            "this database has no dependency data; name a compiler after '%'": name
            is None,
            f"this database does not have the providers of {unknown}": unknown,
            "this database has the compiler for C, not the one for Fortran": {
                *edge.virtuals
            }
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
    """Raise UnsupportedQuery for names that depend on a machine, and unknown git
    versions.
    """
    for part in query.versions.text.split(",") if query.versions else ():
        bare = part.removeprefix("=")
        if is_git_version(bare) and "=" not in bare and ":" not in bare:
            raise UnsupportedQuery(
                f"only a git repository has the version of {bare!r}: write '@{bare}=<version>'"
            )
    for value in (query.os, query.platform, query.target):
        if value in _OF_THE_HOST:
            raise UnsupportedQuery(
                f"{value!r} depends on a machine: write the name itself"
            )
    if unknown := unknown_bounds(query.target or ""):
        raise UnsupportedQuery(
            f"archspec does not know the target {unknown[0]!r}, so it cannot bound a range"
        )


def check_answerable(
    query: SpecQuery, hint: Callable[[str | None], str] = lambda _: ""
) -> None:
    """Raise UnsupportedQuery for constraints that pages cannot answer.

    `hint` returns the advice on a dependency, given its name.
    """
    needed = next(
        (edge.node.name or "" for edge in query.dependencies if not edge.direct), None
    )
    instead = "" if needed is None else hint(needed or None)
    doubled = next(
        (variant.name for variant in query.variants if variant.propagate), None
    )
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
    _refuse(
        {"this database has one compiler per binary; write only one": len(names) > 1}
    )


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
        name, node = edge.node.name, edge.node
        if name is not None and is_virtual(name):
            if node.versions is not None:
                raise UnsupportedQuery(
                    f"{name} is a virtual package: its versions are in Spack's recipes, not in "
                    f"indexes; ask for a provider: '{'%' if edge.direct else '^'}{name}=<package>'"
                )
            node = replace(node, name=None)
        for part in (node, edge.when):
            if part is not None:
                check_recorded(part, is_virtual)
