"""query.info: what a file says of itself."""

from __future__ import annotations

from pathlib import Path

from spack_cache_db.query.info import describe
from spack_cache_db.schema import SCHEMA_VERSION


def test_what_is_in_the_samples(samples_file: Path) -> None:
    """Counts, eras, kinds of releases and days are those of the five sample pages."""
    assert describe(samples_file) == {
        "file": str(samples_file),
        "size": samples_file.stat().st_size,
        "schema_version": SCHEMA_VERSION,
        "pages": 5,
        "mirrors": 0,
        "listings": 425,
        "specs": 413,
        "configurations": 24,
        "packages": 4,
        "releases": 2,
        "stacks": 14,
        "problems": 0,
        "pages_by_format": {"A": 4, "B": 1},
        "releases_by_kind": {"branch": 1, "snapshot": 1},
        "first_snapshot": "2025-04-20",
        "last_snapshot": "2025-04-20",
    }


def test_what_is_no_binary_is_not_counted(real_index_file: Path) -> None:
    """Externals, and packages and configurations that only they have, are in no number."""
    described = describe(real_index_file)

    assert (described["mirrors"], described["pages"]) == (1, 0)
    assert described["specs"] == described["listings"] == 883
    assert described["packages"] == 226
