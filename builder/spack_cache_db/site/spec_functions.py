"""Spack's spec syntax in SQL: `spec_configurations`, `spec_match` and `spec_error`.

SQLite hides what an exception in a function says, so a query that cannot be answered gives NULL,
and `spec_error` gives the reason as text. A function call is one step to SQLite, whose time limit
only counts steps: what one call may cost is bounded here, and the limit is looked at after each.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from spack_cache_db.query.answerable import UnsupportedQuery
from spack_cache_db.query.asked import hash_matches
from spack_cache_db.query.conditions import asked_of, configuration_ids
from spack_cache_db.query.lookups import Lookups, read_lookups
from spack_cache_db.query.open import select
from spack_cache_db.spack.query import QuerySyntaxError, SpecQuery, parse_query

LONGEST = 400
MOST_KEPT = 8
# More steps than Datasette lets pass between two looks at the time.
LOOK_AT_THE_TIME = """
WITH RECURSIVE steps(step) AS (SELECT 1 UNION ALL SELECT step + 1 FROM steps WHERE step < 200)
SELECT count(*) FROM steps
"""
CONFIGURATION = "SELECT configuration FROM specs WHERE hash = :hash"

Value = str | bytes | int | float | None


@dataclass(frozen=True, slots=True)
class _Answer:
    ids: frozenset[int] = frozenset()
    hash: str | None = None
    error: str | None = None


def register(conn: sqlite3.Connection) -> None:
    """Add the functions to a connection to a published file."""
    functions = SpecFunctions(conn)
    conn.create_function("spec_configurations", 1, functions.configurations, deterministic=True)
    conn.create_function("spec_match", 2, functions.match, deterministic=True)
    conn.create_function("spec_error", 1, functions.error, deterministic=True)


def parse(text: str) -> SpecQuery:
    """Read a visitor's spec: a list of a thousand versions would take seconds to answer.

    Raises:
        QuerySyntaxError: the text is no spec, or longer than visitors may ask.
    """
    if len(text) > LONGEST:
        expected = f"at most {LONGEST} characters on this site"
        raise QuerySyntaxError(text, LONGEST, expected, f"{len(text):,} characters")
    return parse_query(text)


class SpecFunctions:
    """The functions of one connection; a statement asks one query many times."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._lookups: Lookups | None = None
        self._answers: dict[str, _Answer] = {}

    def configurations(self, query: Value) -> str | None:
        """`spec_configurations(query)`: the ids that satisfy it, as a JSON array."""
        answer = self._answer(query)
        return None if answer is None or answer.error else json.dumps(sorted(answer.ids))

    def match(self, query: Value, dag_hash: Value) -> int | None:
        """`spec_match(query, hash)`: 1 where the spec satisfies the query, 0 where it does not."""
        answer = self._answer(query)
        if answer is None or answer.error or not isinstance(dag_hash, str):
            return None
        if not answer.ids or not hash_matches(answer.hash, dag_hash):
            return 0
        found = select(self._conn, CONFIGURATION, hash=dag_hash)
        return int(any(row[0] in answer.ids for row in found))

    def error(self, query: Value) -> str | None:
        """`spec_error(query)`: why it cannot be answered; NULL where it can."""
        answer = self._answer(query)
        return None if answer is None else answer.error

    def _answer(self, query: Value) -> _Answer | None:
        if query is None:
            return None
        # What is too long is refused; no more of it is worth keeping.
        text = str(query)[: LONGEST + 1]
        if text not in self._answers:
            if len(self._answers) >= MOST_KEPT:
                self._answers.clear()
            try:
                self._answers[text] = self._asked(text)
                list(select(self._conn, LOOK_AT_THE_TIME))
            except sqlite3.OperationalError:
                # The time is over; this ends the statement that called, with SQLite's own error.
                self._conn.interrupt()
                return None
        return self._answers[text]

    def _asked(self, text: str) -> _Answer:
        try:
            asked = asked_of(self._conn, parse(text))
        except (QuerySyntaxError, UnsupportedQuery) as error:
            return _Answer(error=str(error))
        if self._lookups is None:
            self._lookups = read_lookups(self._conn)
        return _Answer(frozenset(configuration_ids(self._conn, self._lookups, asked)), asked.hash)
