"""verify.recount: no cell of a file is another than the input makes it."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from spack_cache_db.errors import DatabaseError
from spack_cache_db.verify import verify
from spack_cache_db.verify.comparison import TABLES
from tests.indexes import edge, index, node, record
from tests.pagetexts import page, spec, write

SEED = 20


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A page that contradicts itself, and an index with dependencies, for a file without paths."""
    folder = write(
        tmp_path / "in",
        a=page("zlib", "develop-2025-01-05", [spec(1, tarball="http://m")], meta={"num_specs": 7}),
        b=page("zlib", "develop", [spec(1, os="rhel8"), spec(2, variants=["+x", "k=a,b"])]),
    )
    system = record(node("glibc", external={"path": "/usr"}), is_binary=False)
    app = record(node("app", edge("glibc", "link", virtuals=("libc",)), namespace="own"))
    (folder / "develop" / "e4s").mkdir(parents=True)
    (folder / "develop" / "e4s" / "index.json").write_bytes(index(system, app))
    return folder


def changed(value: Any) -> Any:
    """Return another value."""
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, bytes):
        return value + b"x"
    return f"{value or ''}x"


def change(file: Path, table: str, chance: random.Random) -> str:
    """Change a cell of a table at random; return which, or nothing where that is not possible."""
    with closing(sqlite3.connect(file)) as conn:
        names = [name for _, name, *_ in conn.execute(f"PRAGMA table_info({table})")]
        (count,) = conn.execute(f"SELECT count(*) FROM {table}").fetchone()
        if not count:
            return ""
        name, row = chance.choice(names), chance.randrange(count)
        values = conn.execute(f"SELECT * FROM {table} LIMIT 1 OFFSET {row}").fetchone()
        where = " AND ".join(f'"{each}" IS ?' for each in names)
        statement = f'UPDATE {table} SET "{name}" = ? WHERE {where}'
        with suppress(sqlite3.IntegrityError):
            conn.execute(statement, [changed(values[names.index(name)]), *values])
            conn.commit()
            return f"{table}.{name} of {values}"
    return ""


@pytest.mark.slow
def test_no_changed_cell_is_missed(sources: Path, tmp_path: Path) -> None:
    """Of every table a cell at random, of what is told as well as of what is counted."""
    build(sources, tmp_path / "x.db", first="develop-2025-01-05")
    assert verify(tmp_path / "x.db", sources).differences == ()
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        tables = [name for (name,) in conn.execute(TABLES) if name != "recipes"]
    chance, count = random.Random(SEED), 0
    for table in tables:
        file = tmp_path / "changed.db"
        shutil.copy(tmp_path / "x.db", file)
        what = change(file, table, chance)
        if what:
            count += 1
            with suppress(DatabaseError):
                assert verify(file, sources).differences, what
    assert count > len(tables) // 2


def test_counts_are_those_of_the_build(sources: Path, tmp_path: Path) -> None:
    """What was held against the file is counted as the report of its build counts it."""
    report = build(sources, tmp_path / "x.db")
    found = verify(tmp_path / "x.db", sources)
    for name in ("pages", "indexes", "records", "listings"):
        assert getattr(found, name) == getattr(report, name), name


def test_rows_are_told_by_their_keys(sources: Path, tmp_path: Path) -> None:
    """A number that nothing but a count shows is told with what it should be."""
    build(sources, tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        conn.execute("UPDATE packages SET spec_count = 0 WHERE name = 'zlib'")
        conn.execute("DELETE FROM facet_counts WHERE rowid = 1")
        conn.commit()
    facet, package = verify(tmp_path / "x.db", sources).differences
    assert package.message.endswith("spec_count is 0, expected 2")
    assert facet.message.startswith("facet_counts: the row of ")
    assert facet.message.endswith(" is missing")


def test_of_a_part_of_the_input_nothing_is_counted(sources: Path, tmp_path: Path) -> None:
    """The file holds more; how much is said."""
    build(sources, tmp_path / "x.db")
    found = verify(tmp_path / "x.db", sources / "a.md")
    assert (found.differences, found.others) == ((), 2)
