"""SQL functions that one call can keep busy for minutes, replaced by ones that refuse to.

SQLite's time limit is looked at once in a thousand steps of a statement, and a call is one step:
`printf('%.*c', 900000000, 'x')` runs for seconds, `trim` with two long arguments for minutes, and
`instr` and `replace` take time with the product of two lengths. The replacements refuse such
arguments and hand all others to SQLite's own functions.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable

Value = str | bytes | int | float | None

LARGEST_PRODUCT = 20_000_000
MOST_ARGUMENTS = 100

_WIDE = re.compile(r"%[^%a-zA-Z]*(?:\*|[0-9]{5})")
_FORMATS = {
    count: "SELECT printf(" + ", ".join("?" * count) + ")" for count in range(1, MOST_ARGUMENTS)
}
_SEARCHES = {
    "trim": (2, "SELECT trim(?, ?)"),
    "ltrim": (2, "SELECT ltrim(?, ?)"),
    "rtrim": (2, "SELECT rtrim(?, ?)"),
    "instr": (2, "SELECT instr(?, ?)"),
    "replace": (3, "SELECT replace(?, ?, ?)"),
}


def replace_costly(conn: sqlite3.Connection, longest: int) -> None:
    """Replace the costly functions on a connection whose values are at most `longest` long."""
    # A function cannot call what it replaces, so another connection keeps the originals.
    originals = sqlite3.connect(":memory:", check_same_thread=False)
    too_big = "x" * (longest + 1)
    formatted = _formatted(originals, too_big)
    for name in ("printf", "format"):
        conn.create_function(name, -1, formatted, deterministic=True)
    for name, (count, sql) in _SEARCHES.items():
        conn.create_function(name, count, _searched(originals, sql, too_big), deterministic=True)


def _formatted(originals: sqlite3.Connection, too_big: str) -> Callable[..., Value]:
    def call(*values: Value) -> Value:
        if not values:
            return None
        if _WIDE.search(str(values[0])):
            # SQLite answers an overlong value with its own error, "string or blob too big".
            return too_big
        result: Value = originals.execute(_FORMATS[len(values)], values).fetchone()[0]
        return result

    return call


def _searched(originals: sqlite3.Connection, sql: str, too_big: str) -> Callable[..., Value]:
    def call(*values: Value) -> Value:
        if _length(values[0]) * _length(values[1]) > LARGEST_PRODUCT:
            return too_big
        result: Value = originals.execute(sql, values).fetchone()[0]
        return result

    return call


def _length(value: Value) -> int:
    return len(value) if isinstance(value, str | bytes) else 0
