"""Reads one spec that a person wrote.

`hdf5+mpi` becomes a `UserSpec` with its query. A text that is not a spec, such as
`hdf5@`, becomes one without a query and with an error: "is not a spec: at column 5,
unexpected '@': expected a version after '@', such as …".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from spack_cache_db.environments.model import Limits, UserSpec
from spack_cache_db.spack.legacy import legacy_reading
from spack_cache_db.spack.lexer import MAX_LENGTH, QuerySyntaxError
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.queries import SpecQuery

_LONGEST_SHOWN = 40
"""Number of characters that are shown of a spec that is too long."""
_LONGEST_CACHED = 200
"""Longest spec whose query is cached, in characters: the cache has a bounded size."""


def read_user_spec(text: str, line: int, limits: Limits, parse: Parser) -> UserSpec:
    """Return the spec of a line, and how Spack before 1.0 reads it if that differs.

    Args:
        text: the spec.
        line: its line, counted from 1; 0 if it is unknown.
        limits: the maximum length of a spec.
        parse: reads a spec in the syntax of some version of Spack.
    """
    spec = read_spec(text, line, limits.length, parse)
    legacy = None
    if spec.query is not None:
        legacy = legacy_reading(spec.query)
    # `read_spec` cuts a text that is too long; here it stays whole.
    return replace(spec, text=text, legacy=legacy)


def read_spec(
    text: str, line: int, longest: int = MAX_LENGTH, parse: Parser = parse_query
) -> UserSpec:
    """Return the spec of a line; one of more than `longest` characters has an error."""
    if len(text) > longest:
        message = too_long(len(text), longest)
        return UserSpec(f"{text[:_LONGEST_SHOWN]}…", line, error=message)
    is_short = len(text) <= _LONGEST_CACHED
    try:
        query = _cached_query(text, parse) if is_short else parse(text)
    except QuerySyntaxError as error:
        return UserSpec(text, line, error=_syntax_error(error))
    return UserSpec(text, line, query)


def too_long(length: int, longest: int) -> str:
    """Return the error of a spec with too many characters."""
    return f"has {length:,} characters, expected at most {longest:,}"


@lru_cache(maxsize=4096)
def _cached_query(text: str, parse: Parser) -> SpecQuery:
    """Return the query of a spec; lists and matrices repeat short specs often."""
    return parse(text)


def _syntax_error(error: QuerySyntaxError) -> str:
    """Return the error of a text that is not a spec, as one line."""
    # Some faults have a name, such as "open quote".
    problem = f"{error.found}: " if error.found else ""
    # The columns of the parser begin with 0, those of people with 1.
    column = error.column + 1
    return f"is not a spec: at column {column}, {problem}expected {error.expected}"


def legacy_notes(specs: Iterable[UserSpec]) -> Iterator[str]:
    """Yield one note if Spack before 1.0 reads some specs differently, else nothing.

    In `hdf5 %gcc ~mpi`, Spack 1.0 and later constrain gcc, and older ones hdf5.
    """
    legacy = [spec for spec in specs if spec.legacy is not None]
    if not legacy:
        return
    count = "one spec constrains"
    if len(legacy) > 1:
        count = f"{len(legacy):,} specs constrain"
    yield (
        f"{count} a compiler where Spack before 1.0 constrains the package, such as"
        f" {legacy[0].text!r}: choose Spack 0.23 (--spack 0.23), or rewrite them with"
        " 'spack style --spec-strings --fix FILE'"
    )
