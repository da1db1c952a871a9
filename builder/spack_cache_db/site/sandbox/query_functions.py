"""SQL functions that the canned queries of metadata.yml share.

Each query answers one page of its rows, and says in its column `error` what is wrong with a
parameter, or that another page follows. The functions say this once for all queries.
"""

from __future__ import annotations

import json
import sqlite3
from heapq import nsmallest
from typing import Any

PAGE_ROWS = 999
"""Rows of one page; with the row that says what follows, as many as Datasette gives at once."""

MOST_NAMES = 10
MOST_HASHES = 5
ENOUGH_OF_HASH = 7


def register(conn: sqlite3.Connection) -> None:
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
