"""Files that claim to be databases of this program: damaged, cut, or with endless
views.
"""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from attacks.builder import run, run_command
from attacks.outcome import Outcome, until
from spack_cache_db.inspect_file import NAME, inspect_path
from tests.site.cache import write_pages

MOST_SECONDS = 10.0
"""Processor time that a file of at most a megabyte may cost a command."""

Change = Callable[[Path, random.Random], None]
"""A function that changes a database, at random."""

ENDLESS_VIEW = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n
"""
OBJECTS = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
STATEMENTS = "SELECT sql, name FROM sqlite_master WHERE type = 'table'"
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
TRIGGER = """
CREATE TRIGGER t INSTEAD OF INSERT ON notes BEGIN SELECT max(id) FROM notes; END
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
"""Values that no build writes."""
TEXTS_FOR_NUMBERS = ("'x' || {column}", "'12 '", "''", "'0x1'")
HUGE_NUMBERS = (
    "9223372036854775807",
    "-9223372036854775808",
    "{column} + 1000000",
    "-{column}",
)
ODD_TEXTS = (
    "''",
    "'[' || {column}",
    "char(0) || {column}",
    "cast(x'ff80' AS TEXT)",
    "'../' || {column}",
    "'$(id) ' || {column}",
    "'<script>' || {column}",
    "replace(hex(zeroblob(9000)), '0', 'a')",
    "char(27) || '[2J'",
    "'NaN'",
    "'1e999'",
    "'9999-99-99'",
    "'{{\"a\": 1}}'",
    "'null'",
)
"""Expressions of SQL for the values of a column."""
HEADER_FIELDS = (
    (16, b"\2\0"),  # The size of a page.
    (18, b"\2\2"),  # The journal.
    (20, b"\xff"),  # The bytes of a page that are not used.
    (28, b"\0\0\0\1"),  # The number of pages.
    (28, b"\x7f\0\0\0"),
    (44, b"\0\0\0\x63"),  # The version of the schema's format.
    (56, b"\0\0\0\2"),  # The encoding of texts.
    (60, b"\0\0\0\5"),  # The version of the program's schema.
    (60, b"\0\0\0\x15"),
    (60, b"\x7f\xff\xff\xff"),
    (64, b"\0\0\0\1"),  # Incremental vacuum.
    (68, b"abcd"),  # The program.
)
"""Positions and values of fields of the header: see SQLite's "Database File Format"."""
NO_INSPECT_FILES = ("[" * 9_000, "", "{", "null", '{"a": NaN}', "9" * 9_000)
"""Texts that cannot be read as an inspect file."""


def databases(seconds: float) -> Outcome:
    """Change a good database in each way, and read it with each command."""
    outcome = Outcome("databases")
    chance = random.Random(11)
    slowest = 0.0
    with TemporaryDirectory(prefix="attacks-") as name:
        folder = Path(name)
        good = folder / "a.db"
        bad = folder / "b.db"
        pages = write_pages(folder / "pages")
        run("build", pages, "-o", good)
        specs = folder / "specs.txt"
        specs.write_text("hdf5\nzlib\n", encoding="utf-8")
        commands = (
            ("info", bad),
            ("find", "hdf5", bad, "--hashes"),
            ("cover", specs, bad),
            ("diff", "develop", "develop", bad),
            ("verify", bad, pages),
            ("build", bad, "-o", folder / "c.db"),
        )
        for title, change in until(seconds, cycle(CHANGES.items())):
            write_changed(good, bad, change, chance)
            for command in commands:
                ran = run_command(*command)
                slowest = max(slowest, ran.cpu_seconds)
                faults = ran.faults((0, 1, 2), MOST_SECONDS)
                outcome.judge(f"{command[0]} of a file with {title}", faults)
    outcome.note = f"the slowest took {slowest:.1f} s"
    return outcome


def write_changed(good: Path, bad: Path, change: Change, chance: random.Random) -> None:
    """Write a copy of a good database, changed in one way, without an inspect file."""
    bad.write_bytes(good.read_bytes())
    inspect_path(bad).unlink(missing_ok=True)
    change(bad, chance)


def _damaged(file: Path, chance: random.Random) -> None:
    """Change one to forty bytes after the header."""
    data = bytearray(file.read_bytes())
    for _ in range(chance.choice((1, 5, 40))):
        position = chance.randrange(100, len(data))
        data[position] = chance.randrange(256)
    file.write_bytes(data)


def _cut(file: Path, chance: random.Random) -> None:
    """Cut the end off, at any byte."""
    data = file.read_bytes()
    file.write_bytes(data[: chance.randrange(len(data))])


def _endless(file: Path, chance: random.Random) -> None:
    """Replace a table, a view or an index by a view that does not end."""
    with closing(sqlite3.connect(file)) as db:
        (name,) = chance.choice(db.execute(OBJECTS).fetchall())
        db.execute("PRAGMA writable_schema = ON")
        db.execute("DELETE FROM sqlite_master WHERE name = ?", [name])
        view = ("view", name, name, 0, f'CREATE VIEW "{name}" AS {ENDLESS_VIEW}')
        db.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", view)
        db.commit()


def _odd(file: Path, chance: random.Random) -> None:
    """Write a value that no build writes into all rows of a column."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        for table, column in chance.sample(db.execute(COLUMNS).fetchall(), 3):
            with suppress(sqlite3.Error):
                sql = f'UPDATE "{table}" SET "{column}" = ?'  # noqa: S608 - names of its own schema
                db.execute(sql, [chance.choice(ODD)])
        db.commit()


def _bytes_for_text(file: Path, chance: random.Random) -> None:
    """Store texts of some columns as bytes, which compare and sort in another way."""
    _rewritten(file, chance, "TEXT", "cast({column} AS BLOB)")


def _text_for_numbers(file: Path, chance: random.Random) -> None:
    """Store texts in some columns of numbers."""
    _rewritten(file, chance, "INTEGER", chance.choice(TEXTS_FOR_NUMBERS))


def _huge_numbers(file: Path, chance: random.Random) -> None:
    """Store numbers in some columns that fit into no list, or are negative."""
    _rewritten(file, chance, "INTEGER", chance.choice(HUGE_NUMBERS))


def _no_value(file: Path, chance: random.Random) -> None:
    """Store NULL where every build writes a text or a number."""
    _rewritten(file, chance, chance.choice(("TEXT", "INTEGER")), "NULL")


def _odd_texts(file: Path, chance: random.Random) -> None:
    """Store empty, long or hostile texts in some columns."""
    _rewritten(file, chance, "TEXT", chance.choice(ODD_TEXTS))


def _rewritten(file: Path, chance: random.Random, kind: str, expression: str) -> None:
    """Write an expression into three columns of a kind, whatever their table allows."""
    # Change the statements of the tables, so that they allow NULL.
    with closing(sqlite3.connect(file)) as db:
        statements = db.execute(STATEMENTS).fetchall()
        columns = db.execute(TYPED_COLUMNS, [kind]).fetchall()
        db.execute("PRAGMA writable_schema = ON")
        db.execute(LOOSENED)
        db.commit()

    # A new connection reads these statements. Give the tables their own ones back
    # afterwards.
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        for table, column in chance.sample(columns, 3):
            value = expression.format(column=f'"{column}"')
            with suppress(sqlite3.Error):
                db.execute(f'UPDATE "{table}" SET "{column}" = {value}')  # noqa: S608 - its schema
        db.commit()
        db.execute("PRAGMA writable_schema = ON")
        db.executemany("UPDATE sqlite_master SET sql = ? WHERE name = ?", statements)
        db.commit()


def _missing_rows(file: Path, chance: random.Random) -> None:
    """Delete all or some rows of three tables to which others refer."""
    condition = chance.choice(("1", "rowid % 2", "rowid = 1", "rowid > 1"))
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        tables = sorted({table for table, _ in db.execute(COLUMNS)})
        for table in chance.sample(tables, 3):
            with suppress(sqlite3.Error):
                db.execute(f'DELETE FROM "{table}" WHERE {condition}')  # noqa: S608 - its schema
        db.commit()


def _header(file: Path, chance: random.Random) -> None:
    """Change a field of the header."""
    data = bytearray(file.read_bytes())
    position, value = chance.choice(HEADER_FIELDS)
    data[position : position + len(value)] = value
    file.write_bytes(data)


def _inspect_file(file: Path, chance: random.Random) -> None:
    """Write an inspect file that lies or cannot be read."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    size = file.stat().st_size
    count = chance.choice((-1, 10**30, "x", None, [1], {"count": 1}, 0.5, True))

    # The fields of an entry, each of which may be right.
    tables: tuple[object, ...] = (
        {"specs": {"count": count}},
        {"specs": count},
        [],
        None,
        "specs",
        1,
    )
    hashes = (digest, digest.upper(), "0" * 64, "", None, 1, ["a"])
    names = (file.name, "/etc/passwd", "../x.db", None, 5)
    counts = {"counts": count, "day": count, "looked": count}
    entry = {
        "hash": chance.choice(hashes),
        "size": chance.choice((size, -1, "1", None)),
        "file": chance.choice(names),
        "tables": chance.choice(tables),
        "build": chance.choice((None, [], counts)),
    }

    # Most files have such an entry, others something else, or no JSON.
    name = chance.choice((NAME, NAME, "other", ""))
    values: tuple[object, ...] = (entry, entry, entry, [], None, "x")
    text = json.dumps({name: chance.choice(values)})
    if chance.random() < 0.6:
        text = chance.choice(NO_INSPECT_FILES)
    inspect_path(file).write_text(text, encoding="utf-8")


def _triggers(file: Path, _: random.Random) -> None:
    """Add a view and a trigger, as another program may have done."""
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"CREATE VIEW notes AS {ENDLESS_VIEW}")
        db.execute(TRIGGER)
        db.commit()


CHANGES: dict[str, Change] = {
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
