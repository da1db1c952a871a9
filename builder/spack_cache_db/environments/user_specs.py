"""Reads one spec that a person wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from spack_cache_db.environments.model import Limits, UserSpec
from spack_cache_db.spack.legacy import legacy_reading
from spack_cache_db.spack.lexer import MAX_LENGTH, QuerySyntaxError
from spack_cache_db.spack.parser import Parser, parse_query
from spack_cache_db.spack.queries import SpecQuery

_MAX_CACHED_LENGTH = 200
"""Longest spec whose query is cached, in characters."""


def read_spec(
    text: str, line: int, longest: int = MAX_LENGTH, parse: Parser = parse_query
) -> UserSpec:
    """Read the spec on a line; one of more than `longest` characters has an error."""
    if len(text) > longest:
        return UserSpec(f"{text[:40]}…", line, error=too_long(len(text), longest))
    is_cached = len(text) <= _MAX_CACHED_LENGTH
    try:
        query = _cached_query(text, parse) if is_cached else parse(text)
    except QuerySyntaxError as error:
        problem = f"{error.found}: " if error.found else ""
        expected = f"{problem}expected {error.expected}"
        message = f"is not a spec: at column {error.column + 1}, {expected}"
        return UserSpec(text, line, error=message)
    return UserSpec(text, line, query)


@lru_cache(maxsize=4096)
def _cached_query(text: str, parse: Parser) -> SpecQuery:
    """Return the query of a short text, which lists and matrices repeat."""
    return parse(text)


def too_long(length: int, longest: int) -> str:
    """Return the error of a spec with too many characters."""
    return f"has {length:,} characters, expected at most {longest:,}"


def read_user_spec(text: str, line: int, limits: Limits, parse: Parser) -> UserSpec:
    """Return the spec of a line with its older reading, or with its error if it is not
    one.
    """
    spec = read_spec(text, line, limits.length, parse)
    legacy = None
    if spec.query is not None:
        legacy = legacy_reading(spec.query)
    return replace(spec, text=text, legacy=legacy)


def legacy_notes(specs: Iterable[UserSpec]) -> Iterator[str]:
    """Yield a note if Spack before 1.0 reads some of the specs differently."""
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
