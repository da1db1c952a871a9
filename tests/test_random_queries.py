"""metadata.yml's queries over random sources that contradict each other: a loop finds the same.

The loop goes over what the sources list: for pages what was drawn, for indexes the rows of
`build_listings`, which other tests hold against their sources.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.records import Configuration
from spack_cache_db.site.sandbox import sql_functions
from spack_cache_db.spack.versions import version_key
from tests import contradictions
from tests.brute_force import BruteForce
from tests.contradictions import Listing
from tests.graph_loops import GraphLoop
from tests.loops import Answer, Loop
from tests.queries.asking import run
from tests.small_sources import Sources, opened, sources

LISTINGS = """
SELECT release, hash, package, version, compiler, os, platform, target, variants, stacks
FROM build_listings
"""
MAY_BE_EMPTY = {"missing_for_family", "packages_gone", "families_lost", "new_versions"} | {
    "stacks_by_growth",
    "most_replaced",
    "longest_kept",
    "only_in_snapshots",
}
"""Queries to which nothing is an answer like another."""
MOST_FIRST = {
    "most_hashes": "spec_count",
    "most_replaced": "releases",
    "longest_kept": "days",
    "stacks_by_growth": "growth",
}
"""What the rows of some queries are sorted by, the most first."""
CONFIGURATIONS = st.builds(
    Configuration,
    package=st.sampled_from(["aa", "bb", "cc-aa"]),
    version=st.sampled_from(["1.9", "1.10", "2.0", "develop"]),
    compiler=st.sampled_from(["gcc@12.1.0", "none"]),
    os=st.sampled_from(["rhel8", "ubuntu22.04"]),
    platform=st.just("linux"),
    target=st.sampled_from(["x86_64_v3", "zen2", "aarch64", "neoverse_v1"]),
    variants=st.sampled_from([("+x",), ("+x", "k=a,b"), ("~x",), ()]),
)


def shown(answer: Answer) -> Counter[tuple[tuple[str, Any], ...]]:
    """Return rows without their order."""
    return Counter(tuple(sorted(row.items())) for row in answer)


def families(conn: sqlite3.Connection) -> set[str]:
    """Return the names of the families of targets in the file."""
    return {name for (name,) in conn.execute("SELECT DISTINCT family FROM targets")}


def answers_are_those_of(loop: Loop, conn: sqlite3.Connection) -> None:
    """Compare every query with every parameter; where the loop finds nothing, a row says why."""
    for query, params in loop.asked():
        found = run(conn, query, **params)
        expected = getattr(loop, query)(**{name: each.strip() for name, each in params.items()})
        if found and found[-1]["error"] is not None:
            assert not expected, (query, params, found)
            assert len(found) == 1
            continue
        assert expected or query in MAY_BE_EMPTY, (query, params)
        assert [row.pop("error") for row in found] == [None] * len(found)
        assert shown(found) == shown(expected), (query, params)
        order_is_as_described(loop, query, found)


def order_is_as_described(loop: Loop, query: str, found: Answer) -> None:
    """What the descriptions say of the order is so."""
    if query in ("specs_of_package", "targets_of_package"):
        versions = [row["version"] for row in found]
        oldest_first = sorted(set(versions), key=version_key)
        assert versions == sorted(versions, key=oldest_first.index, reverse=True)
    if query in ("releases_of_version", "releases_of_hash"):
        places = [(row.get("hash", ""), loop.said.releases.index(row["release"])) for row in found]
        assert places == sorted(places)
    if query in MOST_FIRST:
        counts = [row[MOST_FIRST[query]] for row in found]
        assert counts == sorted(counts, reverse=True)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(contradictions.listings(CONFIGURATIONS))
def test_pages_that_contradict_each_other(drawn: list[Listing]) -> None:
    """Each query gives what a loop over the pages gives, whatever it is asked."""
    with contradictions.opened(drawn) as conn:
        answers_are_those_of(Loop(BruteForce(drawn), families(conn)), conn)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(contradictions.listings(CONFIGURATIONS), contradictions.QUERIES)
def test_pages_of_answers_are_the_whole(drawn: list[Listing], text: str) -> None:
    """With two rows a page instead of 999, all pages of an answer together are the answer."""
    with contradictions.opened(drawn) as conn:
        loop = Loop(BruteForce(drawn), families(conn))
        asked = [("find_spec", {"spec": text}), *list(loop.asked())[::7]]
        for query, params in asked:
            whole = run(conn, query, **params)
            assert page_by_page(conn, query, params) == whole, (query, params)


def page_by_page(conn: sqlite3.Connection, query: str, params: dict[str, str]) -> Answer:
    """Return the rows of all pages, each of which but the last says that there is another."""
    found: Answer = []
    for number in range(1, 200):
        with patch.object(sql_functions, "PAGE_ROWS", 2):
            rows = run(conn, query, **params, page=str(number))
        following = rows[-1]["error"] if len(rows) == 3 else None
        found += rows[:2]
        if following is None:
            return found
        assert following.startswith(f"row {2 * number + 1} ")
        assert following.endswith(f"is on page {number + 1}")
    raise AssertionError(query)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(sources())
def test_indexes_that_contradict_each_other(drawn: Sources) -> None:
    """The same of indexes and pages together, of whose specs some are no binaries."""
    with opened(drawn) as conn:
        listings = [
            Listing(
                release, dag, Configuration._make((*rest, tuple(variants.split()))), tuple(stacks)
            )
            for release, dag, *rest, variants, stacks in (
                (*row[:-1], json.loads(row[-1])) for row in conn.execute(LISTINGS)
            )
        ]
        if listings:
            answers_are_those_of(Loop(BruteForce(listings), families(conn)), conn)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(sources())
def test_dependencies_that_contradict_each_other(drawn: Sources) -> None:
    """Queries about dependencies give what a walk over the edges gives, for every hash."""
    with opened(drawn) as conn:
        for query, params, expected in GraphLoop.of(conn).asked():
            found = run(conn, query, **params)
            if found and found[-1]["error"] is not None:
                assert not expected, (query, params, found)
                continue
            assert [row.pop("error") for row in found] == [None] * len(found)
            assert shown(found) == shown(expected), (query, params)
