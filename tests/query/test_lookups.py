"""The small tables of a file."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.database import read_lookups
from tests.conftest import Build
from tests.pagetexts import page, spec


def test_releases_and_stacks(built: Build) -> None:
    """Releases stand in the file's order, stacks by name; root is none."""
    lookups = read_lookups(
        built(
            a=page(release="develop-2025-01-05", specs=[spec(1, stacks=["ml", "root", "e4s"])]),
            b=page(release="v1.0"),
            c=page(release="develop"),
        )
    )

    assert [each.name for each in lookups.releases.values()] == [
        "develop",
        "v1.0",
        "develop-2025-01-05",
    ]
    assert [each.name for each in lookups.stacks.values()] == ["e4s", "ml"]
    assert lookups.stack("root") is None
    assert (lookups.release("v1.0"), lookups.release(None)) == (lookups.releases[2], None)


def test_a_column_of_ids_is_that_of_the_table(samples: sqlite3.Connection) -> None:
    """Each row's id leads to its value, and the id of no row to 0; it is read once."""
    lookups = read_lookups(samples)
    found = lookups.column("specs", "configuration")

    rows = dict(samples.execute("SELECT id, configuration FROM specs"))
    assert dict(enumerate(found)) == {0: 0} | rows
    assert lookups.column("specs", "configuration") is found
