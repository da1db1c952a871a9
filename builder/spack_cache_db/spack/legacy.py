"""Reads specs in the syntax before Spack 1.0, and writes them in that of today.

The two differ in what a constraint behind a compiler applies to. In
`fftw %gcc@12 ~mpi`, `~mpi` applies to fftw in Spack 0.23, and to gcc in Spack 1.0
("Spec syntax" in its release notes). Today's spelling of the former is
`fftw ~mpi %gcc@12`. Spack's own remedy is `spack style --spec-strings`.
"""

import re
from collections.abc import Iterable

from spack_cache_db.errors import BuilderError
from spack_cache_db.spack.lexer import QuerySyntaxError, Token, tokens
from spack_cache_db.spack.parser import Parser, parse_query, query_of_words
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import Dependency, SpecQuery

_SPACK_VERSION = re.compile(r"v?(?P<major>[01])(?:\.\d+)*")


class UnknownSpackVersion(BuilderError):
    """A text that is not a version of Spack."""


def parser_of(version: str | None) -> Parser:
    """Return the parser for a version of Spack, such as `0.23`.

    None and an empty text, which forms send, are the newest version.

    Raises:
        UnknownSpackVersion: the text is not a version of Spack.
    """
    if version is None or version == "":
        return parse_query
    match = _SPACK_VERSION.fullmatch(version)
    if match is None:
        raise UnknownSpackVersion(
            f"{version!r} is not a version of Spack, expected 0.23 or 1.2"
        )
    if match["major"] == "0":
        return parse_legacy_query
    return parse_query


def parse_legacy_query(text: str) -> SpecQuery:
    """Read one spec as Spack before 1.0 does; the query's text is that of Spack 1.0.

    Raises:
        QuerySyntaxError: the text is not a spec.
    """
    words = _compilers_last(tokens(text))
    query = query_of_words(text, words)
    # Read again from its text of today, so that columns belong to that text.
    return parse_query(spec_text(query))


def todays_spec(text: str, version: str | None) -> str:
    """Return the spec of an older Spack in the syntax of Spack 1.0.

    A text that is not a spec is returned unchanged.
    """
    parse = parser_of(version)
    if parse is parse_query:
        return text
    try:
        query = parse(text)
    except QuerySyntaxError:
        return text
    return spec_text(query)


def legacy_reading(query: SpecQuery) -> SpecQuery | None:
    """Return what the same words mean to Spack before 1.0.

    None if they mean the same, or that Spack cannot read them.
    """
    if not any(_constrains_compiler(edge) for edge in query.dependencies):
        return None
    try:
        return parse_legacy_query(spec_text(query))
    except QuerySyntaxError:
        return None


def _constrains_compiler(edge: Dependency) -> bool:
    """Return whether a `%` in a dependency has more than a name and a version."""
    node = edge.node
    if edge.direct:
        name_and_version = SpecQuery(
            name=node.name, versions=node.versions, text=node.text
        )
        if node != name_and_version:
            return True
    return any(_constrains_compiler(below) for below in node.dependencies)


def _compilers_last(words: Iterable[Token]) -> list[Token]:
    """Move the compiler of each package behind the package's other constraints.

    A compiler ends with its version: `fftw %gcc@12 ~mpi` becomes `fftw ~mpi %gcc@12`.
    Spack 1.0 reads the result as Spack 0.23 reads the words.
    """
    ordered: list[Token] = []
    # The words of the compilers of the package that is being read.
    compilers: list[Token] = []
    # The kinds of words that may still follow as part of the last compiler.
    expected_kinds: tuple[str, ...] = ()
    is_in_brackets = False
    for word in words:
        sigil = ""
        if word.kind in ("dependency", "edge_start"):
            sigil = word.text[0]

        # A `^`: the next package begins, so the last one is complete.
        if sigil == "^":
            ordered += compilers
            compilers = []
            expected_kinds = ()

        # `%gcc@12`, or `%[virtuals=c] gcc@12`, whose brackets are part of it.
        if sigil == "%":
            compilers.append(word)
            is_in_brackets = word.kind == "edge_start"
            expected_kinds = ("name", "version")
        elif is_in_brackets and compilers:
            compilers.append(word)
            is_in_brackets = word.kind != "edge_end"
        elif word.kind in expected_kinds:
            compilers.append(word)
            # After the version, no name follows.
            position = expected_kinds.index(word.kind)
            expected_kinds = expected_kinds[position + 1 :]

        # Everything else is a constraint on the package, and ends a compiler.
        else:
            ordered.append(word)
            expected_kinds = ()
    return ordered + compilers
