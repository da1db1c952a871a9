"""Specs as Spack before 1.0 reads them: what follows a compiler is asked of the package.

`fftw %gcc@12 ~mpi` asks `~mpi` of FFTW in Spack 0.23, and of gcc in Spack 1.0 ("Spec syntax" in
its release notes; `spec_parser.py` of both). Spack's own remedy is `spack style --spec-strings`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.constraints import Dependency, SpecQuery, spec_text
from spack_cache_db.spack.lexer import QuerySyntaxError, Token, tokens
from spack_cache_db.spack.parser import parse_query, query_of_words

Parser = Callable[[str], SpecQuery]
"""Reads one spec; raises `QuerySyntaxError`."""

_VERSION = re.compile(r"v?([01])(?:\.\d+)*")


class UnknownSpackVersion(BuilderError):
    """A text that is no version of Spack."""


def parser_of(version: str | None) -> Parser:
    """Return what reads specs as a version of Spack does, such as `0.23`; None for today's.

    Raises:
        UnknownSpackVersion: it is no version.
    """
    found = _VERSION.fullmatch(version or "1")
    if found is None:
        raise UnknownSpackVersion(f"{version!r} is no version of Spack, expected 0.23 or 1.1")
    return parse_legacy_query if found[1] == "0" else parse_query


def parse_legacy_query(text: str) -> SpecQuery:
    """Read one spec as Spack before 1.0 does; the text of the query is that of Spack 1.0.

    Raises:
        QuerySyntaxError: the text is no spec, is two specs, or is too long.
    """
    found = query_of_words(text, _compilers_last(tokens(text)))
    return parse_query(spec_text(found))


def todays_spec(text: str, version: str | None) -> str:
    """Return a spec that was written for a version of Spack as Spack 1.0 reads the same.

    What is no spec comes back as it is.

    Raises:
        UnknownSpackVersion: there is no such version.
    """
    parse = parser_of(version)
    if parse is parse_query:
        return text
    try:
        return spec_text(parse(text))
    except QuerySyntaxError:
        return text


def legacy_reading(query: SpecQuery) -> SpecQuery | None:
    """Return what Spack before 1.0 reads in a query; None if that is the same, or no spec."""
    if not any(map(_asks_more, query.dependencies)):
        return None
    try:
        return parse_legacy_query(spec_text(query))
    except QuerySyntaxError:
        return None


def _asks_more(edge: Dependency) -> bool:
    """Return whether a compiler, here or below, is asked for more than its name and version."""
    node = edge.node
    bare = SpecQuery(name=node.name, versions=node.versions, text=node.text)
    return (edge.direct and node != bare) or any(map(_asks_more, node.dependencies))


def _compilers_last(words: Iterable[Token]) -> list[Token]:
    """Return words in an order in which Spack 1.0 reads what Spack 0.23 does.

    The compiler of a package, which ends with its version, stands behind all that follows it.
    """
    found: list[Token] = []
    compilers: list[Token] = []
    ends: tuple[str, ...] = ()
    is_in_brackets = False
    for word in words:
        if word.kind in ("dependency", "edge_start") and word.text[0] == "^":
            found += compilers
            compilers, ends = [], ()
        if word.kind in ("dependency", "edge_start") and word.text[0] == "%":
            is_in_brackets = word.kind == "edge_start"
            compilers.append(word)
            ends = ("name", "version")
        elif is_in_brackets and compilers:
            compilers.append(word)
            is_in_brackets = word.kind != "edge_end"
        elif word.kind in ends:
            compilers.append(word)
            ends = ends[ends.index(word.kind) + 1 :]
        else:
            found.append(word)
            ends = ()
    return found + compilers
