"""The small tables of a file."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.lookups import LAZY, read_lookups
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION
from tests.conftest import Build
from tests.pagetexts import page, spec


def test_every_column_of_a_configuration_has_its_words(samples: sqlite3.Connection) -> None:
    """The columns are those of the record, and all but two kinds of words are known at once."""
    lookups = read_lookups(samples)

    assert tuple(CONFIGURATION) == Configuration._fields == tuple(lookups.words)
    assert {column for column, words in lookups.words.items() if not words} == set(LAZY)


def test_versions_and_sets_of_variants_are_read_once(samples: sqlite3.Connection) -> None:
    """What was learned needs no connection any more."""
    lookups = read_lookups(samples)
    lookups.learn(samples, {1, 2}, {1})
    before = dict(lookups.words["version"])

    lookups.learn(sqlite3.connect(":memory:"), {2, 1}, {1})

    assert lookups.words["version"] == before
    assert before.keys() == lookups.positions.keys() == {1, 2}
    assert lookups.words["variants"].keys() == {1}


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
