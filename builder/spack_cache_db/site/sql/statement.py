"""A statement with its bounds, and what came of it: what server and runners tell each other.

Messages are MessagePack, each after its length: what a runner sends is data and nothing else, even
where a statement got the better of it.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Any, BinaryIO

import msgspec

from spack_cache_db.site.sql.limits import NO_MEMORY, RESULT_BYTES, RESULT_CELLS, TOO_MUCH

Value = Any
"""What SQLite has: text, bytes, a number or None. MessagePack tells them apart, so no type need."""

STEPS = 1_000
"""Between two looks at the time, as Datasette has it."""


class Statement(msgspec.Struct, frozen=True, array_like=True):
    """What to run: at most so long, and for so many rows (None: all)."""

    sql: str
    params: dict[str, Value] | list[Value]
    milliseconds: float
    most_rows: int | None


class Rows(msgspec.Struct, frozen=True, array_like=True, tag="rows"):
    """What a statement found; there may have been more rows than were asked for."""

    columns: list[str]
    rows: list[tuple[Value, ...]]
    is_cut: bool


class Refusal(msgspec.Struct, frozen=True, array_like=True, tag="refusal"):
    """Why there are no rows: the name of the exception in `sqlite3`, and its message."""

    kind: str
    message: str


Answer = Rows | Refusal

READY = Rows([], [], is_cut=False)
"""The first message of a runner."""
INTERRUPTED = Refusal("OperationalError", "interrupted")
BROKEN = Refusal("OperationalError", "the query made SQLite fail")
OUT_OF_MEMORY = Refusal("MemoryError", NO_MEMORY)


def run(conn: sqlite3.Connection, statement: Statement) -> Answer:
    """Run a statement within its bounds, and those of `limits`."""
    end = time.monotonic() + statement.milliseconds / 1000
    conn.set_progress_handler(lambda: time.monotonic() > end, STEPS)
    try:
        return _fetched(conn.execute(statement.sql, statement.params), statement.most_rows)
    except sqlite3.Error as error:
        return Refusal(type(error).__name__, str(error))
    except MemoryError:
        return OUT_OF_MEMORY
    finally:
        conn.set_progress_handler(None, 0)


def _fetched(cursor: sqlite3.Cursor, most: int | None) -> Answer:
    rows: list[tuple[Value, ...]] = []
    taken = cells = 0
    columns = [described[0] for described in cursor.description or ()]
    # JSON and HTML say the names again in each row.
    names = sum(map(_size, columns))
    for row in cursor:
        if most is not None and len(rows) == most:
            return Rows(columns, rows, is_cut=True)
        taken += names + sum(map(_size, row))
        cells += len(row)
        if taken > RESULT_BYTES or cells > RESULT_CELLS:
            return Refusal("OperationalError", TOO_MUCH)
        rows.append(row)
    return Rows(columns, rows, is_cut=False)


def _size(value: Value) -> int:
    if isinstance(value, str):
        # JSON escapes what is not ASCII.
        return len(value) if value.isascii() else 3 * len(value)
    return len(value) if isinstance(value, bytes) else 0


def send(stream: BinaryIO, message: Statement | Answer) -> None:
    """Write a message."""
    encoded = msgspec.msgpack.encode(message)
    stream.write(len(encoded).to_bytes(4, "big") + encoded)
    stream.flush()


def receive(stream: BinaryIO) -> bytes | None:
    """Read the bytes of a message; None where the other side is gone."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    length = int.from_bytes(head, "big")
    encoded = stream.read(length)
    return encoded if len(encoded) == length else None
