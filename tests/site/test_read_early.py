"""What a server reads of a file's dependencies before anybody asks."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.connection import read_lookups
from spack_cache_db.site.loaders import read_early
from spack_cache_db.site.pages.search import load_find


def reads_of_whole_tables(conn: sqlite3.Connection, text: str, *, early: bool) -> list[str]:
    """Return the statements without a condition on ids, of the first answer to a search."""
    lookups = read_lookups(conn)
    if early:
        read_early(lookups)
    asked: list[str] = []
    conn.set_trace_callback(asked.append)
    try:
        assert load_find(lookups, text).answer
    finally:
        conn.set_trace_callback(None)
    plans = ((sql, conn.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()) for sql in asked)
    return [
        sql
        for sql, plan in plans
        if any(
            row[3].startswith("SCAN specs") or row[3].startswith("SCAN dependencies")
            for row in plan
        )
    ]


def test_the_first_answer_about_dependencies_reads_no_whole_table(
    real_index: sqlite3.Connection,
) -> None:
    """The configurations of all specs have been read before; else it reads them."""
    assert reads_of_whole_tables(real_index, "^zlib", early=False)
    assert not reads_of_whole_tables(real_index, "^zlib", early=True)


def test_nothing_is_read_of_a_file_without_dependencies(samples: sqlite3.Connection) -> None:
    """Its visitors ask nothing that needs it."""
    lookups = read_lookups(samples)
    asked: list[str] = []
    samples.set_trace_callback(asked.append)
    read_early(lookups)
    samples.set_trace_callback(None)
    assert not [sql for sql in asked if "FROM specs" in sql or "FROM dependencies" in sql]
