"""The canned queries that compare a file with what Spack has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.cache import info
from tests.package_data import listed, published, write_packages
from tests.pagetexts import page, spec, write
from tests.queries.asking import EVERY_QUERY, PACKAGE_QUERIES, connected, rows, run


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package in three states, two of whose versions nothing or not everything is known."""
    folder = tmp_path_factory.mktemp("packages")

    numbers: dict[tuple[str, str], int] = {}

    def snapshot(package: str, day: str, *versions: str) -> bytes:
        specs = [
            spec(numbers.setdefault((package, each), len(numbers)), versions=[each])
            for each in versions
        ]
        return page(package, f"develop-2025-04-{day}", specs)

    pages = write(
        folder / "pages",
        old=snapshot("old", "06", "1.0"),
        middle=snapshot("old", "13", "1.0", "1.5"),
        new=snapshot("old", "20", "1.0", "1.5"),
        current=snapshot("current", "20", "2.0", "2.0-local"),
        named=snapshot("named", "20", "3.0"),
        simple=snapshot("simple", "20", "1.0", "0.9"),
    )
    data = write_packages(
        folder / "data",
        published("old", "3.0", "2.0", "1.5", versions_deprecated=[{"name": "1.0"}]),
        published("current", "2.0"),
        published("needed", "1.0", dependent_to=[{"name": "old", "description": "The old one."}]),
        published("alone", "4.0"),
        names=["named"],
        simple=[listed("simple", "1.0")],
    )
    build([pages, data], folder / "x.db")
    return folder / "x.db"


@pytest.fixture
def connection(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to it."""
    yield from connected(file)


def test_what_is_behind_for_how_long(connection: sqlite3.Connection) -> None:
    """From the first snapshot of the newest version to the last of the file."""
    (found,) = rows(connection, "packages_behind")
    assert found == {
        "package": "old",
        "newest_version": "1.5",
        "latest_version": "3.0",
        "versions_behind": 2,
        "newest_since": "2025-04-13",
        "days": 7,
        "spec_count": 2,
    }


def test_what_is_missing_most(connection: sqlite3.Connection) -> None:
    """What others depend on comes first."""
    found = rows(connection, "packages_missing")
    assert [(row["package"], row["dependent_count"]) for row in found] == [
        ("needed", 1),
        ("alone", 0),
    ]


def test_binaries_of_versions_that_were_dropped(connection: sqlite3.Connection) -> None:
    """Deprecated and unknown ones; of a package without known versions nothing is said."""
    found = {(row["package"], row["version"]): row for row in rows(connection, "versions_dropped")}
    assert {key: row["status"] for key, row in found.items()} == {
        ("current", "2.0-local"): "unknown",
        ("old", "1.0"): "deprecated",
        ("simple", "0.9"): "unknown",
    }
    assert found["old", "1.0"]["last_seen"] == "2025-04-20"


def test_info_has_the_numbers(file: Path, samples_file: Path) -> None:
    """Those of the queries; none without package data."""
    assert info(file)["compared_with_spack"] == {
        "packages_behind": 1,
        "packages_missing": 2,
        "versions_deprecated": 1,
        "versions_unknown": 2,
    }
    assert info(samples_file)["compared_with_spack"] == {}


@pytest.mark.parametrize("query", PACKAGE_QUERIES)
def test_without_package_data_it_is_told(query: str, samples: sqlite3.Connection) -> None:
    """No row would say that nothing is behind."""
    (told,) = run(samples, query)
    assert told["error"] == "this file has no package data"
    assert "column error" in " ".join(EVERY_QUERY[query]["description"].split())
