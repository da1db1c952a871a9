"""Reads the section `toolchains:` of a `spack.yaml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce

import yaml

from spack_cache_db.bounded_yaml import entries_of, fault_at, items_of, text_of
from spack_cache_db.environments.externals import spec_at
from spack_cache_db.errors import LineFault
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import Parser
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery

LONGEST_TOOLCHAIN = 1_000
"""Maximum length of a toolchain as a spec, which is added to each spec that names
it.
"""


Toolchains = Mapping[str, SpecQuery | LineFault]
"""The query of each toolchain by name; a fault if it cannot be read."""


def read_toolchains(node: yaml.Node, parse: Parser) -> Toolchains:
    """Return the section `toolchains`; `LineFault` if it is not a mapping."""
    toolchains: dict[str, SpecQuery | LineFault] = {}
    for name, entry in entries_of(node, "toolchains").items():
        try:
            query = reduce(constrained, _parts(entry, parse), SpecQuery())
            if len(spec_text(query)) > LONGEST_TOOLCHAIN:
                message = f"has more than {LONGEST_TOOLCHAIN:,} characters as one spec"
                raise fault_at(entry, message)
            toolchains[name] = query
        except UnsatisfiableSpec as error:
            toolchains[name] = fault_at(entry, str(error))
        except LineFault as fault:
            toolchains[name] = fault
    return toolchains


def _parts(node: yaml.Node, parse: Parser) -> Iterator[SpecQuery]:
    """Yield the query of each entry of a toolchain."""
    if isinstance(node, yaml.ScalarNode):
        yield _direct_query(node, parse)
        return
    for item in items_of(node, "specs"):
        entries = entries_of(item, "an entry of a toolchain")
        if "spec" not in entries:
            raise fault_at(item, "expected the key spec:")
        query = _direct_query(entries["spec"], parse)
        if "when" in entries:
            when = _direct_query(entries["when"], parse)
            edges = (
                replace(edge, when=constrained(edge.when or SpecQuery(), when))
                for edge in query.dependencies
            )
            query = replace(query, dependencies=tuple(edges))
        yield query


def _direct_query(node: yaml.Node, parse: Parser) -> SpecQuery:
    query = spec_at(node, parse)
    if not all(edge.direct for edge in query.dependencies):
        spec = text_of(node, "a spec")
        raise fault_at(node, f"{spec!r} has a '^', expected '%' alone in a toolchain")
    return query


def parser_with(parse: Parser, toolchains: Toolchains) -> Parser:
    """Return a parser that replaces the names of toolchains."""

    def parse_expanded(text: str) -> SpecQuery:
        try:
            return expanded(parse(text), toolchains)
        except UnsatisfiableSpec as error:
            raise QuerySyntaxError(
                text, 0, "a toolchain that fits", str(error)
            ) from None

    return parse_expanded if toolchains else parse


def expanded(query: SpecQuery, toolchains: Toolchains) -> SpecQuery:
    """Return a query with toolchains in place of their names (Spack 1.2,
    `expand_toolchains`).

    Edges of a toolchain behind `%%` are propagated.

    Raises:
        UnsatisfiableSpec: a toolchain cannot be read, or contradicts the query.
    """
    result = _expanded(query, toolchains)
    return query if result == query else replace(result, text=spec_text(result))


def _expanded(query: SpecQuery, toolchains: Toolchains) -> SpecQuery:
    toolchain_queries, edges = [], []
    for edge in query.dependencies:
        toolchain = toolchains.get(edge.node.name or "") if edge.direct else None
        if toolchain is None:
            edges.append(replace(edge, node=_expanded(edge.node, toolchains)))
        elif isinstance(toolchain, LineFault):
            raise UnsatisfiableSpec(
                f"the toolchain {edge.node.name} cannot be read: {toolchain}"
            )
        else:
            propagated = (
                replace(other, propagate=True) for other in toolchain.dependencies
            )
            toolchain_queries.append(
                replace(toolchain, dependencies=tuple(propagated))
                if edge.propagate
                else toolchain
            )
    return reduce(
        constrained, toolchain_queries, replace(query, dependencies=tuple(edges))
    )
