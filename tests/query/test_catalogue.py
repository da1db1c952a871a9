"""What configurations and specs are in words, which specs count where, and in which order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from spack_cache_db.query.answers import find
from spack_cache_db.query.conditions import ANYWHERE, Condition, Conditions
from spack_cache_db.query.configurations import found_specs, specs_in_scope
from spack_cache_db.query.database import read_lookups
from spack_cache_db.site.pages.search import load_find
from tests.conftest import Build
from tests.pagetexts import page, spec, spec_hash

DEVELOP, RELEASE, LATE, EARLY = "develop", "v1.0", "develop-2025-02-02", "develop-2025-01-05"


@pytest.fixture
def order(built: Build) -> sqlite3.Connection:
    """Four specs of one configuration; hashes that sort the other way round than releases."""
    return built(
        a=page(release=DEVELOP, specs=[spec(9)]),
        b=page(release=RELEASE, specs=[spec(8), spec(9)]),
        c=page(release=LATE, specs=[spec(7), spec(8)]),
        d=page(release=EARLY, specs=[spec(6), spec(7), spec(5)]),
    )


def test_what_is_current_comes_first(order: sqlite3.Connection) -> None:
    """A branch before releases before snapshots, these from new to old; then by hash."""
    (found,) = find(order, "zlib", with_hashes=True)

    (early,) = find(order, "zlib", release=EARLY, with_hashes=True)

    assert found.hashes == tuple(map(spec_hash, (9, 8, 7, 5, 6)))
    assert early.hashes == tuple(map(spec_hash, (7, 5, 6)))


def test_each_spec_is_told_with_its_own_places(order: sqlite3.Connection) -> None:
    """Releases in the file's order, stacks without root, days of snapshots only."""
    specs = specs_in_scope(order, [1], ANYWHERE)[1]

    told = {each.hash: each for each in found_specs(read_lookups(order), specs)}

    assert [
        (told[spec_hash(number)].releases, told[spec_hash(number)].last_seen)
        for number in (9, 7, 5)
    ] == [
        ((DEVELOP, RELEASE), None),
        ((LATE, EARLY), "2025-02-02"),
        ((EARLY,), "2025-01-05"),
    ]
    assert {each.stacks for each in told.values()} == {("e4s",)}


@pytest.fixture
def contradiction(built: Build) -> sqlite3.Connection:
    """A hash that a release describes with another system than develop does."""
    return built(
        a=page(release=DEVELOP, specs=[spec(1, os="ubuntu22.04"), spec(2, os="rhel8")]),
        b=page(release=RELEASE, specs=[spec(1, os="rhel8", stacks=["ml"])]),
    )


IN_DEVELOP, IN_RELEASE = ((Condition("release", "", at),) for at in (1, 2))
IN_E4S, IN_ML = ((Condition("stack", "", at),) for at in (1, 2))


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (ANYWHERE, {"ubuntu22.04": [1], "rhel8": [2]}),
        (IN_DEVELOP, {"ubuntu22.04": [1], "rhel8": [2]}),
        (IN_RELEASE, {"ubuntu22.04": [1]}),
        (IN_E4S, {"ubuntu22.04": [1], "rhel8": [2]}),
        (IN_ML, {"ubuntu22.04": [1]}),
        (IN_RELEASE + IN_ML, {"ubuntu22.04": [1]}),
        (IN_RELEASE + IN_E4S, {}),
        (IN_DEVELOP + IN_ML, {}),
    ],
)
def test_one_rule(
    contradiction: sqlite3.Connection, scope: Conditions, expected: dict[str, list[int]]
) -> None:
    """A hash has one configuration in every answer: that of the first release which lists it."""
    lookups = read_lookups(contradiction)
    names = [lookups.stacks[key].name for key in (1, 2)]
    ids: dict[int, str] = dict(
        contradiction.execute(
            "SELECT configurations.id, name FROM configurations "
            "JOIN operating_systems ON operating_systems.id = os"
        )
    )

    found = specs_in_scope(contradiction, ids, scope)

    assert names == ["e4s", "ml"]
    assert {ids[key]: [each.hash for each in specs] for key, specs in found.items()} == {
        name: [*map(spec_hash, numbers)] for name, numbers in expected.items()
    }


def test_what_is_current_comes_first_in_a_release_as_well(built: Build) -> None:
    """Specs of a configuration are in the order of the first releases that list them."""
    conn = built(
        a=page(release=DEVELOP, specs=[spec(2), spec(8)]),
        b=page(release=LATE, specs=[spec(5), spec(3), spec(4)]),
        c=page(release=EARLY, specs=[spec(number) for number in (1, 2, 3, 4, 5, 8)]),
    )

    (found,) = find(conn, "zlib", release=EARLY, with_hashes=True)

    assert found.hashes == tuple(map(spec_hash, (2, 8, 3, 4, 5, 1)))


@pytest.fixture
def unlisted(built: Build) -> Iterator[sqlite3.Connection]:
    """A file that knows of a spec, as a dependency, which no release lists."""
    connection = built(a=page(specs=[spec(1)]))
    connection.execute(
        "INSERT INTO specs SELECT 2, ?, configuration, stacks, 0, 0, 0, 0, NULL, NULL FROM specs",
        [spec_hash(2)],
    )
    yield connection


@pytest.mark.parametrize("text", ["zlib", "*", "+x", f"/{spec_hash(2)[:31]}", f"/{spec_hash(2)}"])
def test_a_spec_that_no_release_lists_counts_nowhere(
    unlisted: sqlite3.Connection, text: str
) -> None:
    """What was not pushed is known, and is no answer; neither is it a row of the views."""
    found = find(unlisted, text, with_hashes=True)
    searched = load_find(read_lookups(unlisted), f"zlib {text}" if "/" in text else text)

    assert [each.hashes for each in found] in ([], [(spec_hash(1),)])
    lines = () if searched.answer is None else searched.answer.rows
    assert [line.hashes for line in lines] in ([], [(spec_hash(1),)])
    for view in ("builds", "build_listings", "spec_variants", "host_builds", "spec_stacks"):
        rows: set[Any] = {row[0] for row in unlisted.execute(f"SELECT hash FROM {view}")}
        assert rows == {spec_hash(1)}, view


WORDS = """
SELECT configuration, package, version, compiler, os, platform, target, variants, count(*)
FROM builds JOIN specs USING (hash) GROUP BY configuration
"""
