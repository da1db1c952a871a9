"""Files that claim to be databases of this program: damaged, cut, or with endless views."""

from __future__ import annotations

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
}
