"""Pages and an index in one file: where they tell of the same hashes, they meet in one spec."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.build import build
from tests.indexes import REAL_FILE
from tests.spackrecords import records, write_records


@pytest.mark.slow
def test_pages_and_an_index_of_the_same_hashes_do_not_contradict(tmp_path: Path) -> None:
    """A real index, and what Spack prints of its specs: each spec has one configuration."""
    pages = write_records(tmp_path / "pages")
    build(pages, tmp_path / "pages.db")
    report = build([pages, REAL_FILE], tmp_path / "x.db", release="cache", stack="e4s")

    assert (report.indexes, report.problems, report.records) == (1, 0, len(records()))
    found = []
    for name in ("pages", "x"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as conn:
            words = "hash, package, version, compiler, os, platform, target, variants"
            found.append({*conn.execute(f"SELECT {words} FROM builds")})
    assert found[0] == found[1]
