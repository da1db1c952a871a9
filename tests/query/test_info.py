"""query.info: what a file says of itself."""

from __future__ import annotations

from pathlib import Path

from spack_cache_db.build import build
from spack_cache_db.query.info import describe
from spack_cache_db.schema import SCHEMA_VERSION
from tests.indexes import REAL_FILE


def test_what_is_in_the_samples(samples_file: Path) -> None:
    """Counts, eras, kinds of releases and days are those of the five sample pages."""
    assert describe(samples_file) == {
        "file": str(samples_file),
        "size": samples_file.stat().st_size,
        "schema_version": SCHEMA_VERSION,
        "pages": 5,
        "indexes": 0,
        "records": 0,
        "listings": 425,
        "specs": 413,
        "configurations": 24,
        "dependencies": 0,
        "packages": 4,
        "releases": 2,
        "stacks": 14,
        "problems": 0,
        "pages_by_format": {"A": 4, "B": 1},
        "indexes_by_format": {},
        "releases_by_kind": {"branch": 1, "snapshot": 1},
        "first_snapshot": "2025-04-20",
        "last_snapshot": "2025-04-20",
    }


def test_what_is_in_the_file_of_an_index(tmp_path: Path) -> None:
    """Indexes, records and dependencies are counted too; externals are no binaries of ours."""
    build(REAL_FILE, tmp_path / "x.db")
    found = describe(tmp_path / "x.db")
    names = ("pages", "indexes", "records", "listings", "specs", "dependencies", "packages")
    assert [found[name] for name in names] == [0, 1, 905, 883, 883, 6115, 226]
    assert (found["pages_by_format"], found["indexes_by_format"]) == ({}, {"8": 1})
