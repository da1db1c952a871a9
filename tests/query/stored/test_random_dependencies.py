"""Any query over any small sources has the answer of a walk."""

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.query.answers.find import Found, found_part
from spack_cache_db.query.conditions.pages import UnsupportedQuery
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.site.pages.search_answers import Search
from spack_cache_db.site.pages.search_page import SearchPage
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from tests.examples import examples
from tests.indexes import edge, hash_of, node, old_node, record
from tests.oracle import Walk, left_out
from tests.pagetexts import page, spec
from tests.small_sources import QUERIES, Sources, database_of, hashes, sources

LISTED = "SELECT hash FROM build_listings WHERE release = ?"


@pytest.mark.slow
@settings(max_examples=examples(15), deadline=None)
@given(sources(), st.lists(QUERIES, min_size=3, max_size=12))
def test_any_query_has_the_answer_of_a_walk(drawn: Sources, queries: list[str]) -> None:
    """SQL finds what a walk over the records finds, and counts what nothing can be said
    of.
    """
    with database_of(drawn) as conn:
        answers_are_those_of_a_walk(drawn, conn, queries)


MPI = ("mpi",)
C = ("c", "cxx")
RECORDS = [
    node(
        "aa",
        edge("mpich", "link", virtuals=MPI),
        edge("gcc", "build", virtuals=C),
        namespace="own",
        parameters={"x": True, "cflags": ["-O2", "-g"], "patches": ["ab" * 32]},
    ),
    node(
        "bb", edge("aa", "run"), edge("tool", "build", "test"), parameters={"x": False}
    ),
    node("cc", edge("bb", "build"), parameters={"x": True}),
    node("mpich", edge("low", "link"), parameters={"x": True}),
    node("tool", edge("gcc", "build", virtuals=("c",)), edge("deep", "run")),
    node(
        "kept",
        annotations={"original_specfile_version": 4, "compiler": "clang@=15.0.7"},
    ),
    node("deep"),
    node("gcc", version="12.1.0"),
]
LOW = record(node("low", external={"path": "/", "module": None}), is_binary=False)
OLD_RECORD = record(old_node("old", "6", "mpich"))
PREVIOUS = [record(node("aa")), record(node("bb", edge("aa", "link")))]
"""The records of the release before."""

EXAMPLE_MIRRORS = {
    ("develop", "e4s"): ("8", [*map(record, RECORDS), LOW]),
    ("develop", "ml"): ("6", [OLD_RECORD, record(RECORDS[3])]),
    ("v1.9", "e4s"): ("8", PREVIOUS),
}
EXAMPLE_PAGES = {
    "aa": page("aa", "develop", [spec(8, compiler="gcc@12.1.0", variants=["+x"])]),
    "llvm": page("llvm", "develop", [spec(9, compiler="llvm@15.0.7", variants=[])]),
}
EXAMPLE = Sources(EXAMPLE_MIRRORS, EXAMPLE_PAGES)


@pytest.mark.parametrize(
    "queries",
    [
        [
            "*",
            "aa",
            "own.aa",
            "bb@1",
            "+x",
            "++x",
            "~~x",
            "* cflags=-g",
            "* cflags='-g -O3'",
        ],
        [
            "* patches=ababababa",
            "* patches:=" + "ab" * 32,
            "namespace=own",
            "* ^aa",
            "* %aa",
        ],
        [
            "* ^mpich",
            "* ^mpi",
            "* %mpi",
            "* ^mpi=mpich",
            "* %c=gcc",
            "* %cxx=gcc@12",
            "* ^c",
        ],
        [
            "* %gcc",
            "* %gcc@12",
            "* %gcc@13",
            "* %clang",
            "* %llvm@15",
            "* %@12",
            "* ^gcc %gcc",
        ],
        [
            "* ^[deptypes=run] aa",
            "* %[deptypes=build] bb",
            "* ^[deptypes=link,run] mpich",
        ],
        [
            "* %[when='+x'] gcc",
            "* ^[when=~x] deep",
            "* %[when='^deep'] bb",
            "* ^deep",
            f"* %clang/{hash_of('kept')[:3]} %c",
            "* ^low",
        ],
        [
            "* ^aa+x",
            "* ^aa cflags=-g",
            "* %tool %gcc",
            "* ^own.aa",
            f"* ^/{hash_of('mpich')[:4]}",
        ],
        [
            "* ^mpi@3",
            "* ^nothing",
            "* ^tool",
            "* %gcc+x",
            "bb ^aa ^mpich",
            "cc ^aa",
            "* ^mpich++x",
        ],
    ],
)
def test_each_query_has_the_answer_of_a_walk_over_an_example(
    example: sqlite3.Connection, queries: list[str]
) -> None:
    """The same of one file, in the fast loop."""
    answers_are_those_of_a_walk(EXAMPLE, example, queries)


@pytest.fixture(scope="module")
def example() -> Iterator[sqlite3.Connection]:
    """A database of the example."""
    with database_of(EXAMPLE) as conn:
        yield conn


def answers_are_those_of_a_walk(
    drawn: Sources, conn: sqlite3.Connection, queries: list[str]
) -> None:
    """Compare all answers to queries, everywhere and in each release of a mirror."""
    walk = Walk.of(drawn, conn)
    lookups = read_lookups(conn)
    for text in queries:
        # A query that is refused has to be.
        try:
            question = Question(lookups, parse_query(text))
            question.check()
        except (UnsupportedQuery, QuerySyntaxError) as error:
            assert refused(text, str(error)), (text, str(error))
            continue

        # Everywhere: what satisfies it is found, and what is not known is counted.
        truths = {
            binary: walk.satisfies(binary, parse_query(text))
            for binary in walk.binaries
        }
        found = found_part(question, slice(None), with_hashes=True)
        expected = {binary for binary, truth in truths.items() if truth}
        found_hashes = {
            dag_hash for answer in found for dag_hash in answer.hashes or ()
        }
        assert found_hashes == expected, text
        assert left_out(question.notes) == list(truths.values()).count(None), text
        every_road_leads_there(conn, text, found)

        # In each release of a mirror.
        for release in {name for name, _ in drawn.mirrors}:
            listed = {each for (each,) in conn.execute(LISTED, [release])}
            expected = {
                each for each in listed if walk.satisfies(each, parse_query(text))
            }
            assert hashes(conn, text, release=release) == expected, (text, release)


def every_road_leads_there(
    conn: sqlite3.Connection, text: str, found: list[Found]
) -> None:
    """SQL of hashes and of configurations and the search say what `find` does."""
    expected = {dag_hash for answer in found for dag_hash in answer.hashes or ()}
    by_hash = conn.execute("SELECT hash FROM builds WHERE spec_match(?, hash)", [text])
    assert {row[0] for row in by_hash} == expected, text
    # Where releases contradict each other, a configuration is that of more specs than
    # its own.
    by_id = (
        "SELECT count(*) FROM configurations WHERE spec_count > 0 AND spec_match(?, id)"
    )
    assert conn.execute(by_id, [text]).fetchone()[0] >= len(found), text
    lookups = read_lookups(conn)
    page = Search(lookups).result(text)
    if isinstance(page, SearchPage) and page.answer is not None:
        # A page of a spec without an answer may answer another spec, and says so.
        if not found and page.spec is not None:
            question = Question(lookups, parse_query(page.spec))
            found = found_part(question, slice(None), with_hashes=True)
        rows = {
            row.configuration: (row.spec_count, row.hash) for row in page.answer.rows
        }
        wanted = {each.configuration: each for each in found}
        assert {key: count for key, (count, _) in rows.items()} == {
            key: each.spec_count for key, each in wanted.items()
        }, text
        assert all(
            first in (wanted[key].hashes or ()) for key, (_, first) in rows.items()
        ), text


def refused(text: str, reason: str) -> bool:
    """Return whether a query is one that no database answers."""
    if "exclude each other" in reason:
        return True
    return "^mpi@3" in text and "its versions are in Spack's recipes" in reason
