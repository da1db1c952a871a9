"""spack.flags: the words of an option, and whether a spec has them."""

from __future__ import annotations

import pytest

from spack_cache_db.spack.flags import flag_words, flags_match
from spack_cache_db.spack.query import parse_query


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", ()),
        ("-g", ("-g",)),
        (" -O2   -g ", ("-O2", "-g")),
        ("-I /usr/include -g", ("-I /usr/include", "-g")),
        ("-Xpreprocessor -fopenmp", ("-Xpreprocessor", "-fopenmp")),
        ("O2 -g", ("O2", "-g")),
    ],
)
def test_words(value: str, words: tuple[str, ...]) -> None:
    """A word without a dash belongs to the flag before it."""
    assert flag_words(value) == words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cflags=-g", True),
        ("cflags=='-g'", True),
        ("cflags='-g -O2'", True),
        ("cflags=-O2 cflags=-g", True),
        ("cflags='-O2 -O3'", False),
        ("cflags=-O", False),
        ("cxxflags=-g", False),
        ("cflags=-g cxxflags=-g", False),
        ("cflags='-I /usr'", True),
        ("cflags=-I", False),
        ("cxxflags=''", True),
    ],
)
def test_flags(text: str, expected: bool) -> None:
    """Each word that is asked for is among those of the same option."""
    flags = {"cflags": ["-O2", "-g", "-I /usr"], "ldflags": []}

    assert flags_match(parse_query(text).flags, flags) is expected
