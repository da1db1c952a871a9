"""The real metadata.yml, on the real Datasette, over the sample pages."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from spack_cache_db.schema import FULL_TEXT, TABLES, VIEWS
from tests.metadata import DATABASE, METADATA
from tests.pagetexts import SAMPLES


def sample_specs() -> list[dict[str, Any]]:
    """Return all members of the sample pages' `spec_details`, with package and release."""
    found = []
    for file in sorted(SAMPLES.glob("*.txt")):
        lines = dict(
            line.split(": ", 1) for line in file.read_text(encoding="utf-8").splitlines()[1:-1]
        )
        release = lines["categories"].strip("[]").split(", ")[1]
        names = {"package": json.loads(lines["title"]), "release": release}
        found += [each | names for each in json.loads(lines["spec_details"])]
    return found


def test_every_table_and_view_is_described() -> None:
    """Each table and view of the schema has a description, and nothing else has."""
    expected = {table.name for table in TABLES} | set(VIEWS) | set(FULL_TEXT)
    assert set(DATABASE["tables"]) == expected
    assert all(table["description"].strip() for table in DATABASE["tables"].values())


def test_every_column_is_described(samples: sqlite3.Connection) -> None:
    """Each column has a description, in the table's order, and no other column has."""
    for name, table in DATABASE["tables"].items():
        read = samples.execute(f"SELECT * FROM [{name}] LIMIT 0")
        assert [*table["columns"]] == [column[0] for column in read.description], name
        assert all(text.strip() for text in table["columns"].values()), name


def test_options_name_columns_that_exist() -> None:
    """Labels, sort orders, facets and search keys name columns of their table."""
    for name, table in DATABASE["tables"].items():
        named = [table.get(option) for option in ("label_column", "sort", "fts_pk")]
        named += [*table.get("facets", []), *table.get("sortable_columns", [])]
        assert {column for column in named if column} <= {*table["columns"]}, name


@pytest.fixture(scope="module")
def datasette(samples_file: Path) -> Any:
    """A Datasette over the sample pages, with the real metadata."""
    metadata = {**METADATA, "databases": {"samples": DATABASE}}
    return Datasette([], immutables=[str(samples_file)], metadata=metadata)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("table", "search", "expected"),
    [
        ("configurations", "gcc@13.2.0", lambda each: each["compiler"] == "gcc@13.2.0"),
        ("configurations", "x86_64_v3", lambda each: each["target"] == "x86_64_v3"),
        ("configurations", "build_system=python_pip", lambda each: True),
        ("configurations", "py-mpi4py", lambda each: each["package"] == "py-mpi4py"),
    ],
)
async def test_search_box_gives_exactly_the_right_rows(
    datasette: Any, table: str, search: str, expected: Any
) -> None:
    """Spack's own words, typed into Datasette's search box, find what they say and no more."""
    path = f"/samples/{table}.json"
    response = await datasette.client.get(
        path, params={"_search": search, "_shape": "array", "_size": "max"}
    )
    assert response.status_code == 200, response.text
    specs = [normal(each) for each in sample_specs()]
    wanted = {each["hash"] for each in specs if expected(each)}
    assert sum(row["spec_count"] for row in response.json()) == len(wanted)


@pytest.mark.asyncio(loop_scope="session")
async def test_packages_are_found_by_any_part(datasette: Any) -> None:
    """Part of a name is enough to find a package."""
    path = "/samples/packages.json"
    response = await datasette.client.get(path, params={"_search": "tensor", "_shape": "array"})
    assert [row["name"] for row in response.json()] == ["py-safetensors"]


def normal(each: dict[str, Any]) -> dict[str, Any]:
    """Return a spec with its compiler in normal form."""
    return each | {"compiler": each["compiler"].replace("@=", "@")}
