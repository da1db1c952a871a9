"""The real metadata.yml, on the real Datasette, over the sample pages."""

from __future__ import annotations

import json
import sqlite3
import tomllib
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from spack_cache_db.query.database import descriptions
from spack_cache_db.schema import FULL_TEXT, TABLES, VIEWS
from tests.metadata import DATABASE, METADATA
from tests.pagetexts import SAMPLE_PAGES


def sample_specs() -> list[dict[str, Any]]:
    """Return all members of the sample pages' `spec_details`, with package and release."""
    found = []
    for file in SAMPLE_PAGES:
        lines = dict(
            line.split(": ", 1) for line in file.read_text(encoding="utf-8").splitlines()[1:-1]
        )
        release = lines["categories"].strip("[]").split(", ")[1]
        names = {"package": json.loads(lines["title"]), "release": release}
        found += [each | names for each in json.loads(lines["spec_details"])]
    return found


def test_every_column_is_described(samples: sqlite3.Connection) -> None:
    """A database describes each of its tables, and then their columns in order; nothing else."""
    described = descriptions(samples)

    assert described.keys() == {table.name for table in TABLES} | {*VIEWS} | {*FULL_TEXT}
    for name, texts in described.items():
        read = samples.execute(f"SELECT * FROM [{name}] LIMIT 0")
        assert [*texts] == [None, *(column[0] for column in read.description)], name
        assert all(text.strip() for text in texts.values()), name


def test_every_description_is_of_a_column(samples: sqlite3.Connection) -> None:
    """No text is left of a column that has gone, and none repeats what is said in common."""
    source = files("spack_cache_db.schema").joinpath("descriptions.toml")
    texts = tomllib.loads(source.read_text(encoding="utf-8"))
    columns = {name: {*described} for name, described in descriptions(samples).items()}
    common = texts["columns"].pop("common")

    assert {*common, *texts["derived"]} <= {*chain.from_iterable(columns.values())}
    for table, own in texts["columns"].items():
        assert own.keys() <= columns[table], table
        assert not own.items() & common.items(), table


def test_computed_columns_are_told_apart(samples: sqlite3.Connection) -> None:
    """Counts and days are derived, hashes are not, and tables are neither."""
    derived = dict(
        samples.execute(
            """SELECT coalesce("column", ''), derived FROM column_descriptions """
            """WHERE "table" = 'builds'"""
        )
    )
    assert (derived["hash"], derived["release_count"], derived[""]) == (0, 1, None)


def test_options_name_columns_that_exist(samples: sqlite3.Connection) -> None:
    """Labels, sort orders, facets and search keys name columns of their table."""
    columns = {name: {*described} for name, described in descriptions(samples).items()}
    for name, table in DATABASE["tables"].items():
        named = [table.get(option) for option in ("label_column", "sort", "sort_desc", "fts_pk")]
        named += [*table.get("facets", []), *table.get("sortable_columns", [])]
        assert {column for column in named if column} <= columns[name], name


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
