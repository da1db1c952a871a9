"""The SQL functions `spec_match` and `spec_error`, for one connection.

`spec_match('hdf5 +mpi', hash)` is called for each row of a statement with the same
spec. So the spec is answered once, for all ids of the database, and the answer is kept.

SQLite hides the text of an exception in a function. So a spec without an answer gives
NULL, and `spec_error` returns the reason. SQLite's time limit counts steps, and a call
is one step: this module limits the length of a spec, and checks the time before it
answers a new one.
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
"""How many answers are kept: a statement has one or a few specs."""

SPEC = "SELECT id, configuration_id FROM specs WHERE hash = :hash"


class _MatchingIds(NamedTuple):
    """The answer to a spec: what satisfies it, by id.

    Ids are kept as flags, one byte for each id of the database: 1 if it is among them,
    else 0. A set would take megabytes.

    Attributes:
        configurations: configurations that satisfy the spec, or have a binary that
            does.
        specs: binaries that satisfy it; None if a binary does whenever its
            configuration does.
        prefix: the beginning of the hash that the spec asks for; empty if it asks for
            none.
        error: the reason why there is no answer.
    """

    configurations: bytes = b""
    specs: bytes | None = None
    prefix: str = ""
    error: str | None = None


class SpecFunctions:
    """The functions of one connection, to be registered with it."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        # Kept, because making a cursor takes longer than reading a hash.
        self._cursor = conn.cursor()
        self._cursor.row_factory = None
        self._kept_answer = lru_cache(MOST_KEPT)(self._read_answer)

    @cached_property
    def _lookups(self) -> Lookups:
        """The small tables of the database, read for the first spec."""
        return read_lookups(self._conn)

    def match(self, query: SqlValue, which: SqlValue) -> int | None:
        """Return 1 if a binary or a configuration satisfies a spec, else 0.

        NULL if the spec has no answer.

        Args:
            query: a spec in Spack's syntax.
            which: the hash of a binary (text), or the id of a configuration (number).
        """
        answer = self._answer(query)
        if answer is None or answer.error is not None:
            return None
        if isinstance(which, int):
            return int(_is_set(answer.configurations, which))
        if isinstance(which, str):
            return int(self._has_hash(answer, which))
        return None

    def error(self, query: SqlValue) -> str | None:
        """Return the reason why a spec has no answer; NULL if it has one."""
        answer = self._answer(query)
        return None if answer is None else answer.error

    def _has_hash(self, answer: _MatchingIds, dag_hash: str) -> bool:
        """Return whether the binary with a hash is in an answer; False for unknown
        hashes.
        """
        if not dag_hash.startswith(answer.prefix):
            return False
        row = self._cursor.execute(SPEC, {"hash": dag_hash}).fetchone()
        if row is None:
            return False
        spec, configuration = row
        if answer.specs is not None and not _is_set(answer.specs, spec):
            return False
        return _is_set(answer.configurations, configuration)

    def _answer(self, query: SqlValue) -> _MatchingIds | None:
        """Return the answer to a spec; None for NULL, or if the time is over."""
        if query is None:
            return None
        # `parse` refuses longer texts, so the rest need not be kept.
        text = str(query)[: LONGEST + 1]
        try:
            return self._kept_answer(text)
        except sqlite3.OperationalError:
            # The time is over. This ends the calling statement with SQLite's own error.
            self._conn.interrupt()
            return None

    def _read_answer(self, text: str) -> _MatchingIds:
        """Return the answer to a spec.

        Raises:
            sqlite3.OperationalError: the time of the statement is over.
        """
        check_time(self._conn)
        try:
            conditions = Question(self._lookups, parse(text)).conditions
        except (QuerySyntaxError, UnsupportedQuery) as error:
            return _MatchingIds(error=str(error))
        ids = set(configuration_ids(self._lookups, conditions, every=True))

        # Only some conditions, such as those on dependencies, tell binaries of one
        # configuration apart. Then configurations need a binary that satisfies them.
        specs = None
        verdict = condition_value(conditions, "specs")
        if verdict is not None:
            ids &= configurations_of_listed(self._conn, verdict.matching)
            specs = _flags(verdict.matching)
        prefix = condition_value(conditions, "hash") or ""
        return _MatchingIds(_flags(ids), specs, prefix)


def parse(text: str) -> SpecQuery:
    """Return a spec, unless it is too long.

    A long one, such as a list of a thousand versions, could take seconds.

    Raises:
        QuerySyntaxError: the text is not a spec, or is longer than `LONGEST`.
    """
    if len(text) > LONGEST:
        expected = f"at most {LONGEST} characters on this site"
        raise QuerySyntaxError(text, LONGEST, expected, f"{len(text):,} characters")
    return parse_query(text)


def _is_set(flags: bytes, number: int) -> bool:
    """Return whether an id is among those of `_flags`."""
    return 0 <= number < len(flags) and flags[number] == 1


def _flags(ids: Collection[int]) -> bytes:
    """Return a byte for each id up to the largest: 1 for those in `ids`, else 0."""
    flags = bytearray(max(ids, default=0) + 1)
    for number in ids:
        flags[number] = 1
    return bytes(flags)
