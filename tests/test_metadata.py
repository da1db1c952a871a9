"""The real metadata.yml, on the real Datasette, over the sample pages."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasette.app import Datasette

from spack_cache_db.schema import FULL_TEXT, TABLES, VIEWS
from spack_cache_db.site.spec_functions import register
from tests.pagetexts import SAMPLES
from tests.paths import ROOT

METADATA = yaml.safe_load((ROOT / "metadata.yml").read_text(encoding="utf-8"))
DATABASE = METADATA["databases"]["spack-cache"]
QUERIES = DATABASE["queries"]


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


def run(samples: sqlite3.Connection, query: str, **params: str) -> list[dict[str, Any]]:
    """Run a canned query; parameters that are not given are empty, as in its form."""
    declared = dict.fromkeys(QUERIES[query].get("params", []), "")
    cursor = samples.execute(QUERIES[query]["sql"], declared | params)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def test_every_table_and_view_is_described() -> None:
    """Each table and view of the schema has a description, and nothing else has."""
    expected = {table.name for table in TABLES} | set(VIEWS) | set(FULL_TEXT)
    assert set(DATABASE["tables"]) == expected
    assert all(table["description"].strip() for table in DATABASE["tables"].values())


@pytest.mark.parametrize("name", sorted(DATABASE["tables"]))
def test_every_column_is_described(samples: sqlite3.Connection, name: str) -> None:
    """Each column has a description, in the table's order, and no other column has."""
    columns = [
        column[0] for column in samples.execute(f"SELECT * FROM [{name}] LIMIT 0").description
    ]
    assert list(DATABASE["tables"][name]["columns"]) == columns
    assert all(text.strip() for text in DATABASE["tables"][name]["columns"].values())


@pytest.mark.parametrize("name", sorted(DATABASE["tables"]))
def test_options_name_columns_that_exist(name: str) -> None:
    """Labels, sort orders, facets and search keys name columns of their table."""
    table = DATABASE["tables"][name]
    named = [table.get(option) for option in ("label_column", "sort", "fts_pk")]
    named += [*table.get("facets", []), *table.get("sortable_columns", [])]
    assert {column for column in named if column} <= set(table["columns"])


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_queries_run_with_empty_parameters(samples: sqlite3.Connection, name: str) -> None:
    """Each canned query has a title and answers with nothing filled in."""
    register(samples)
    run(samples, name)
    assert QUERIES[name]["title"]


def test_specs_of_package(samples: sqlite3.Connection) -> None:
    """Specs of a package on a machine are those whose target the machine runs."""
    rows = run(samples, "specs_of_package", package="py-mpi4py", host="zen3")
    expected = {
        each["hash"]
        for each in sample_specs()
        if each["package"] == "py-mpi4py" and each["target"] in ("x86_64", "x86_64_v3")
    }
    assert {row["hash"] for row in rows} == expected
    assert len(rows) == len(expected)
    assert len(run(samples, "specs_of_package")) == 129


def test_releases_of_hash(samples: sqlite3.Connection) -> None:
    """A hash, or its start, gives the releases that list it; less than 7 characters nothing."""
    counts = Counter(each["hash"] for each in sample_specs())
    twice = min(spec_hash for spec_hash, count in counts.items() if count == 2)
    rows = run(samples, "releases_of_hash", hash=twice[:7].upper())
    assert [row["release"] for row in rows] == ["develop", "develop-2025-04-20"]
    assert run(samples, "releases_of_hash", hash=twice[:6]) == []


def test_most_hashes(samples: sqlite3.Connection) -> None:
    """The 116 binaries of py-safetensors are three configurations."""
    rows = run(samples, "most_hashes", package="py-safetensors")
    counts = Counter(
        (each["os"], each["target"])
        for each in sample_specs()
        if each["package"] == "py-safetensors"
    )
    assert [row["spec_count"] for row in rows] == sorted(counts.values(), reverse=True)
    assert (len(rows), sum(row["spec_count"] for row in rows)) == (3, 116)


def test_packages_of_stack(samples: sqlite3.Connection) -> None:
    """A stack's packages come with their specs, each counted once."""
    rows = run(samples, "packages_of_stack", stack="e4s")
    in_stack = {
        (each["package"], each["hash"]) for each in sample_specs() if "e4s" in each["stacks"]
    }
    expected = Counter(package for package, _ in in_stack)
    assert {row["package"]: row["specs"] for row in rows} == expected


def test_newest_versions(samples: sqlite3.Connection) -> None:
    """Each package comes with its newest version, or those whose name holds the text."""
    rows = {row["package"]: row["newest_version"] for row in run(samples, "newest_versions")}
    assert rows == {
        "py-ml-dtypes": "0.4.0",
        "py-mpi4py": "4.0.1",
        "py-pdm-backend": "2.4.3",
        "py-safetensors": "0.4.5",
    }
    assert len(run(samples, "newest_versions", package="mpi")) == 1


def test_variant_values_of_package(samples: sqlite3.Connection) -> None:
    """Each value of each variant comes with the specs that have it."""
    rows = run(samples, "variant_values_of_package", package="py-pdm-backend")
    assert rows == [
        {
            "package": "py-pdm-backend",
            "variant": "build_system",
            "value": "python_pip",
            "specs": 77,
            "configurations": 7,
        }
    ]


def test_missing_for_family(built: Any) -> None:
    """Packages of one family that the other lacks, both ways."""
    from tests.pagetexts import page, spec

    connection = built(
        both=page("both", specs=[spec(1), spec(2, target="neoverse_v1")]),
        here=page("here", specs=[spec(3)]),
        there=page("there", specs=[spec(4, target="aarch64")]),
    )
    assert [row["package"] for row in run(connection, "missing_for_family")] == ["here"]
    swapped = run(connection, "missing_for_family", has="aarch64", lacks="x86_64")
    assert [row["package"] for row in swapped] == ["there"]


def test_problems_of_pages(built: Any, samples: sqlite3.Connection) -> None:
    """A page that contradicts itself is named with what it declares; the samples have none."""
    from tests.pagetexts import page

    connection = built(odd=page("odd", meta={"num_specs": 7}))
    rows = run(connection, "problems_of_pages")
    assert [(row["code"], row["package"], row["declared"]) for row in rows] == [
        ("num_specs", "odd", "7")
    ]
    assert run(samples, "problems_of_pages") == []


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
    samples_file: Path, table: str, search: str, expected: Any
) -> None:
    """Spack's own words, typed into Datasette's search box, find what they say and no more."""
    datasette = Datasette([], immutables=[str(samples_file)], metadata=metadata_for(samples_file))
    path = f"/{samples_file.stem}/{table}.json"
    response = await datasette.client.get(
        path, params={"_search": search, "_shape": "array", "_size": "max"}
    )
    assert response.status_code == 200, response.text
    specs = [normal(each) for each in sample_specs()]
    wanted = {each["hash"] for each in specs if expected(each)}
    assert sum(row["spec_count"] for row in response.json()) == len(wanted)


@pytest.mark.asyncio(loop_scope="session")
async def test_packages_are_found_by_any_part(samples_file: Path) -> None:
    """Part of a name is enough to find a package."""
    datasette = Datasette([], immutables=[str(samples_file)], metadata=metadata_for(samples_file))
    path = f"/{samples_file.stem}/packages.json"
    response = await datasette.client.get(path, params={"_search": "tensor", "_shape": "array"})
    assert [row["name"] for row in response.json()] == ["py-safetensors"]


def metadata_for(file: Path) -> dict[str, Any]:
    """Return the metadata under the name that a test's database has."""
    return {**METADATA, "databases": {file.stem: DATABASE}}


def normal(each: dict[str, Any]) -> dict[str, Any]:
    """Return a spec with its compiler in normal form."""
    return each | {"compiler": each["compiler"].replace("@=", "@")}
