"""Our SQL functions, for specs in Spack's syntax: `spec_match` and `spec_error`.

SQLite hides what an exception in a function says, so a query that cannot be answered gives NULL,
and `spec_error` gives the reason as text. A function call is one step to SQLite, whose time limit
only counts steps: what one call may cost is bounded here, and the limit is looked at after each.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from spack_cache_db.query.conditions import UnsupportedQuery, asked
from spack_cache_db.query.configurations import configuration_ids, configurations_of_listed
from spack_cache_db.query.database import Lookups, read_lookups, select
from spack_cache_db.query.records import question_of
from spack_cache_db.site.sandbox.statements import SqlValue
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query

LONGEST = 2_000
"""Characters of a spec; Spack prints concrete ones of more than a thousand."""

MOST_KEPT = 8
# More steps than Datasette lets pass between two looks at the time.
LOOK_AT_THE_TIME = """
WITH RECURSIVE steps(step) AS (SELECT 1 UNION ALL SELECT step + 1 FROM steps WHERE step < 70)
SELECT count(*) FROM steps
"""
SPEC = "SELECT id, configuration FROM specs WHERE hash = :hash"


@dataclass(frozen=True, slots=True)
class _Answer:
    """What satisfies a query: a byte for each id, 1 where it does.

    Attributes:
        configurations: those that satisfy it, or of which some spec does.
        specs: those that satisfy what is asked beyond configurations; None where nothing is.
    """

    configurations: bytes = b""
    specs: bytes | None = None
    prefix: str = ""
    error: str | None = None

    def holds(self, configuration: int, spec: int | None = None) -> bool:
        return _is_set(self.configurations, configuration) and (
            spec is None or self.specs is None or _is_set(self.specs, spec)
        )


def register(conn: sqlite3.Connection) -> None:
    """Add our functions to a connection to a published file."""
    functions = SpecFunctions(conn)
    conn.create_function("spec_match", 2, functions.match, deterministic=True)
    conn.create_function("spec_error", 1, functions.error, deterministic=True)


def parse(text: str) -> SpecQuery:
    """Return a visitor's spec: to answer a list of a thousand versions would take seconds.

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
        # Kept, because a statement asks for every hash of a file: to make a cursor takes longer.
        self._by_hash = conn.cursor()
        self._by_hash.row_factory = None
        self._lookups: Lookups | None = None
        self._answers: dict[str, _Answer] = {}

    def match(self, query: SqlValue, which: SqlValue) -> int | None:
        """`spec_match(query, hash)` or `spec_match(query, configuration)`.

        A text is the hash of a spec, a number the id of a configuration.

        Returns:
            1 where it satisfies the query, 0 where it does not; a spec by its own configuration.
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
        own = self._by_hash.execute(SPEC, {"hash": which}).fetchone()
        return int(own is not None and answer.holds(configuration=own[1], spec=own[0]))

    def error(self, query: SqlValue) -> str | None:
        """`spec_error(query)`: why it cannot be answered; NULL where it can."""
        answer = self._answer(query)
        return None if answer is None else answer.error

    def _answer(self, query: SqlValue) -> _Answer | None:
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
    """Return a byte for each id, 1 for those that are given: a set of all would take megabytes."""
    listed = [*ids]
    flags = bytearray(max(listed, default=0) + 1)
    for each in listed:
        flags[each] = 1
    return bytes(flags)
