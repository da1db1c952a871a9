"""build.sqlite_file: full-text indexes are whole, and what others use to search finds
them.
"""

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from datasette.app import Datasette

from spack_cache_db.assembly.builds import build
from spack_cache_db.schema.full_text import FULL_TEXT
from spack_cache_db.schema.tables import TABLES
from tests.package_data import published, write_packages
from tests.processes import completed

NAMES = {
    "packages": ("safetens", "SELECT id FROM packages WHERE name = 'py-safetensors'"),
    "configurations": (
        "%gcc@11.4.0",
        "SELECT configurations.id FROM configurations "
        "JOIN compilers ON compilers.id = configurations.compiler_id "
        "WHERE compilers.compiler = 'gcc@11.4.0'",
    ),
    "known_packages": ("Fouriers", "SELECT id FROM known_packages WHERE name = 'fftw'"),
}


def wanted(all_sources: sqlite3.Connection, table: str) -> set[int]:
    """Return the ids of the rows that the search for a table's word is to find."""
    found = {key for (key,) in all_sources.execute(NAMES[table][1])}
    assert found
    return found


def test_the_index_is_whole(all_sources_file: Path, tmp_path: Path) -> None:
    """FTS5's own check finds nothing wrong, and each row has its words."""
    connection = sqlite3.connect(shutil.copy(all_sources_file, tmp_path))
    for table, each in FULL_TEXT.items():
        connection.execute(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")
        count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert (
            count
            == connection.execute(f"SELECT count(*) FROM {each.content}").fetchone()
        )
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("table", sorted(NAMES))
def test_sqlite_utils_finds_the_index(
    table: str, all_sources: sqlite3.Connection, all_sources_file: Path
) -> None:
    """`sqlite-utils search` needs nothing but the table to find the rows."""
    command = [sys.executable, "-m", "sqlite_utils", "search", all_sources_file, table]
    done = completed([*command, "--quote", NAMES[table][0]], check=True)
    assert {row["id"] for row in json.loads(done.stdout)} == wanted(all_sources, table)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("table", sorted(NAMES))
async def test_a_plain_datasette_finds_the_index(
    table: str, all_sources: sqlite3.Connection, all_sources_file: Path
) -> None:
    """Without any metadata `_search` finds the same, and the full-text tables are
    hidden.
    """
    datasette = Datasette([], immutables=[str(all_sources_file)])
    response = await datasette.client.get(
        f"/{all_sources_file.stem}/{table}.json",
        params={"_search": NAMES[table][0], "_shape": "array", "_size": "max"},
    )

    assert {row["id"] for row in response.json()} == wanted(all_sources, table)

    page = await datasette.client.get(f"/{all_sources_file.stem}/{table}")
    assert 'name="_search"' in page.text

    hidden = await datasette.get_database(all_sources_file.stem).hidden_table_names()
    assert set(FULL_TEXT) <= set(hidden)
    assert not {each.name for each in TABLES} & set(hidden)


def test_words_of_descriptions_are_found_whole_and_in_parts(tmp_path: Path) -> None:
    """With hyphens, without them, in another form, and by the name of the package."""
    text = 'It\'s a "C++" (floating-point) solver, for NVLink-C2C.'
    build(
        write_packages(tmp_path / "in", published("7zip", description=text)),
        tmp_path / "x.db",
    )

    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        sql = "SELECT rowid FROM known_packages_fts WHERE known_packages_fts MATCH ?"
        for word in ("floating-point", "C++", "POINT", "7zip", "nvlink-c2c", "solvers"):
            assert db.execute(sql, (f'"{word}"',)).fetchall() == [(1,)], word
