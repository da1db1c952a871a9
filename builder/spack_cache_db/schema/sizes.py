"""The sizes of binaries, as SQL.

A size is stored as its source writes it, so it may be any text.
"""

from __future__ import annotations


def is_size(column: str) -> str:
    """Return the condition that a text is a whole number which SQLite can store.

    Numbers with 18 digits fit into 64 bits.
    """
    return f"trim({column}, '0123456789') = '' AND length({column}) BETWEEN 1 AND 18"


def size_in_bytes(column: str) -> str:
    """Return the number in a text that satisfies `is_size`.

    An INTEGER of DuckDB has 32 bits; SQLite stores both types alike.
    """
    return f"CAST({column} AS BIGINT)"
