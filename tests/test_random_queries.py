"""metadata.yml's queries over random sources that contradict each other: a loop finds the same.

The loop goes over what the sources list: for pages what was drawn, for indexes the rows of
`build_listings`, which other tests hold against their sources.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.records import Configuration
from tests import contradictions
from tests.contradictions import Listing
from tests.dependency_oracle import Graph
from tests.metadata import run
from tests.oracle import Oracle
from tests.small_sources import Sources, opened, sources

LISTINGS = """
SELECT release, hash, package, version, compiler, os, platform, target, variants, stacks
FROM build_listings
"""
MOST_FIRST = {
    "most_hashes": "specs",
    "most_replaced": "replacements",
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


def answers_are_those_of(oracle: Oracle | Graph, conn: sqlite3.Connection) -> None:
    """Compare every query with every parameter."""
    for query, params, expected in oracle.asked():
        found = run(conn, query, **params)
        for row in found:
            if row.get("types"):
                row["types"] = ",".join(sorted({*row["types"].split(",")}))
        assert Counter(tuple(row.values()) for row in found) == Counter(expected), (query, params)
        if query in MOST_FIRST:
            counts = [row[MOST_FIRST[query]] for row in found]
            assert counts == sorted(counts, reverse=True)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(contradictions.listings(CONFIGURATIONS))
def test_pages_that_contradict_each_other(drawn: list[Listing]) -> None:
    """Each query gives what a loop over the pages gives, whatever it is asked."""
    with contradictions.opened(drawn) as conn:
        answers_are_those_of(Oracle(drawn), conn)


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
            answers_are_those_of(Oracle(listings), conn)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(sources())
def test_dependencies_that_contradict_each_other(drawn: Sources) -> None:
    """Queries about dependencies give what a walk over the edges gives, for every hash."""
    with opened(drawn) as conn:
        answers_are_those_of(Graph.of(conn), conn)
