"""Any query over any small sources has the answer of a walk."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.query.answers import Found, found_part, notes_on
from spack_cache_db.query.conditions import UnsupportedQuery
from spack_cache_db.query.configurations import matching
from spack_cache_db.query.database import read_lookups
from spack_cache_db.query.records import question_of
from spack_cache_db.site.pages.search import load_find
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from tests.oracle import Walk, left_out
from tests.small_sources import QUERIES, Sources, hashes, opened, sources

LISTED = "SELECT hash FROM build_listings WHERE release = ?"


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(sources(), st.lists(QUERIES, min_size=3, max_size=12))
def test_any_query_has_the_answer_of_a_walk(drawn: Sources, queries: list[str]) -> None:
    """SQL finds what a walk over the records finds, and counts what nothing can be said of."""
    with opened(drawn) as conn:
        walk, lookups = Walk.of(drawn, conn), read_lookups(conn)
        for text in queries:
            try:
                question = question_of(lookups, parse_query(text))
            except (UnsupportedQuery, QuerySyntaxError) as error:
                assert refused(text, str(error)), (text, str(error))
                continue
            truths = {each: walk.satisfies(each, parse_query(text)) for each in walk.binaries}
            matches = matching(lookups, question.conditions)
            found = found_part(lookups, matches, slice(None), with_hashes=True)

            expected = {each for each, truth in truths.items() if truth}
            assert {each for one in found for each in one.hashes or ()} == expected, text
            assert left_out(notes_on(lookups, question)) == [*truths.values()].count(None), text
            every_road_leads_there(conn, text, found)
            for release in {name for name, _ in drawn.mirrors}:
                listed = {each for (each,) in conn.execute(LISTED, [release])}
                expected = {each for each in listed if walk.satisfies(each, parse_query(text))}
                assert hashes(conn, text, release=release) == expected, (text, release)


def every_road_leads_there(conn: sqlite3.Connection, text: str, found: list[Found]) -> None:
    """SQL of hashes and of configurations and the search say what `find` does."""
    expected = {each for one in found for each in one.hashes or ()}
    by_hash = conn.execute("SELECT hash FROM builds WHERE spec_match(?, hash)", [text])
    assert {row[0] for row in by_hash} == expected, text
    # Where releases contradict each other, a configuration is that of more specs than its own.
    by_id = "SELECT count(*) FROM configurations WHERE spec_count > 0 AND spec_match(?, id)"
    assert conn.execute(by_id, [text]).fetchone()[0] >= len(found), text
    page = load_find(read_lookups(conn), text)
    if page.answer is not None:
        rows = {row.configuration: (row.spec_count, {*row.hashes}) for row in page.answer.rows}
        wanted = {each.configuration: each for each in found}
        assert {key: count for key, (count, _) in rows.items()} == {
            key: each.spec_count for key, each in wanted.items()
        }, text
        assert all(first <= {*(wanted[key].hashes or ())} for key, (_, first) in rows.items()), text


def refused(text: str, reason: str) -> bool:
    """Return whether a query is one that no database answers."""
    if "exclude each other" in reason:
        return True
    return "^mpi@3" in text and "its versions are in Spack's recipes" in reason
