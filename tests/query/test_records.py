"""What records of indexes say of virtual packages."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.database import read_lookups
from spack_cache_db.query.records import SpecRecords
from tests.indexes import MIRRORS, REAL_FILE


@pytest.mark.slow
def test_whole_mirrors(tmp_path: Path) -> None:
    """Of mirrors without an index, those of Spack before 0.21 do not tell of virtual packages."""
    build([str(MIRRORS), str(REAL_FILE)], tmp_path / "out.db")
    conn = sqlite3.connect(tmp_path / "out.db")
    mute = SpecRecords(read_lookups(conn)).without_virtuals
    releases = {
        row[0]
        for row in conn.execute(
            "SELECT releases.name, spec FROM records JOIN mirrors ON mirrors.id = mirror "
            "JOIN releases ON releases.id = release"
        )
        if row[1] in mute
    }
    conn.close()

    assert releases == {"v2-0.16", "v2-0.17", "v2-0.20"}
