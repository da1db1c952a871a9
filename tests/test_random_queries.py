"""metadata.yml's queries over random sources that contradict each other: a loop finds the same.

The loop goes over what the sources list: for pages what was drawn, for indexes the rows of
`build_listings`, which other tests hold against their sources.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Set
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.records import Configuration
from spack_cache_db.site.sandbox import sql_functions
from spack_cache_db.spack.versions import version_key
from tests import contradictions
from tests.contradictions import Listing
from tests.dependency_oracle import Graph
from tests.oracle import Oracle
from tests.queries.asking import EVERY_QUERY, run
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


def families(conn: sqlite3.Connection) -> frozenset[str]:
    """Return the names of the families of targets in the database."""
    return frozenset(name for (name,) in conn.execute("SELECT DISTINCT family FROM targets"))


def answers_are_those_of(
    oracle: Oracle | Graph, conn: sqlite3.Connection, may_be_empty: Set[str] = frozenset()
) -> None:
    """Compare every query with every parameter; a row says why there are none."""
    for query, params, expected in oracle.asked():
        found = run(conn, query, **params)
        if found and found[-1]["error"] is not None:
            assert not expected, (query, params, found)
            assert len(found) == 1 or isinstance(oracle, Graph)
            continue
        assert expected or query in may_be_empty, (query, params)
        assert [row.pop("error") for row in found] == [None] * len(found)
        assert Counter(tuple(row.values()) for row in found) == Counter(expected), (query, params)
        if isinstance(oracle, Oracle):
            order_is_as_described(oracle, query, found)


def order_is_as_described(oracle: Oracle, query: str, found: list[dict[str, Any]]) -> None:
    """What the descriptions say of the order is so."""
    if query in ("specs_of_package", "targets_of_package"):
        versions = [row["version"] for row in found]
        oldest_first = sorted(set(versions), key=version_key)
        assert versions == sorted(versions, key=oldest_first.index, reverse=True)
    if query in ("releases_of_version", "releases_of_hash"):
        places = [(row.get("hash", ""), oracle.releases.index(row["release"])) for row in found]
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
        answers_are_those_of(Oracle(drawn, families(conn)), conn, MAY_BE_EMPTY)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(contradictions.listings(CONFIGURATIONS), contradictions.QUERIES)
def test_pages_of_answers_are_the_whole(drawn: list[Listing], text: str) -> None:
    """With two rows a page instead of 999, all pages of an answer together are the answer."""
    with contradictions.opened(drawn) as conn:
        every = [(query, params) for query, params, _ in Oracle(drawn, families(conn)).asked()]
        asked = [("find_spec", {"spec": text}), *every[::7]]
        for query, params in asked:
            whole = run(conn, query, **params)
            assert page_by_page(conn, query, params) == whole, (query, params)


def page_by_page(
    conn: sqlite3.Connection, query: str, params: dict[str, str]
) -> list[dict[str, Any]]:
    """Return the rows of all pages, each of which but the last says that there is another."""
    found: list[dict[str, Any]] = []
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
            answers_are_those_of(Oracle(listings, families(conn)), conn, MAY_BE_EMPTY)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(sources())
def test_dependencies_that_contradict_each_other(drawn: Sources) -> None:
    """Queries about dependencies give what a walk over the edges gives, for every hash."""
    with opened(drawn) as conn:
        answers_are_those_of(Graph.of(conn), conn, EVERY_QUERY.keys())
