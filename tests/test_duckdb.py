"""A file in DuckDB, and as Parquet: the documented commands give the rows that SQLite
gives.
"""

import json
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.schema.tables import TABLES
from spack_cache_db.schema.views import VIEWS
from tests.indexes import edge, index, node, record
from tests.package_data import REAL as PACKAGE_DATA
from tests.pagetexts import SAMPLES
from tests.paths import ROOT

EMPTY = {
    # No release of these sources replaces hashes of another.
    "replaced_configurations",
    # Nothing is installed.
    "installations",
    # Their package data has neither licenses nor tags.
    "known_licenses",
    "known_tags",
}
"""Views without rows."""
NUMBERS_AS_TEXT = {"dropped_versions", "installations", "known_versions"}
"""Views with numbers whose columns have no type in SQLite: they are text in DuckDB."""


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def documented(language: str) -> list[str]:
    """Return the blocks of a language in the part of docs/sql.md about DuckDB."""
    text = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    part = text.split("## DuckDB")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", part, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with spack-cache.db, of pages, package data and an index with
    dependencies.
    """
    place = tmp_path_factory.mktemp("duckdb")
    stack = place / "input" / "develop-2025-07-13" / "e4s"
    stack.mkdir(parents=True)
    needing = node("hdf5", edge("zlib"))
    (stack / "index.json").write_bytes(index(record(needing), record(node("zlib"))))
    (stack / "mirror.json").write_text(
        json.dumps({"url": "https://cache.example.org/v1"})
    )
    build([SAMPLES, PACKAGE_DATA, place / "input"], place / "spack-cache.db")
    return place


@pytest.fixture(scope="module")
def attached(folder: Path) -> Iterator[Any]:
    """A connection of DuckDB on which the documented block was run; its extension was
    copied.
    """
    duckdb = pytest.importorskip("duckdb")
    extension = pytest.importorskip("duckdb_extension_sqlite")
    block, copying = documented("")
    block = block.replace("INSTALL sqlite; ", "")
    for name in ("spack-cache.db", "listings"):
        block = block.replace(f"'{name}'", f"'{folder / name}'")
    (found,) = Path(extension.__file__).parent.rglob("sqlite.duckdb_extension")
    places = folder / "extensions"
    connection = duckdb.connect(config={"extension_directory": str(places)})
    (version, *_), (platform,) = (
        connection.execute(f"PRAGMA {name}").fetchone()
        for name in ("version", "platform")
    )
    documented_place = copying.split("~/.duckdb/extensions/")[-1].strip()
    place = documented_place.replace("VERSION", version).replace("PLATFORM", platform)
    target = places / place
    target.parent.mkdir(parents=True)
    shutil.copy(found, target)
    connection.execute(block)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def sqlite(folder: Path) -> Iterator[sqlite3.Connection]:
    """The same file in SQLite."""
    with closing(sqlite3.connect(folder / "spack-cache.db")) as connection:
        yield connection


@pytest.mark.slow
def test_duckdb_sees_each_view(attached: Any, sqlite: sqlite3.Connection) -> None:
    """Row by row and value by value, with the types of values; so does the documented
    query.
    """
    for view in VIEWS:
        expected = sqlite.execute(f"SELECT * FROM {view}").fetchall()
        found = attached.execute(f"SELECT * FROM cache.{view}").fetchall()
        if view in NUMBERS_AS_TEXT:
            expected = [tuple(map(_text, row)) for row in expected]
            found = [tuple(map(_text, row)) for row in found]
        assert Counter(found) == Counter(expected), view
        assert expected or view in EMPTY, view

    (query,) = documented("sql")
    found = attached.execute(
        query.replace("FROM build_listings", "FROM cache.build_listings")
    )
    # Rows that the query holds equal may come in any order.
    assert Counter(sqlite.execute(query)) == Counter(found.fetchall())


@pytest.mark.slow
def test_rows_of_each_table_can_be_counted(
    attached: Any, sqlite: sqlite3.Connection
) -> None:
    """By a column, as the document says; `count(*)` fails for tables without row
    ids.
    """
    duckdb = pytest.importorskip("duckdb")

    for table in TABLES:
        column = table.columns[0].name
        count = f'SELECT count(*) FROM "{table.name}" WHERE "{column}" IS NOT NULL'
        expected = sqlite.execute(count).fetchone()
        counted = f'SELECT count("{column}") FROM cache."{table.name}"'
        assert attached.execute(counted).fetchone() == expected, table.name
        if table.without_rowid:
            # If this begins to work, the sentence in docs/sql.md can go.
            with pytest.raises(duckdb.Error, match="ROWID"):
                attached.execute(f'SELECT count(*) FROM cache."{table.name}"')


@pytest.mark.slow
@pytest.mark.usefixtures("attached")
def test_parquet_has_every_row(folder: Path, sqlite: sqlite3.Connection) -> None:
    """Polars reads back what was written, partition by partition, row for row."""
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(
        folder / "listings" / "**" / "*.parquet", hive_partitioning=True
    )
    found = sqlite.execute("SELECT * FROM build_listings")
    names = [column[0] for column in found.description]

    assert set(frame.columns) == set(names)
    assert Counter(frame.select(names).iter_rows()) == Counter(found)

    releases = {
        f"release={name}" for (name,) in sqlite.execute("SELECT name FROM releases")
    }
    assert {path.name for path in (folder / "listings").iterdir()} == releases
