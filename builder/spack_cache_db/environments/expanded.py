"""One spec of an environment as text, read by the parser of Spack's spec syntax."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from spack_cache_db.spack.query import QuerySyntaxError, SpecQuery, parse_query


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


def expanded_text(text: str, line: int) -> Expanded:
    """Return a spec that stands alone."""
    try:
        return Expanded(text, line, _parsed(text))
    except QuerySyntaxError as error:
        return Expanded(text, line, None, in_one_line(error))
