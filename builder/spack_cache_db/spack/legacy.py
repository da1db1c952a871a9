"""Reads specs in the syntax before Spack 1.0, and writes them in that of today."""

import re
from collections.abc import Iterable

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.lexer import QuerySyntaxError, Token, tokens
from spack_cache_db.spack.parser import Parser, parse_query, query_of_words
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import Dependency, SpecQuery

_SPACK_VERSION = re.compile(r"v?([01])(?:\.\d+)*")


class UnknownSpackVersion(BuilderError):
    """A text that is not a version of Spack."""


def parser_of(version: str | None) -> Parser:
    """Return the parser for a version of Spack, such as `0.23`; None is the newest."""
    if version is None or version == "":
        return parse_query
    match = _SPACK_VERSION.fullmatch(version)
    if match is None:
        raise UnknownSpackVersion(
            f"{version!r} is not a version of Spack, expected 0.23 or 1.2"
        )
    major = match[1]
    return parse_legacy_query if major == "0" else parse_query


def parse_legacy_query(text: str) -> SpecQuery:
    """Read one spec as Spack before 1.0 does; the query's text is that of Spack 1.0."""
    query = query_of_words(text, _compilers_last(tokens(text)))
    return parse_query(spec_text(query))


def todays_spec(text: str, version: str | None) -> str:
    """Return a spec for an older Spack in the syntax of Spack 1.0; other texts are
    unchanged.
    """
    parse = parser_of(version)
    if parse is parse_query:
        return text
    try:
        return spec_text(parse(text))
    except QuerySyntaxError:
        return text


def legacy_reading(query: SpecQuery) -> SpecQuery | None:
    """Return a query as Spack before 1.0 reads it; None if it reads the same, or
    cannot.
    """
    if not any(_constrains_compiler(edge) for edge in query.dependencies):
        return None
    try:
        return parse_legacy_query(spec_text(query))
    except QuerySyntaxError:
        return None


def _constrains_compiler(edge: Dependency) -> bool:
    """Return whether a compiler of this edge has constraints besides its name and
    version.
    """
    node = edge.node
    name_and_version = SpecQuery(name=node.name, versions=node.versions, text=node.text)
    if edge.direct and node != name_and_version:
        return True
    return any(_constrains_compiler(below) for below in node.dependencies)


def _compilers_last(words: Iterable[Token]) -> list[Token]:
    """Move the compiler of each package behind the package's other constraints.

    A compiler ends with its version: `fftw %gcc@12 ~mpi` becomes `fftw ~mpi %gcc@12`.
    Spack 1.0 reads the result as Spack 0.23 reads the words.
    """
    ordered: list[Token] = []
    # The compilers of the package whose words are read, and the kinds of words that
    # may still belong to the last of them, in this order.
    compilers: list[Token] = []
    kinds_to_come: tuple[str, ...] = ()
    is_in_brackets = False
    for word in words:
        sigil = word.text[0] if word.kind in ("dependency", "edge_start") else ""
        if sigil == "^":
            # The next package begins.
            ordered += compilers
            compilers = []
            kinds_to_come = ()
        if sigil == "%":
            compilers.append(word)
            is_in_brackets = word.kind == "edge_start"
            kinds_to_come = ("name", "version")
        elif is_in_brackets and compilers:
            compilers.append(word)
            is_in_brackets = word.kind != "edge_end"
        elif word.kind in kinds_to_come:
            compilers.append(word)
            position = kinds_to_come.index(word.kind)
            kinds_to_come = kinds_to_come[position + 1 :]
        else:
            ordered.append(word)
            kinds_to_come = ()
    return ordered + compilers
