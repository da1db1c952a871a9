"""spack.parser: no text makes the parser fail, or takes it long."""

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.spack.lexer import MAX_LENGTH, QuerySyntaxError
from spack_cache_db.spack.parser import parse_query

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
    """Parse a text, or refuse it with an error in place, and return the time that it took."""
    start = time.thread_time()
    try:
        parse_query(text)
    except QuerySyntaxError as error:
        assert 0 <= error.column <= max(len(text), MAX_LENGTH)
        assert "^" in str(error)
    return time.thread_time() - start


def parses_quickly(text: str) -> None:
    """Parse a text within the time allowed; a garbage collection may fall into one attempt."""
    assert any(seconds_to_parse(text) < PARSE_SECONDS for _ in range(3))


MIXTURES = st.builds(
    str.join, st.sampled_from(["", " "]), st.lists(st.sampled_from(FRAGMENTS), max_size=30)
)


@pytest.mark.slow
@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(st.text(max_size=300) | MIXTURES)
def test_any_text(text: str) -> None:
    """Any text, of the syntax's own pieces too, is a query or a syntax error, quickly."""
    parses_quickly(text)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 10, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=3))
def test_any_repetition(fragments: list[str]) -> None:
    """A piece repeated up to the longest query costs no more than its length."""
    unit = "".join(fragments) or "x"

    parses_quickly((unit * MAX_LENGTH)[:MAX_LENGTH])
    parses_quickly(((unit + " ") * MAX_LENGTH)[:MAX_LENGTH])
