"""Our SQL functions for specs in Spack's syntax: `spec_match` and `spec_error`.

SQLite hides the text of an exception in a function, so a query without an answer returns NULL, and
`spec_error` returns the reason. SQLite's time limit counts steps, and a function call is one step:
this module limits the cost of a call, and checks the time after each.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from spack_cache_db.query.conditions import UnsupportedQuery, asked
from spack_cache_db.query.configurations import configurations_of_listed
from spack_cache_db.query.database import Lookups, read_lookups, select
from spack_cache_db.query.records import question_of
from spack_cache_db.query.selection import configuration_ids
from spack_cache_db.site.sandbox.statements import SqlValue
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query

LONGEST = 2_000
"""Limit of a spec in characters; Spack prints concrete specs of more than a thousand."""

MOST_KEPT = 8
# More steps than Datasette allows between two checks of the time.
LOOK_AT_THE_TIME = """
WITH RECURSIVE steps(step) AS (SELECT 1 UNION ALL SELECT step + 1 FROM steps WHERE step < 70)
SELECT count(*) FROM steps
"""
SPEC = "SELECT id, configuration FROM specs WHERE hash = :hash"


@dataclass(frozen=True, slots=True)
class _Answer:
    """The ids that satisfy a query, as one byte per id (1 or 0).

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

    def holds(self, configuration: int, spec: int | None = None) -> bool:
        if spec is not None and self.specs is not None and not _is_set(self.specs, spec):
            return False
        return _is_set(self.configurations, configuration)


def register(conn: sqlite3.Connection) -> None:
    """Add our functions to a connection to a published database."""
    functions = SpecFunctions(conn)
    conn.create_function("spec_match", 2, functions.match, deterministic=True)
    conn.create_function("spec_error", 1, functions.error, deterministic=True)


def parse(text: str) -> SpecQuery:
    """Return a visitor's spec; longer ones, such as a list of versions, could take seconds.

    Raises:
        QuerySyntaxError: the text is not a spec, or is too long.
    """
    if len(text) > LONGEST:
        expected = f"at most {LONGEST} characters on this site"
        raise QuerySyntaxError(text, LONGEST, expected, f"{len(text):,} characters")
    return parse_query(text)


class SpecFunctions:
    """The functions of one connection; they keep answers, because statements repeat queries."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        # Kept, because making a cursor takes longer than reading a hash.
        self._by_hash = conn.cursor()
        self._by_hash.row_factory = None
        self._lookups: Lookups | None = None
        self._answers: dict[str, _Answer] = {}

    def match(self, query: SqlValue, which: SqlValue) -> int | None:
        """Return whether a spec or configuration satisfies a query; NULL if it has no answer.

        Args:
            which: the hash of a spec (text), or the id of a configuration (number).
        """
        answer = self._answer(query)
        if answer is None or answer.error is not None:
            return None
        if isinstance(which, int):
            return int(answer.holds(which))
        if not isinstance(which, str):
            return None
        if not which.startswith(answer.prefix):
            return 0
        row = self._by_hash.execute(SPEC, {"hash": which}).fetchone()
        return int(row is not None and answer.holds(configuration=row[1], spec=row[0]))

    def error(self, query: SqlValue) -> str | None:
        """Return the reason why a query has no answer; NULL if it has one."""
        answer = self._answer(query)
        return None if answer is None else answer.error

    def _answer(self, query: SqlValue) -> _Answer | None:
        if query is None:
            return None
        # Longer texts are refused anyway, so the rest need not be kept.
        text = str(query)[: LONGEST + 1]
        if text not in self._answers:
            if len(self._answers) >= MOST_KEPT:
                self._answers.clear()
            try:
                self._answers[text] = self._read_answer(text)
                list(select(self._conn, LOOK_AT_THE_TIME))
            except sqlite3.OperationalError:
                # The time is over; this ends the calling statement with SQLite's own error.
                self._conn.interrupt()
                return None
        return self._answers[text]

    def _read_answer(self, text: str) -> _Answer:
        if self._lookups is None:
            self._lookups = read_lookups(self._conn)
        try:
            conditions = question_of(self._lookups, parse(text)).conditions
        except (QuerySyntaxError, UnsupportedQuery) as error:
            return _Answer(error=str(error))
        ids = {*configuration_ids(self._lookups, conditions, every=True)}
        prefix, verdict = asked(conditions, "hash") or "", asked(conditions, "specs")
        if verdict is None:
            return _Answer(_flags(ids), None, prefix)
        ids &= configurations_of_listed(self._conn, verdict.holds)
        return _Answer(_flags(ids), _flags(verdict.holds), prefix)


def _is_set(flags: bytes, number: int) -> bool:
    return 0 <= number < len(flags) and flags[number] == 1


def _flags(ids: Iterable[int]) -> bytes:
    """Return one byte per id, 1 for each id in `ids`; a set would take megabytes."""
    numbers = [*ids]
    flags = bytearray(max(numbers, default=0) + 1)
    for number in numbers:
        flags[number] = 1
    return bytes(flags)
