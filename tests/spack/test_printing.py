"""spack.printing: text that reads as the query that it was made of."""

import os
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.spack.lexer import MAX_LENGTH, QuerySyntaxError
from spack_cache_db.spack.parser import parse_query
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery

EXAMPLES = 2_000 if os.environ.get("CI") else 500
PARSE_SECONDS = 0.1

PIECES = r"""
    hdf5 builtin.hdf5 py-torch * @1.2 @=1.2 @1.2: @:1.4 @1:2,4 @git.main=1.2 @ : , = + ~ - ++ ~~
    +mpi ~mpi -mpi ++pic --pic k=v k:=v k==v k:==v k=* k='' k='a k="b target= target=zen3
    target=zen2:zen4 arch=linux-debian12-zen3 os=rhel8 cflags='-O2' /abc / %gcc %gcc@12 %clang
    %c,cxx=gcc %[ %[virtuals=c,cxx] %[deptypes=build when='+x'] ] ^ ^mpi ^mpi=openmpi ^[ %% \ ' "
"""
FRAGMENTS = PIECES.split()


def seconds_to_parse(text: str) -> float:
    """Parse a text, or refuse it with an error in place, and return the time that it
    took.
    """
    start = time.thread_time()
    try:
        parse_query(text)
    except QuerySyntaxError as error:
        assert 0 <= error.column <= max(len(text), MAX_LENGTH)
        assert "^" in str(error)
    return time.thread_time() - start


def parses_quickly(text: str) -> None:
    """Parse a text within the time allowed; a garbage collection may fall into one
    attempt.
    """
    assert any(seconds_to_parse(text) < PARSE_SECONDS for _ in range(3))


MIXTURES = st.builds(
    str.join,
    st.sampled_from(["", " "]),
    st.lists(st.sampled_from(FRAGMENTS), max_size=30),
)


@pytest.mark.slow
@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(st.text(max_size=300) | MIXTURES)
def test_any_text(text: str) -> None:
    """Any text, of the syntax's own pieces too, is a query or a syntax error,
    quickly.
    """
    parses_quickly(text)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 10, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=3))
def test_any_repetition(fragments: list[str]) -> None:
    """A piece repeated up to the longest query costs no more than its length."""
    unit = "".join(fragments) or "x"
    parses_quickly((unit * MAX_LENGTH)[:MAX_LENGTH])
    parses_quickly(((unit + " ") * MAX_LENGTH)[:MAX_LENGTH])


def without_places(query: SpecQuery) -> SpecQuery:
    """Return a query without its text, and the columns of its parts in the text."""
    variants = [replace(variant, column=0) for variant in query.variants]
    flags = [replace(flag, column=0) for flag in query.flags]
    dependencies = []
    for edge in query.dependencies:
        node = without_places(edge.node)
        dependencies.append(replace(edge, column=0, node=node))
    return replace(
        query,
        text="",
        variants=tuple(variants),
        flags=tuple(flags),
        dependencies=tuple(dependencies),
    )


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("hdf5 -mpi@1.14: %clang", "hdf5@1.14: ~mpi %llvm"),
        ("*", "*"),
        ("+cuda cuda_arch=90,80", "+cuda cuda_arch=80,90"),
        ("target=zen3 builtin.hdf5", None),
        ("builtin.hdf5 os=rhel8 target=zen3 libs:=static,shared", None),
        ("hdf5 arch=linux-rhel8-zen3", "hdf5 platform=linux os=rhel8 target=zen3"),
        ("hdf5 cflags='-O2 -g' foo=\"it's\"", "hdf5 foo=\"it's\" cflags='-O2 -g'"),
        ("hdf5 %c,cxx=gcc@13 ^[virtuals=mpi] openmpi +cuda", None),
        ("%[virtuals=c,cxx] *", "%[virtuals=c,cxx] *"),
        ("%gcc@12 ^c,cxx=gcc %gcc", "%gcc@12 ^c,cxx=gcc %gcc"),
    ],
)
def test_a_query_in_words(typed: str, printed: str | None) -> None:
    """The package's own conditions come first, as one would type them."""
    try:
        text = spec_text(parse_query(typed))
    except QuerySyntaxError:
        assert printed is None
        return
    assert printed is None or text == printed
    assert without_places(parse_query(text)) == without_places(parse_query(typed))


VALUES = [
    *"ab",
    "own/i",
    "a.b",
    "it's",
    'say "a"',
    "a b",
    "-O2 -g",
    "\\",
    "a\\",
    "*",
    "1,2",
    "",
]
KEYS = ["namespace", "os", "platform", "target", "cflags", "k", "patches", "dev_path"]
PAIRS = st.builds(
    "{key}{sign}{quote}{value}{quote}".format,
    key=st.sampled_from(KEYS),
    sign=st.sampled_from(["=", "=", "==", ":="]),
    value=st.sampled_from(VALUES),
    quote=st.sampled_from(["", "'", '"']),
)


@given(st.lists(st.sampled_from(FRAGMENTS) | PAIRS, max_size=8))
def test_a_printed_query_reads_as_the_same(parts: list[str]) -> None:
    """Every query that can be read is printed as text that reads as the same query."""
    try:
        query = parse_query(" ".join(parts))
    except QuerySyntaxError:
        return
    text = spec_text(query)

    assert without_places(parse_query(text)) == without_places(query)
    assert spec_text(parse_query(text)) == text
