"""query.cover.asker: many queries are answered as each by itself."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query.answerable import UnsupportedQuery
from spack_cache_db.query.conditions import asked_of
from spack_cache_db.query.cover.asker import Asker
from spack_cache_db.query.dependencies.graph import Graph
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.spack.parser import parse_query

QUERIES = (
    "hdf5",
    "hdf5@1.14: +mpi %gcc@12",
    "zlib-ng target=:zen4 %gcc@12",
    "hdf5 ^zlib-ng",
    "hdf5 +mpi ^zlib-ng %gcc@12",
    "builtin.hdf5 cflags=-g",
    "hdf5 ++mpi ~cxx",
    "hdf5 patches=0123456789abcdef ~cxx",
    "mpi %gcc@12",
    "hdf5 target=foo: %gcc@12",
    "hdf5@git.main %gcc@12",
    "hdf5 ^mpi@3",
)


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["samples", "all_sources"])
def test_answers_are_those_of_each_query(cache: str, request: pytest.FixtureRequest) -> None:
    """With records and without, in any order and asked twice, nothing changes an answer."""
    conn: sqlite3.Connection = request.getfixturevalue(cache)
    asker = Asker(conn, read_lookups(conn))
    for text in (*QUERIES, *reversed(QUERIES)):
        query = parse_query(text)
        try:
            alone = asked_of(conn, query, Graph(conn, read_lookups(conn)))
        except UnsupportedQuery as error:
            with pytest.raises(UnsupportedQuery) as raised:
                asker.asked(query)
            assert str(raised.value) == str(error)
            continue
        asked = asker.asked(query)
        for part in ("name", "versions", "variants", "compilers", "os", "target", "hash", "notes"):
            assert getattr(asked, part) == getattr(alone, part), (text, part)
        assert (asked.specs and asked.specs.holds) == (alone.specs and alone.specs.holds)
        assert (asked.specs and asked.specs.unknown) == (alone.specs and alone.specs.unknown)
        assert asked.beyond == alone.beyond
