"""Reads the externals of `packages:`, and compares specs with them.

An external is a package that the system provides, such as
`{spec: mpich@4 %gcc@12, prefix: /usr}`. Its dependencies are those that its spec names,
or those of its key `dependencies`, each by a spec or by the `id` of another external
(Spack 1.2, `externals.py`). Parts that an external leaves open, such as variants,
satisfy any constraint, because only a recipe has their defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import yaml

from spack_cache_db.bounded_yaml import (
    entries_of,
    fault_at,
    items_at,
    items_of,
    line_of,
    required_node,
    text_at,
    text_of,
)
from spack_cache_db.environments.reuse_rules import DeclaredExternal
from spack_cache_db.environments.user_specs import read_spec
from spack_cache_db.spack.facts import LANGUAGES, LEGACY_COMPILERS
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained
from spack_cache_db.spack.parser import Parser
from spack_cache_db.spack.queries import Dependency, SpecQuery
from spack_cache_db.spack.versions import VersionRanges


def read_externals(
    nodes: Mapping[str, yaml.Node], parse: Parser
) -> dict[str, tuple[DeclaredExternal, ...]]:
    """Return the externals of each package.

    Args:
        nodes: the node of the key `externals` of each package that has it.
        parse: reads their specs.

    Raises:
        LineFault: an external has no spec.
    """
    items = []
    for package, node in nodes.items():
        for item in items_of(node, "externals"):
            items.append((package, item))

    # First all ids, because an external may depend on a later one.
    query_of_id = {}
    for package, item in items:
        entries = entries_of(item, "an external")
        required_node(entries, "spec", item)
        if "id" in entries:
            external_id = text_of(entries["id"], "an id")
            query_of_id[external_id] = _exact(_written(item, package, parse))

    # Then the externals with their dependencies.
    externals: dict[str, list[DeclaredExternal]] = {package: [] for package in nodes}
    for package, item in items:
        external = _external(item, package, parse, query_of_id)
        externals[package].append(external)
    return {package: tuple(declared) for package, declared in externals.items()}


def _external(
    item: yaml.Node,
    package: str,
    parse: Parser,
    query_of_id: Mapping[str, SpecQuery],
) -> DeclaredExternal:
    entries = entries_of(item, "an external")

    # The spec, and the dependencies of the key `dependencies`.
    written = _written(item, package, parse)
    query = _exact(written)
    if "dependencies" in entries:
        edges = _dependencies(entries["dependencies"], parse, query_of_id)
        query = replace(query, dependencies=(*query.dependencies, *edges))

    # Where the system has it: a folder, or modules that are loaded.
    prefix = None
    if "prefix" in entries:
        prefix = text_of(entries["prefix"], "a path")
    module_nodes = items_at(entries, "modules", "modules")
    modules = tuple(text_of(module, "a module") for module in module_nodes)
    return DeclaredExternal(query, written, prefix, modules)


def _written(item: yaml.Node, package: str, parse: Parser) -> SpecQuery:
    """Return the spec of an external; without a name, it is of its package."""
    entries = entries_of(item, "an external")
    query = spec_at(required_node(entries, "spec", item), parse)
    return replace(query, name=query.name or package)


def _exact(query: SpecQuery) -> SpecQuery:
    """Return a query in which `@1.2` is this version alone, not any 1.2.x.

    Spack reads the spec of an external so (`parse_with_version_concrete`).
    """
    ranges = query.versions
    if ranges is None:
        return query
    # `@1.2:1.4`, `@1.2,1.4` and `@=1.2` stay as they are.
    is_one_version = set(ranges.text).isdisjoint(":,=")
    if not is_one_version:
        return query
    return replace(query, versions=VersionRanges.parse(f"={ranges.text}"))


def _dependencies(
    node: yaml.Node, parse: Parser, query_of_id: Mapping[str, SpecQuery]
) -> Iterator[Dependency]:
    """Yield the edges of the key `dependencies`; those to unknown ids are left out."""
    for item in items_of(node, "dependencies"):
        entries = entries_of(item, "a dependency")
        if "id" in entries:
            dependency = query_of_id.get(text_of(entries["id"], "an id"))
        elif "spec" in entries:
            dependency = spec_at(entries["spec"], parse)
        else:
            raise fault_at(item, "expected a dependency with the key id or spec")
        if dependency is None:
            continue
        # `virtuals: c,cxx`: the languages and virtual packages that it provides.
        virtuals = text_at(entries, "virtuals", "a name").split(",")
        names = tuple(name.strip() for name in virtuals if name.strip())
        # In a parsed spec, each dependency has the text of the whole spec. This one was
        # written alone, so it has none.
        dependency = replace(dependency, text="")
        yield Dependency(dependency, direct=True, virtuals=names)


def spec_at(node: yaml.Node, parse: Parser) -> SpecQuery:
    """Return the query of a spec; raises `LineFault` if the node is not a spec."""
    spec = read_spec(text_of(node, "a spec"), line_of(node), parse=parse)
    if spec.query is None:
        raise fault_at(node, f"{spec.text!r} {spec.error}")
    return spec.query


def external_meets(external: SpecQuery, query: SpecQuery) -> bool:
    """Return whether an external may satisfy a spec.

    `hdf5@1.10 %gcc@9` meets `hdf5+mpi` and `hdf5%gcc`, but neither `hdf5%nvhpc` nor
    `hdf5^mpi`.
    """
    # First the package itself, then each dependency that the spec constrains.
    external_alone = replace(external, dependencies=())
    query_alone = replace(query, dependencies=())
    if not _fit(external_alone, query_alone):
        return False
    return all(_has_edge(external, edge) for edge in query.dependencies)


def _fit(first: SpecQuery, second: SpecQuery) -> bool:
    """Return whether a spec may satisfy both queries."""
    try:
        constrained(first, second)
    except UnsatisfiableSpec:
        return False
    return True


def _has_edge(external: SpecQuery, wanted: Dependency) -> bool:
    """Return whether an external may have a dependency that a spec constrains."""
    # Only a recipe decides whether the condition of a toolchain (`when: %c`) is true.
    if wanted.when is not None:
        return True
    # `%gcc`: an external without direct dependencies leaves its compiler open.
    has_direct = any(edge.direct for edge in external.dependencies)
    if wanted.direct and not has_direct:
        return True
    return any(_meets_edge(edge, wanted) for edge in external.dependencies)


def _meets_edge(edge: Dependency, wanted: Dependency) -> bool:
    """Return whether an edge of an external satisfies an edge of a spec."""
    # The edge provides the languages or virtual packages that the spec asks for, as in
    # `%c,cxx=gcc`.
    provided = set(edge.virtuals)
    if edge.direct and not provided:
        # `%gcc` without virtuals is the compiler of every language.
        provided = set(LANGUAGES)
    if not provided.issuperset(wanted.virtuals):
        return False

    # Only the name of a virtual package is compared, as in Spack.
    name = _current_name(wanted.node.name)
    if name in provided:
        return True

    # The same package, whose constraints and dependencies fit.
    if name is not None and name != _current_name(edge.node.name):
        return False
    if not _fit(_constraints_of(edge.node), _constraints_of(wanted.node)):
        return False
    return all(_has_edge(edge.node, below) for below in wanted.node.dependencies)


def _current_name(name: str | None) -> str | None:
    """Return the package of a compiler, which may be named as before Spack 1.0.

    `oneapi` is `intel-oneapi-compilers`; other names stay as they are.
    """
    if name is None:
        return None
    return LEGACY_COMPILERS.get(name, name)


def _constraints_of(node: SpecQuery) -> SpecQuery:
    """Return the constraints on a package alone, without its name."""
    return replace(node, name=None, dependencies=())
