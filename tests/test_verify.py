"""`verify` reports every cell and every row that is not what the sources give, and
nothing else.
"""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly import verify as verification
from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.verify import verify
from tests.assembly.test_history import night
from tests.commands import run
from tests.every_kind import MODULES, write_every_kind
from tests.pagetexts import SAMPLES, page, spec, spec_hash, write

FROM_OPTIONS = {"recipes": {"namespace", "url"}}
"""Cells that sources do not give: `verify` takes them from the database."""


@pytest.fixture(scope="module")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with sources of every kind, and a database of them in which no table is
    empty.
    """
    folder = tmp_path_factory.mktemp("every")
    sources = write_every_kind(folder / "in")
    build(
        sources,
        folder / "x.db",
        keep_going=True,
        first="v0.22",
        recipes={"builtin": "https://example.org/{package}"},
        without_paths=False,
        modules=[sources / MODULES],
    )
    return sources, folder / "x.db"


def changed(file: Path, change: Callable[[sqlite3.Connection], object]) -> Path:
    """Return a copy of a database in which something is changed."""
    copy = file.with_name("changed.db")
    shutil.copy(file, copy)
    with closing(sqlite3.connect(copy)) as conn:
        change(conn)
        conn.commit()
    return copy


def columns_of(conn: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns of each table that stores rows, those of full-text indexes
    included.
    """
    tables = conn.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    columns = {}
    for (name,) in tables:
        rows = conn.execute(f"PRAGMA table_info([{name}])")
        columns[name] = [row[1] for row in rows]
    return columns


def other_value(value: Any) -> Any:
    """Return another value of the same type, which no other row has."""
    if isinstance(value, int):
        return value + 100_000
    return value + b"x" if isinstance(value, bytes) else f"{value or ''}x"


def change_cell(
    conn: sqlite3.Connection, table: str, column: str, columns: list[str]
) -> None:
    """Change a cell of the last row of a table."""
    row = conn.execute(f"SELECT * FROM [{table}]").fetchall()[-1]
    where = " AND ".join(f"[{name}] IS ?" for name in columns)
    value = other_value(row[columns.index(column)])
    conn.execute(f"UPDATE [{table}] SET [{column}] = ? WHERE {where}", [value, *row])


def test_a_database_of_every_kind_of_source_is_what_they_give(
    every_kind: tuple[Path, Path],
) -> None:
    """Nothing differs, though some sources contradict others and one is refused."""
    sources, file = every_kind
    found = verify(file, sources, modules=[sources / MODULES])

    assert found.differences == ()
    assert [fault.path for fault in found.faults] == [f"{sources}/pages/refused.md"]
    with closing(sqlite3.connect(file)) as conn:
        for table in columns_of(conn):
            assert conn.execute(f"SELECT 1 FROM [{table}]").fetchone(), (
                f"{table} is empty"
            )


@pytest.mark.slow
def test_a_changed_cell_in_any_column_of_any_table_is_reported(
    every_kind: tuple[Path, Path],
) -> None:
    """The first, second, … column of every table at once; exactly these cells are
    reported.
    """
    sources, file = every_kind
    with closing(sqlite3.connect(file)) as conn:
        tables = columns_of(conn)
    checked: Counter[str] = Counter()
    for place in range(max(map(len, tables.values()))):
        cells = {}
        for table, columns in tables.items():
            if table.startswith("sqlite_stat") or place >= len(columns):
                continue
            if columns[place] not in FROM_OPTIONS.get(table, ()):
                cells[table] = columns[place]

        def change(conn: sqlite3.Connection, cells: dict[str, str] = cells) -> None:
            for table, column in cells.items():
                change_cell(conn, table, column, tables[table])

        modules = [sources / MODULES]
        found = verify(changed(file, change), sources, modules=modules).differences
        assert {difference.table: difference.column for difference in found} == cells
        assert len(found) == len(cells)
        checked.update(cells.keys())
    assert checked == {
        table: len(columns) - len(FROM_OPTIONS.get(table, ()))
        for table, columns in tables.items()
        if table not in FROM_OPTIONS and not table.startswith("sqlite_stat")
    }


def test_every_difference_names_its_row(samples_file: Path, tmp_path: Path) -> None:
    """Changed cells, missing and superfluous rows, and tables that a build does not
    create.
    """
    with closing(sqlite3.connect(samples_file)) as conn:
        ((one,), (two,)) = conn.execute(
            "SELECT hash FROM specs WHERE id < 3"
        ).fetchall()
        ((key, count),) = conn.execute(
            "SELECT id, spec_count FROM packages WHERE name = 'py-mpi4py'"
        ).fetchall()

    def change(conn: sqlite3.Connection) -> None:
        conn.executescript(
            f"""
            UPDATE listings SET size = '7' WHERE release_id = 1 AND spec_id = 1;
            UPDATE packages SET spec_count = 0 WHERE name = 'py-mpi4py';
            UPDATE specs SET hash = '{spec_hash(9)}' WHERE id = 2;
            DELETE FROM pages WHERE id = 1;
            INSERT INTO stacks VALUES (1000, 'mine', 0, 0, 0);
            CREATE TABLE mine (id);
            """
        )

    shutil.copy(samples_file, tmp_path / "x.db")
    lines = list(
        map(str, verify(changed(tmp_path / "x.db", change), SAMPLES).differences)
    )
    page = next(line for line in lines if line.startswith("pages: "))
    assert page.endswith(": is missing, expected a row")
    assert sorted(set(lines) - {page}) == [
        f"listings: release develop, spec {one}, size: is '7', expected NULL",
        f"packages: py-mpi4py (id {key}), spec_count: is 0, expected {count}",
        f"specs: {two} (id 2), hash: is '{spec_hash(9)}', expected '{two}'",
        "sqlite_master: name mine: is a row, expected none",
        "stacks: mine (id 1000): is a row, expected none",
    ]


def test_of_very_many_rows_the_number_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database of other sources has one line for each table of which nearly all is
    different.
    """
    monkeypatch.setattr(verification, "MOST_ROWS", 3)
    build(SAMPLES, tmp_path / "x.db")
    file = changed(
        tmp_path / "x.db", lambda conn: conn.execute("UPDATE listings SET size = 'x'")
    )
    (found,) = verify(file, SAMPLES).differences

    assert str(found) == "listings: more than 3 rows: is 425 rows, expected 425 others"


def test_of_each_table_the_first_differences_are_reported(tmp_path: Path) -> None:
    """And the number of the others; statistics of SQLite do not count."""
    build(SAMPLES, tmp_path / "x.db")
    change = "UPDATE listings SET size = 'x'; UPDATE sqlite_stat1 SET stat = '1 1 1'"
    file = changed(tmp_path / "x.db", lambda conn: conn.executescript(change))
    found = verify(file, SAMPLES)

    assert (len(found.differences), found.difference_count) == (21, 425)
    assert str(found.differences[-1]) == "listings: 405 more differences"

    result = run("verify", file, SAMPLES)
    assert result.stdout.endswith(", 425 listings, 425 differences\n")
    assert len(result.stdout.splitlines()) == 22


def test_a_history_needs_the_sources_of_its_snapshots(tmp_path: Path) -> None:
    """One sentence says so, instead of a line for each row of each snapshot."""
    mirrors = tmp_path / "mirrors"
    file = tmp_path / "x.db"
    older = tmp_path / "older.db"
    build([file, night(mirrors, "a")], file, snapshot="2026-11-24")
    shutil.copy(file, older)
    build([file, night(mirrors, "b")], file, snapshot="2026-11-25")
    result = run("verify", file, mirrors)

    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {file} has snapshots (site-2026-11-25, site-2026-11-24): "
        "give their sources, such as the database that it was built on, "
        "and --snapshot DATE (snapshot=)\n"
    )
    assert (
        run("verify", file, older, mirrors, "--snapshot", "2026-11-25").exit_code == 0
    )


def test_options_that_a_database_records_are_taken_from_it(tmp_path: Path) -> None:
    """The release that comes first, the addresses of recipes, and that paths are left
    out.
    """
    sources = write_every_kind(tmp_path / "in")
    options: dict[str, Any] = {
        "first": "v0.22",
        "recipes": {"own": "https://example.org/{package}"},
    }
    build(sources, tmp_path / "x.db", keep_going=True, without_paths=True, **options)

    assert verify(tmp_path / "x.db", sources).differences == ()

    sql = "UPDATE origin SET value = 'v7' WHERE name = 'first'"
    file = changed(tmp_path / "x.db", lambda conn: conn.execute(sql))
    differences = map(str, verify(file, sources).differences)

    assert "origin: name first: is a row, expected none" in differences


def test_the_command_prints_differences_faults_and_totals(tmp_path: Path) -> None:
    """One line each, faults on standard error; exit status 1 if there is any, else
    0.
    """
    folder = write(tmp_path / "in", a=page("zlib", "develop", [spec(1)]))
    build(folder, tmp_path / "x.db")
    result = run("verify", tmp_path / "x.db", folder, "--jobs", 1)
    assert result.exit_code == 0
    assert result.output == f"{tmp_path}/x.db: 1 page, 1 listing, 0 differences\n"

    sql = "UPDATE packages SET spec_count = 2"
    file = changed(tmp_path / "x.db", lambda conn: conn.execute(sql))
    result = run("verify", file, folder, "--jobs", 1)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.splitlines() == [
        "packages: zlib (id 1), spec_count: is 2, expected 1",
        f"{file}: 1 page, 1 listing, 1 difference",
    ]
    write(folder, b=b"")
    result = run("verify", tmp_path / "x.db", folder, "--jobs", 1)
    assert result.exit_code == 1
    assert (
        result.stderr
        == f"{folder}/b.md: the file is empty, expected a page that starts with ---\n"
    )
