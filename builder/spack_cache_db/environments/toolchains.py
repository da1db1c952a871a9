"""Reads the section `toolchains:` of a `spack.yaml`, and replaces their names in specs.

A toolchain is a name for compilers, such as `mixed` for clang with gfortran:

    toolchains:
      mixed:
      - {spec: '%c=clang', when: '%c'}
      - {spec: '%fortran=gcc', when: '%fortran'}

`hdf5 %mixed` is then `hdf5 %[virtuals=c when=%c] llvm %[virtuals=fortran when=%fortran]
gcc`: each compiler applies only where the language is used. The rules are those of
Spack 1.2 (`spec_parser.py`, and the page "Toolchains" of its documentation).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import yaml

from spack_cache_db.bounded_yaml import (
    entries_of,
    fault_at,
    items_of,
    required_node,
    text_of,
)
from spack_cache_db.environments.externals import spec_at
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import Parser
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery

LONGEST_TOOLCHAIN = 1_000
"""Maximum length of a toolchain as a spec: each spec that names it becomes so much
longer.
"""

Toolchains = Mapping[str, SpecQuery | LineFault]
"""The query of each toolchain by name; a fault if it cannot be read.

A fault is only an error of the specs that name the toolchain: others can be answered.
"""


def read_toolchains(node: yaml.Node, parse: Parser) -> Toolchains:
    """Return the section `toolchains`; `LineFault` if it is not a mapping."""
    toolchains: dict[str, SpecQuery | LineFault] = {}
    for name, entry in entries_of(node, "toolchains").items():
        try:
            toolchains[name] = _toolchain(entry, parse)
        except UnsatisfiableSpec as error:
            # Its specs contradict each other.
            toolchains[name] = fault_at(entry, str(error))
        except LineFault as fault:
            toolchains[name] = fault
    return toolchains


def _toolchain(node: yaml.Node, parse: Parser) -> SpecQuery:
    """Return the specs of a toolchain as one query."""
    query = SpecQuery()
    for spec in _specs(node, parse):
        query = constrained(query, spec)
    if len(spec_text(query)) > LONGEST_TOOLCHAIN:
        message = f"has more than {LONGEST_TOOLCHAIN:,} characters as one spec"
        raise fault_at(node, message)
    return query


def _specs(node: yaml.Node, parse: Parser) -> Iterator[SpecQuery]:
    """Yield the query of each spec of a toolchain, with its condition.

    `{spec: '%c=gcc', when: '%c'}` is `%[virtuals=c when=%c] gcc`.
    """
    # A text is a toolchain of one spec, without a condition.
    if isinstance(node, yaml.ScalarNode):
        yield _direct_query(node, parse)
        return
    for item in items_of(node, "specs"):
        entries = entries_of(item, "an entry of a toolchain")
        query = _direct_query(required_node(entries, "spec", item), parse)
        if "when" in entries:
            condition = _direct_query(entries["when"], parse)
            query = _with_condition(query, condition)
        yield query


def _direct_query(node: yaml.Node, parse: Parser) -> SpecQuery:
    """Return the query of a spec in a toolchain, which has no `^`."""
    query = spec_at(node, parse)
    if not all(edge.direct for edge in query.dependencies):
        spec = text_of(node, "a spec")
        raise fault_at(node, f"{spec!r} has a '^', expected '%' alone in a toolchain")
    return query


def _with_condition(query: SpecQuery, condition: SpecQuery) -> SpecQuery:
    """Return a query each of whose dependencies has a condition as well as its own."""
    edges = []
    for edge in query.dependencies:
        own_condition = edge.when or SpecQuery()
        edges.append(replace(edge, when=constrained(own_condition, condition)))
    return replace(query, dependencies=tuple(edges))


def parser_with(parse: Parser, toolchains: Toolchains) -> Parser:
    """Return a parser that replaces the names of toolchains, too."""
    if not toolchains:
        return parse

    def parse_expanded(text: str) -> SpecQuery:
        try:
            return expanded(parse(text), toolchains)
        except UnsatisfiableSpec as error:
            # Callers of a parser expect its own error.
            expected = "a toolchain that fits"
            raise QuerySyntaxError(text, 0, expected, str(error)) from None

    return parse_expanded


def expanded(query: SpecQuery, toolchains: Toolchains) -> SpecQuery:
    """Return a query with toolchains in place of their names (Spack 1.2,
    `expand_toolchains`).

    Raises:
        UnsatisfiableSpec: a toolchain cannot be read, or contradicts the query.
    """
    result = _without_names(query, toolchains)
    if result == query:
        return query
    return replace(result, text=spec_text(result))


def _without_names(query: SpecQuery, toolchains: Toolchains) -> SpecQuery:
    """Return a query, and the queries below it, with toolchains in place of their
    names.
    """
    edges = []
    named: list[SpecQuery] = []
    for edge in query.dependencies:
        # Only `%name` can name a toolchain; `^name` is a package.
        entry = None
        if edge.direct and edge.node.name is not None:
            entry = toolchains.get(edge.node.name)
        if entry is None:
            edges.append(replace(edge, node=_without_names(edge.node, toolchains)))
            continue
        if isinstance(entry, LineFault):
            name = edge.node.name
            raise UnsatisfiableSpec(f"the toolchain {name} cannot be read: {entry}")
        # `%%name` applies to the dependencies of dependencies as well.
        named.append(_propagated(entry) if edge.propagate else entry)

    # Then add the constraints of the toolchains to the other ones.
    result = replace(query, dependencies=tuple(edges))
    for toolchain in named:
        result = constrained(result, toolchain)
    return result


def _propagated(toolchain: SpecQuery) -> SpecQuery:
    """Return a toolchain whose edges are written `%%`."""
    edges = [replace(edge, propagate=True) for edge in toolchain.dependencies]
    return replace(toolchain, dependencies=tuple(edges))
