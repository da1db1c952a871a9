"""Files that claim to be databases of this program: damaged, cut, or with endless
views.
"""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from attacks.builder import enough, run, run_command
from attacks.outcome import Outcome
from spack_cache_db.inspect_file import NAME, inspect_path
from tests.site.cache import write_pages

MOST_SECONDS = 10.0
"""Processor time that a file of at most a megabyte may cost a command."""

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n"
OBJECTS = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
COLUMNS = """
SELECT tables.name, columns.name
FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns
WHERE tables.type = 'table' AND tables.name NOT LIKE '%\\_fts%' ESCAPE '\\' ORDER BY 1, 2
"""
TYPED_COLUMNS = """
SELECT tables.name, columns.name
FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns
WHERE tables.type = 'table' AND tables.name NOT LIKE '%\\_fts%' ESCAPE '\\'
  AND tables.name NOT LIKE 'sqlite%' AND columns.type = ?
ORDER BY 1, 2
"""
LOOSENED = """
UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')
WHERE type = 'table' AND name NOT LIKE '%\\_fts%' ESCAPE '\\'
"""
ODD = (
    None,
    -1,
    2**62,
    0.5,
    "",
    "[" * 10_000,
    '{"a":1}',
    "x" * 200_000,
    b"\xff\xed\xa0\x80",
    "\u202e\n",
)


def databases(seconds: float) -> Outcome:
    """Change a good database in each way, and read it with each command."""
    outcome, chosen, began = Outcome("databases"), random.Random(11), time.monotonic()
    slowest = 0.0
    with TemporaryDirectory(prefix="attacks-") as folder:
        pages, good, bad = (
            write_pages(Path(folder, "pages")),
            Path(folder, "a.db"),
            Path(folder, "b.db"),
        )
        specs = Path(folder, "specs.txt")
        specs.write_text("hdf5\nzlib\n", encoding="utf-8")
        run("build", pages, "-o", good)
        commands = (
            ("info", bad),
            ("find", "hdf5", bad, "--hashes"),
            ("cover", specs, bad),
            ("diff", "develop", "develop", bad),
            ("verify", bad, pages),
            ("build", bad, "-o", Path(folder, "c.db")),
        )
        for name, change in cycle(CHANGES.items()):
            bad.write_bytes(good.read_bytes())
            inspect_path(bad).unlink(missing_ok=True)
            change(bad, chosen)
            for command in commands:
                ran = run_command(*command)
                slowest = max(slowest, ran.cpu_seconds)
                faults = ran.faults((0, 1, 2), MOST_SECONDS)
                outcome.judge(f"{command[0]} of a file with {name}", faults)
            if enough(began, seconds):
                break
    outcome.note = f"the slowest took {slowest:.1f} s"
    return outcome


def _damaged(file: Path, chosen: random.Random) -> None:
    data = bytearray(file.read_bytes())
    for _ in range(chosen.choice((1, 5, 40))):
        data[chosen.randrange(100, len(data))] = chosen.randrange(256)
    file.write_bytes(data)


def _cut(file: Path, chosen: random.Random) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: chosen.randrange(len(data))])


def _endless(file: Path, chosen: random.Random) -> None:
    """Replace a table, a view or an index by a view that does not end."""
    with closing(sqlite3.connect(file)) as db:
        name = chosen.choice(db.execute(OBJECTS).fetchall())[0]
        db.execute("PRAGMA writable_schema = ON")
        db.execute("DELETE FROM sqlite_master WHERE name = ?", [name])
        view = ("view", name, name, 0, f'CREATE VIEW "{name}" AS {ENDLESS}')
        db.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", view)
        db.commit()


def _odd(file: Path, chosen: random.Random) -> None:
    """Write a value that no build writes into all rows of a column."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        for table, column in chosen.sample(db.execute(COLUMNS).fetchall(), 3):
            with suppress(sqlite3.Error):
                sql = f'UPDATE "{table}" SET "{column}" = ?'  # noqa: S608 - names of its own schema
                db.execute(sql, [chosen.choice(ODD)])
        db.commit()


def _bytes_for_text(file: Path, chosen: random.Random) -> None:
    """Store texts of some columns as bytes, which compare and sort in another way."""
    _rewritten(file, chosen, "TEXT", "cast({column} AS BLOB)")


def _text_for_numbers(file: Path, chosen: random.Random) -> None:
    """Store texts in some columns of numbers."""
    _rewritten(
        file,
        chosen,
        "INTEGER",
        chosen.choice(("'x' || {column}", "'12 '", "''", "'0x1'")),
    )


def _huge_numbers(file: Path, chosen: random.Random) -> None:
    """Store numbers in some columns that fit into no list, or are negative."""
    numbers = (
        "9223372036854775807",
        "-9223372036854775808",
        "{column} + 1000000",
        "-{column}",
    )
    _rewritten(file, chosen, "INTEGER", chosen.choice(numbers))


def _no_value(file: Path, chosen: random.Random) -> None:
    """Store NULL where every build writes a text or a number."""
    _rewritten(file, chosen, chosen.choice(("TEXT", "INTEGER")), "NULL")


def _odd_texts(file: Path, chosen: random.Random) -> None:
    """Store empty, long or hostile texts in some columns."""
    texts = (
        *(
            "''",
            "'[' || {column}",
            "char(0) || {column}",
            "cast(x'ff80' AS TEXT)",
            "'../' || {column}",
        ),
        *(
            "'$(id) ' || {column}",
            "'<script>' || {column}",
            "replace(hex(zeroblob(9000)), '0', 'a')",
        ),
        *(
            "char(27) || '[2J'",
            "'NaN'",
            "'1e999'",
            "'9999-99-99'",
            "'{{\"a\": 1}}'",
            "'null'",
        ),
    )
    _rewritten(file, chosen, "TEXT", chosen.choice(texts))


def _rewritten(file: Path, chosen: random.Random, kind: str, expression: str) -> None:
    """Write an expression into three columns of a kind, whatever their table allows.

    The tables are changed to allow any value, and get their own statements back
    afterwards.
    """
    with closing(sqlite3.connect(file)) as db:
        statements = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        columns = db.execute(TYPED_COLUMNS, [kind]).fetchall()
        db.execute("PRAGMA writable_schema = ON")
        db.execute(LOOSENED)
        db.commit()
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        for table, column in chosen.sample(columns, 3):
            value = expression.format(column=f'"{column}"')
            with suppress(sqlite3.Error):
                db.execute(f'UPDATE "{table}" SET "{column}" = {value}')  # noqa: S608 - its schema
        db.commit()
        db.execute("PRAGMA writable_schema = ON")
        for name, statement in statements:
            db.execute(
                "UPDATE sqlite_master SET sql = ? WHERE name = ?", [statement, name]
            )
        db.commit()


def _missing_rows(file: Path, chosen: random.Random) -> None:
    """Delete all or some rows of three tables to which others refer."""
    condition = chosen.choice(("1", "rowid % 2", "rowid = 1", "rowid > 1"))
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        tables = sorted({table for table, _ in db.execute(COLUMNS).fetchall()})
        for table in chosen.sample(tables, 3):
            with suppress(sqlite3.Error):
                db.execute(f'DELETE FROM "{table}" WHERE {condition}')  # noqa: S608 - its schema
        db.commit()


def _header(file: Path, chosen: random.Random) -> None:
    """Change a field of the header: the journal, the encoding, the version or the
    size.
    """
    data = bytearray(file.read_bytes())
    position, value = chosen.choice(
        (
            (18, b"\2\2"),
            (56, b"\0\0\0\2"),
            (60, b"\0\0\0\5"),
            (60, b"\0\0\0\x15"),
            (60, b"\x7f\xff\xff\xff"),
            (68, b"abcd"),
            (28, b"\0\0\0\1"),
            (28, b"\x7f\0\0\0"),
            (16, b"\2\0"),
            (20, b"\xff"),
            (44, b"\0\0\0\x63"),
            (64, b"\0\0\0\1"),
        )
    )
    data[position : position + len(value)] = value
    file.write_bytes(data)


def _inspect_file(file: Path, chosen: random.Random) -> None:
    """Write an inspect file that lies or cannot be read."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    count = chosen.choice((-1, 10**30, "x", None, [1], {"count": 1}, 0.5, True))
    lies: tuple[object, ...] = (
        {"specs": {"count": count}},
        {"specs": count},
        [],
        None,
        "specs",
        1,
    )
    tables = chosen.choice(lies)
    entry = {
        "hash": chosen.choice((digest, digest.upper(), "0" * 64, "", None, 1, ["a"])),
        "size": chosen.choice((file.stat().st_size, -1, "1", None)),
        "file": chosen.choice((file.name, "/etc/passwd", "../x.db", None, 5)),
        "tables": tables,
        "build": chosen.choice(
            (None, [], {"counts": count, "day": count, "looked": count})
        ),
    }
    name = chosen.choice((NAME, NAME, "other", ""))
    text = json.dumps({name: chosen.choice((entry, entry, entry, [], None, "x"))})
    texts = (
        text,
        text,
        text,
        text,
        "[" * 9_000,
        "",
        "{",
        "null",
        '{"a": NaN}',
        "9" * 9_000,
    )
    inspect_path(file).write_text(chosen.choice(texts), encoding="utf-8")


def _triggers(file: Path, _: random.Random) -> None:
    """Add a view and a trigger, as another program may have done."""
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"CREATE VIEW notes AS {ENDLESS}")
        db.execute(
            "CREATE TRIGGER t INSTEAD OF INSERT ON notes BEGIN SELECT max(id) FROM notes; END"
        )
        db.commit()


CHANGES: dict[str, Callable[[Path, random.Random], None]] = {
    "other bytes": _damaged,
    "its end cut off": _cut,
    "a view that does not end": _endless,
    "odd values": _odd,
    "another program's view and trigger": _triggers,
    "bytes for text": _bytes_for_text,
    "text for numbers": _text_for_numbers,
    "huge numbers": _huge_numbers,
    "no value": _no_value,
    "odd texts": _odd_texts,
    "missing rows": _missing_rows,
    "another header": _header,
    "an inspect file that lies": _inspect_file,
}
