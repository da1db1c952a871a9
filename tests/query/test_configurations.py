"""query.configurations: ids → words, as the view `builds` joins them."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.configurations import configurations_by_id, configurations_of_package
from spack_cache_db.query.lookups import read_lookups

WORDS = """
SELECT configuration, package, version, compiler, os, platform, target, variants, count(*)
FROM builds JOIN specs USING (hash) GROUP BY configuration
"""


def test_words_are_those_of_the_view(all_samples: sqlite3.Connection) -> None:
    """Every configuration has the words of its specs in `builds`, and counts them."""
    expected = {row[0]: row[1:] for row in all_samples.execute(WORDS)}

    found = configurations_by_id(all_samples, read_lookups(all_samples), [*expected])

    assert {
        each.id: (*each.configuration[:-1], " ".join(each.configuration.variants), each.spec_count)
        for each in found
    } == expected


def test_the_order_is_that_of_the_ids(all_samples: sqlite3.Connection) -> None:
    """Configurations come in the order in which they were asked for."""
    lookups = read_lookups(all_samples)

    found = configurations_by_id(all_samples, lookups, [3, 1, 2])

    assert [each.id for each in found] == [3, 1, 2]


def test_a_package_has_all_of_its_configurations(all_samples: sqlite3.Connection) -> None:
    """By package and by id the same is found."""
    lookups = read_lookups(all_samples)
    rows = all_samples.execute("SELECT id, package FROM configurations").fetchall()
    for package in {package for _, package in rows}:
        ids = [key for key, each in rows if each == package]
        assert configurations_of_package(all_samples, lookups, package) == (
            configurations_by_id(all_samples, lookups, ids)
        )
