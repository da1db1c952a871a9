"""spack.intersection: two queries as one, and what excludes what."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.model import Configuration
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained, implies
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.queries import SpecQuery
from tests.configurations import configuration
from tests.oracle import matches
from tests.spack.test_printing import FRAGMENTS, without_places


def merged(first: str, second: str) -> str | None:
    """Return the text of both, None where they exclude each other."""
    try:
        return constrained(parse_query(first), parse_query(second)).text
    except UnsatisfiableSpec:
        return None


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("%gcc@13", "hdf5 target=zen3", "hdf5 target=zen3 %gcc@13"),
        ("hdf5 %gcc", "target=zen3 %gcc@13", "hdf5 target=zen3 %gcc@13"),
        ("hdf5 %gcc", "%clang", "hdf5 %gcc %llvm"),
        ("hdf5@1.12", "@1.12.2:", "hdf5@1.12.2:1.12"),
        ("hdf5 libs=shared", "libs=static", "hdf5 libs=shared,static"),
        ("hdf5 target=x86_64_v3:", "target=:zen3", "hdf5 target=x86_64_v3:zen3"),
        ("/abc", "/abcd", "/abcd"),
        ("hdf5 cflags=-g", "cflags=-g cxxflags=-g", "hdf5 cflags=-g cxxflags=-g"),
        ("kokkos ^cuda", "%gcc@12.2.0", "kokkos %gcc@12.2.0 ^cuda"),
        ("kokkos %gcc@12", "%c,cxx=gcc", "kokkos %c,cxx=gcc@12"),
        ("kokkos@:0,0.2", "@:3", "kokkos@:0"),
    ],
)
def test_two_queries_as_one(first: str, second: str, both: str | None) -> None:
    """What both ask is asked; what nothing can satisfy is refused, in either order."""
    assert merged(first, second) == both
    assert (merged(second, first) is None) == (both is None)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("hdf5@1.14.3 +mpi %gcc@13", "%gcc", True),
        ("hdf5 libs=static", "libs=shared,static", False),
        ("hdf5 libs=shared,static", "libs:=static", False),
        ("hdf5 target=zen3", "target=:zen4", True),
        ("hdf5 /abcd", "/abc", True),
        ("zlib %c,cxx=gcc@13", "zlib %gcc", True),
        ("zlib %gcc", "zlib %c,cxx=gcc", False),
        ("zlib ^gcc", "%gcc", False),
        ("zlib %gcc", "^gcc", True),
        ("zlib", "build_system==generic", True),
        ("zlib build_system=cmake", "build_system==generic", False),
        ("zlib@1:2,3", "@1:3", True),
        ("zlib@1", "@=1.2", False),
        ("zlib cflags='-g -O2'", "cflags=-g", True),
        ("zlib target=zen3,m1", "target=:zen4", False),
    ],
)
def test_a_query_implies_another(first: str, second: str, expected: bool) -> None:
    """A row of a matrix is excluded where all that the exclusion asks is asked by the
    row.
    """
    assert implies(parse_query(first), parse_query(second)) is expected


CONDITIONS = (
    [
        "@1",
        "@1.2",
        "@=1.2",
        "@1:",
        "@:1.4",
        "@1.2:1.4",
        "@:",
        "@2",
        "@1,3:",
        "@1.3:2,=4",
    ],
    [
        f"target={name}"
        for name in ("zen3", ":zen3", "zen2:", "x86_64:zen4", ":haswell", "m1")
    ],
    ["+x", "~x", "x=a", "x=a,b", "x:=a", "x:=a,b", "x=*", "x=c"],
)
PAIRS = (
    st.sampled_from(CONDITIONS)
    .map(st.sampled_from)
    .flatmap(lambda one: st.tuples(one, one))
)
VERSIONS = ["1", "1.2", "1.2.9", "1.3", "1.4.1", "2.1", "3", "4", "5"]
TARGETS = ["x86_64", "haswell", "zen", "zen2", "zen3", "zen4", "m1"]
VARIANTS = ["+x", "~x", "x=a", "x=a,b", "x=c", "x=a,c", "x=a,b,c"]
SPECS = st.builds(
    configuration,
    version=st.sampled_from(VERSIONS),
    target=st.sampled_from(TARGETS),
    variants=st.tuples(st.sampled_from(VARIANTS)),
)


@settings(max_examples=150)
@given(PAIRS, SPECS)
def test_a_merged_query_is_the_intersection(
    pair: tuple[str, str], spec: Configuration
) -> None:
    """Versions, targets and variants of the merged query are the intersection."""
    both = merged(*pair)
    found = both is not None and matches(parse_query(both), spec, "")
    assert found == all(matches(parse_query(text), spec, "") for text in pair)


PARTS = st.lists(
    st.sampled_from([*FRAGMENTS, "^mpi", "^cuda@12", "%gcc", "^zlib"]), max_size=6
)


@given(PARTS, PARTS)
def test_a_merged_query_reads_as_the_same(first: list[str], second: list[str]) -> None:
    """The text of two queries as one is a query that asks the same, and has that very
    text.
    """
    try:
        both = constrained(parse_query(" ".join(first)), parse_query(" ".join(second)))
    except (QuerySyntaxError, UnsatisfiableSpec):
        return
    read = parse_query(both.text)

    assert by_kind(read) == by_kind(both)
    assert constrained(read, SpecQuery()).text == both.text


def by_kind(query: SpecQuery) -> SpecQuery:
    """Return a query with its direct dependencies first, and without places in its
    text.
    """
    edges = tuple(sorted(query.dependencies, key=lambda edge: not edge.direct))
    return without_places(replace(query, dependencies=edges))
