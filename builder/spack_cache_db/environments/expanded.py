"""One spec of an environment as text, read by the parser of Spack's spec syntax."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.lexer import MAX_LENGTH, QuerySyntaxError
from spack_cache_db.spack.parser import parse_query


@dataclass(frozen=True, slots=True)
class Expanded:
    """One spec that a list stands for, as it was or would be typed, or why it is none."""

    text: str
    line: int
    query: SpecQuery | None
    error: str | None = None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> SpecQuery:
    return parse_query(text)


def in_one_line(error: QuerySyntaxError) -> str:
    """Return where a text is no spec, and what was expected there."""
    found = f"{error.found}: " if error.found else ""
    return f"is no spec: at column {error.column + 1}, {found}expected {error.expected}"


def expanded_text(text: str, line: int, most: int = MAX_LENGTH) -> Expanded:
    """Return a spec that stands alone; one of more than `most` characters is none."""
    if len(text) > most:
        return Expanded(f"{text[:40]}…", line, None, too_long(len(text), most))
    try:
        return Expanded(text, line, _parsed(text))
    except QuerySyntaxError as error:
        return Expanded(text, line, None, in_one_line(error))


def too_long(length: int, most: int) -> str:
    """Return why a spec is none that has too many characters."""
    return f"has {length:,} characters, expected at most {most:,}"
