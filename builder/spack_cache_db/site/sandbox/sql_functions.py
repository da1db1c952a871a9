"""Our SQL functions: Spack's specs (`spec_match`, `spec_error`), and those of the canned queries.

SQLite hides what an exception in a function says, so a query that cannot be answered gives NULL,
and `spec_error` gives the reason as text. A function call is one step to SQLite, whose time limit
only counts steps: what one call may cost is bounded here, and the limit is looked at after each.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

from spack_cache_db.query.conditions import UnsupportedQuery, asked
from spack_cache_db.query.configurations import configuration_ids, configurations_of_binaries
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
    """Add all our functions to a connection to a published file."""
    _register_for_canned_queries(conn)
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
        ids &= configurations_of_binaries(self._conn, verdict.holds)
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


PAGE_ROWS = 999
"""Rows of one page; with the row that says what follows, as many as Datasette gives at once."""

MOST_NAMES = 10
MOST_HASHES = 5
ENOUGH_OF_HASH = 7


def _register_for_canned_queries(conn: sqlite3.Connection) -> None:
    """Add the functions of the canned queries to a connection."""
    for function in (first_row, last_row, page_error, hash_error, dependencies_error):
        count = function.__code__.co_argcount
        conn.create_function(function.__name__, count, function, deterministic=True)
    # The type hints of sqlite3 know only aggregates of one argument.
    aggregates: dict[str, Any] = {
        "near_names": NearNames,
        "package_error": PackageError,
        "release_error": ReleaseError,
    }
    for name, aggregate in aggregates.items():
        conn.create_aggregate(name, 2, aggregate)


def first_row(page: str | None) -> int:
    """Return the number of the first row on a page; the empty text is page 1."""
    return last_row(page) - PAGE_ROWS + 1


def last_row(page: str | None) -> int:
    """Return the number of the last row on a page, 0 for a text that is no page number."""
    return PAGE_ROWS * _page_number(page)


def page_error(page: str | None, rows: int | None) -> str | None:
    """Return what is wrong with a page number, or which page follows; None for the last page.

    Args:
        rows: how many rows there are on all pages; None where more follow, nobody knows how many.
    """
    number = _page_number(page)
    if not number and rows is None:
        return f"no page '{page}'; the first is 1"
    pages = number + 1 if rows is None else max(1, -(-rows // PAGE_ROWS))
    if not 1 <= number <= pages:
        return f"no page '{page}'; pages: 1 to {pages}"
    if number == pages:
        return None
    total = "" if rows is None else f" of {rows}"
    return f"row {last_row(page) + 1}{total} is on page {number + 1}"


def hash_error(wanted: str | None, hashes: str) -> str | None:
    """Return why a text does not mean one hash; None where it does.

    Args:
        hashes: a JSON array of the hashes that begin with the text.
    """
    found, wanted = sorted(json.loads(hashes)), _hash(wanted)
    if len(found) == 1:
        return None
    if found:
        return f"several hashes begin with '{wanted}': {', '.join(found[:MOST_HASHES])}"
    if wanted and len(wanted) < ENOUGH_OF_HASH:
        return (
            f"too short: '{wanted}'; a hash has 32 characters, {ENOUGH_OF_HASH} of them are enough"
        )
    return f"no hash begins with '{wanted}'; all hashes are in the table specs"


def dependencies_error(wanted: str | None, hashes: str, in_file: int, of_hash: int) -> str | None:
    """Return why there are no dependencies for a hash; None where there are.

    Args:
        hashes: a JSON array of the hashes that begin with the text.
        in_file: whether the file knows dependencies at all.
        of_hash: whether it knows those of the hash.
    """
    if not in_file:
        return "this file has no dependency data: it was built from pages alone"
    error = hash_error(wanted, hashes)
    if error is None and not of_hash:
        error = f"the file has no dependency data for '{json.loads(hashes)[0]}'"
    return error


class NearNames:
    """The SQL aggregate `near_names(wanted, name)`: the names that come nearest to a text."""

    def __init__(self) -> None:
        self._wanted = ""
        self._names: list[str] = []

    def step(self, wanted: str | None, name: str) -> None:
        """Take one of the names."""
        self._wanted = (wanted or "").strip(" ")
        self._names.append(name)

    def finalize(self) -> str | None:
        """Return the nearest names: first those that have the text, then those that begin so."""
        text = self._wanted.lower()

        def distance(name: str) -> tuple[bool, bool, bool, str]:
            return text not in name, name[:5] != text[:5], name[:2] != text[:2], name

        return ", ".join(nsmallest(MOST_NAMES, self._names, key=distance)) or "none"


class PackageError(NearNames):
    """The SQL aggregate `package_error(wanted, name)`: that no package has this name."""

    message = "no release has a package"

    def finalize(self) -> str | None:
        """Return the message; None where nothing was wanted, or something is called so."""
        if self._wanted in ("", *self._names):
            return None
        return f"{self.message} '{self._wanted}'; near it: {super().finalize()}"


class ReleaseError(PackageError):
    """The SQL aggregate `release_error(wanted, name)`: that no release has this name."""

    message = "no release is called"


def _page_number(text: str | None) -> int:
    """Return the number of a page, 0 for a text that is none."""
    text = (text or "").strip(" ") or "1"
    # Python refuses to read numbers of thousands of digits.
    return int(text[:12]) if text.isascii() and text.isdigit() else 0


def _hash(text: str | None) -> str:
    return (text or "").strip(" ").strip("/").lower()
