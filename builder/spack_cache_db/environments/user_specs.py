"""Reads one spec that a person wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from spack_cache_db.environments.model import Limits, UserSpec
from spack_cache_db.spack.legacy import legacy_reading
from spack_cache_db.spack.lexer import MAX_LENGTH, QuerySyntaxError
from spack_cache_db.spack.parser import Parser, parse_query

_MAX_CACHED_LENGTH = 200
"""Longest spec whose query is cached, in characters."""


def read_spec(
    text: str, line: int, longest: int = MAX_LENGTH, parse: Parser = parse_query
) -> UserSpec:
    """Read the spec on a line; one of more than `longest` characters has an error."""
    if len(text) > longest:
        return UserSpec(f"{text[:40]}…", line, error=too_long(len(text), longest))
    try:
        query = _parsed(text, parse) if len(text) <= _MAX_CACHED_LENGTH else parse(text)
        return UserSpec(text, line, query)
    except QuerySyntaxError as error:
        problem = f"{error.found}: " if error.found else ""
        message = f"is not a spec: at column {error.column + 1}, {problem}expected {error.expected}"
        return UserSpec(text, line, error=message)


def read_user_spec(text: str, line: int, limits: Limits, parse: Parser) -> UserSpec:
    """Return the spec of a line with its older reading, or with its error if it is not
    one.
    """
    spec = read_spec(text, line, limits.length, parse)
    legacy = legacy_reading(spec.query) if spec.query is not None else None
    return replace(spec, text=text, legacy=legacy)


def too_long(length: int, longest: int) -> str:
    """Return the error of a spec with too many characters."""
    return f"has {length:,} characters, expected at most {longest:,}"


_parsed = lru_cache(maxsize=4096)(lambda text, parse: parse(text))


def legacy_notes(specs: Iterable[UserSpec]) -> Iterator[str]:
    """Yield a note if Spack before 1.0 reads some of the specs differently."""
    legacy = [spec for spec in specs if spec.legacy]
    if legacy:
        many = (
            f"{len(legacy):,} specs constrain"
            if len(legacy) > 1
            else "one spec constrains"
        )
        yield (
            f"{many} a compiler where Spack before 1.0 constrains the package, such as"
            f" {legacy[0].text!r}: choose Spack 0.23 (--spack 0.23), or rewrite them with"
            " 'spack style --spec-strings --fix FILE'"
        )
