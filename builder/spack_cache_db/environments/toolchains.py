"""`toolchains:` of an environment: names for compilers, such as `%clang_gfortran`, in its specs.

The rules are those of Spack 1.1's `spec_parser.py` and its page "Toolchains": what an entry asks
holds where its `when:` does, and a toolchain takes the place of the compiler of its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import yaml

from spack_cache_db.bounded_yaml import fault_at, line_of
from spack_cache_db.environments.environment import read_spec
from spack_cache_db.environments.sections import entries_of, items_of, text_of
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import Parser

LONGEST = 1_000
"""Characters of a toolchain as a spec: each spec that names it becomes so much longer."""

Toolchains = Mapping[str, SpecQuery]
"""What each toolchain asks of a package, by its name."""


def read_toolchains(node: yaml.Node, parse: Parser) -> Toolchains:
    """Return the toolchains of the section `toolchains`.

    Raises:
        LineFault: one of them is none, or contradicts itself.
    """
    return {
        name: _together(_parts(each, parse), each)
        for name, each in entries_of(node, "toolchains").items()
    }


def _parts(node: yaml.Node, parse: Parser) -> Iterator[SpecQuery]:
    """Yield what each entry of a toolchain asks."""
    if isinstance(node, yaml.ScalarNode):
        yield _query(node, parse)
        return
    for each in items_of(node, "specs"):
        entries = entries_of(each, "an entry of a toolchain")
        if "spec" not in entries:
            raise fault_at(each, "expected spec: here")
        query = _query(entries["spec"], parse)
        if "when" in entries:
            when = _query(entries["when"], parse)
            edges = (replace(edge, when=_both(edge.when, when)) for edge in query.dependencies)
            query = replace(query, dependencies=tuple(edges))
        yield query


def _both(first: str | None, second: SpecQuery) -> str:
    text = spec_text(second)
    return text if first is None else f"{first} {text}"


def _query(node: yaml.Node, parse: Parser) -> SpecQuery:
    found = read_spec(text_of(node, "a spec"), line_of(node), parse=parse)
    if found.query is None:
        raise fault_at(node, f"{found.text!r} {found.error}")
    if not all(edge.direct for edge in found.query.dependencies):
        raise fault_at(node, f"{found.text!r} has a '^', expected '%' alone in a toolchain")
    return found.query


def _together(parts: Iterable[SpecQuery], node: yaml.Node) -> SpecQuery:
    found = SpecQuery()
    for each in parts:
        try:
            found = constrained(found, each)
        except UnsatisfiableSpec as error:
            raise fault_at(node, str(error)) from None
    if len(spec_text(found)) > LONGEST:
        raise fault_at(node, f"has more than {LONGEST:,} characters as one spec")
    return found


def parser_with(parse: Parser, toolchains: Toolchains) -> Parser:
    """Return what reads a spec and puts toolchains in the place of their names."""

    def parse_expanded(text: str) -> SpecQuery:
        try:
            found = _expanded(parse(text), toolchains)
        except UnsatisfiableSpec as error:
            raise QuerySyntaxError(text, 0, "a toolchain that fits", str(error)) from None
        return replace(found, text=spec_text(found))

    return parse_expanded if toolchains else parse


def _expanded(query: SpecQuery, toolchains: Toolchains) -> SpecQuery:
    """Return a query in which no edge names a toolchain, and no edge below either."""
    named, kept = [], []
    for edge in query.dependencies:
        toolchain = toolchains.get(edge.node.name or "")
        if edge.direct and toolchain is not None:
            named.append(toolchain)
        else:
            kept.append(replace(edge, node=_expanded(edge.node, toolchains)))
    found = replace(query, dependencies=tuple(kept))
    for each in named:
        found = constrained(found, each)
    return found
