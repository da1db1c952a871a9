"""Our SQL functions for specs in Spack's syntax: `spec_match` and `spec_error`.

SQLite hides the text of an exception in a function, so a query without an answer
returns NULL, and `spec_error` returns the reason. SQLite's time limit counts steps, and
a function call is one step: this module limits the cost of a call, and checks the time
before it reads a new query.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from functools import cached_property, lru_cache
from typing import NamedTuple

from spack_cache_db.query.conditions.conditions import condition_value
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.selection import configuration_ids
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.query.open.sql import SqlValue, check_time
from spack_cache_db.query.stored.binary import configurations_of_listed
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.queries import SpecQuery

LONGEST = 2_000
"""Limit of a spec in characters; Spack prints concrete specs of more than a
thousand.
"""

MOST_KEPT = 8
SPEC = "SELECT id, configuration_id FROM specs WHERE hash = :hash"


class _MatchingIds(NamedTuple):
    """The ids that satisfy a query, as one byte per id (1 or 0): a set would take
    megabytes.

    Attributes:
        configurations: configurations that satisfy it, or have a spec that does.
        specs: specs that satisfy it; None if the query only concerns configurations.
        prefix: the beginning of the hash that the query asks for.
        error: the reason why the query has no answer.
    """

    configurations: bytes = b""
    specs: bytes | None = None
    prefix: str = ""
    error: str | None = None


def parse(text: str) -> SpecQuery:
    """Return a visitor's spec; longer ones, such as a list of versions, could take
    seconds.

    Raises:
        QuerySyntaxError: the text is not a spec, or is too long.
    """
    if len(text) > LONGEST:
        expected = f"at most {LONGEST} characters on this site"
        raise QuerySyntaxError(text, LONGEST, expected, f"{len(text):,} characters")
    return parse_query(text)


class SpecFunctions:
    """The functions of one connection; they keep answers, because statements repeat
    queries.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        # Kept, because making a cursor takes longer than reading a hash.
        self._by_hash = conn.cursor()
        self._by_hash.row_factory = None
        self._kept_answer = lru_cache(MOST_KEPT)(self._read_answer)

    @cached_property
    def _lookups(self) -> Lookups:
        return read_lookups(self._conn)

    def match(self, query: SqlValue, which: SqlValue) -> int | None:
        """Return whether a spec or configuration satisfies a query; NULL if it has no
        answer.

        Args:
            query: a spec in Spack's syntax.
            which: the hash of a spec (text), or the id of a configuration (number).
        """
        answer = self._answer(query)
        if answer is None or answer.error is not None:
            return None
        if isinstance(which, int):
            return int(_is_set(answer.configurations, which))
        if isinstance(which, str):
            return int(self._has_hash(answer, which))
        return None

    def _has_hash(self, answer: _MatchingIds, dag_hash: str) -> bool:
        """Return whether the spec with a hash is in an answer; unknown ones are not."""
        if not dag_hash.startswith(answer.prefix):
            return False
        row = self._by_hash.execute(SPEC, {"hash": dag_hash}).fetchone()
        if row is None:
            return False
        spec, configuration = row
        if answer.specs is not None and not _is_set(answer.specs, spec):
            return False
        return _is_set(answer.configurations, configuration)

    def error(self, query: SqlValue) -> str | None:
        """Return the reason why a query has no answer; NULL if it has one."""
        answer = self._answer(query)
        return None if answer is None else answer.error

    def _answer(self, query: SqlValue) -> _MatchingIds | None:
        """Return the answer to a query; None for NULL, or if the time is over."""
        if query is None:
            return None
        try:
            # Longer texts are refused anyway, so the rest need not be kept.
            return self._kept_answer(str(query)[: LONGEST + 1])
        except sqlite3.OperationalError:
            # The time is over; this ends the calling statement with SQLite's own error.
            self._conn.interrupt()
            return None

    def _read_answer(self, text: str) -> _MatchingIds:
        """Return the ids that satisfy a query; raises if the time is over."""
        check_time(self._conn)
        try:
            conditions = Question(self._lookups, parse(text)).conditions
        except (QuerySyntaxError, UnsupportedQuery) as error:
            return _MatchingIds(error=str(error))
        ids = set(configuration_ids(self._lookups, conditions, every=True))
        # Only conditions on dependencies, or a hash, tell specs of one configuration
        # apart.
        specs = None
        verdict = condition_value(conditions, "specs")
        if verdict is not None:
            ids &= configurations_of_listed(self._conn, verdict.matching)
            specs = _flags(verdict.matching)
        prefix = condition_value(conditions, "hash") or ""
        return _MatchingIds(_flags(ids), specs, prefix)


def _is_set(flags: bytes, number: int) -> bool:
    return 0 <= number < len(flags) and flags[number] == 1


def _flags(ids: Collection[int]) -> bytes:
    """Return a byte for each id up to the largest: 1 for those in `ids`, else 0."""
    flags = bytearray(max(ids, default=0) + 1)
    for number in ids:
        flags[number] = 1
    return bytes(flags)
