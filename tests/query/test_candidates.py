"""What is left without some conditions, as `find` has it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.query.answers import find
from spack_cache_db.query.conditions import Conditions, configuration_conditions
from spack_cache_db.query.connection import read_lookups
from spack_cache_db.query.questions import question_of, scope_of
from spack_cache_db.query.selection import Candidates, Misses, misses_of
from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.parser import parse_query
from tests.query.random_cache import RELEASES, STACKS, random_cache

OWN = ["@1", "@:1.2", "@2:", "@99", "+x", "~x", "k=a", "k=a,b", "k:=a", "none=1"]
MORE = ["target=zen3", "target=:zen4", "target=m1", "os=rhel8", "os=suse", "platform=linux", "/a"]
COMPILERS = ["", "%gcc", "%gcc@13", "%clang"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A connection to a small cache at random."""
    file = random_cache(tmp_path_factory.mktemp("random") / "cache.db")
    connection = sqlite3.connect(file, check_same_thread=False)
    yield connection
    connection.close()


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw a spec that can be read: each condition at most once."""
    name = draw(st.sampled_from(["foo", "bar", "*"]))
    version = draw(st.sampled_from(["", *(each for each in OWN if each[0] == "@")]))
    rest = draw(
        st.lists(st.sampled_from([each for each in OWN + MORE if each[0] != "@"]), max_size=4)
    )
    unique = {each.lstrip("+~").partition("=")[0].rstrip(":"): each for each in rest}
    return " ".join((name + version, *unique.values(), draw(st.sampled_from(COMPILERS))))


def scopes() -> st.SearchStrategy[dict[str, Any]]:
    """Return what narrows an answer, by names."""
    return st.fixed_dictionaries(
        {
            "release": st.sampled_from([None, None, *RELEASES]),
            "stack": st.sampled_from([None, None, *STACKS]),
            "host": st.sampled_from([None, None, "zen3", "m1"]),
            "os": st.sampled_from([None, None, "rhel8"]),
        }
    )


def conditions_by(cache: sqlite3.Connection, text: str, names: dict[str, Any]) -> Conditions:
    """Return what a spec asks, and what names narrow."""
    lookups = read_lookups(cache)
    scope = scope_of(lookups, **names)
    return question_of(lookups, parse_query(text), scope).conditions


def found(
    cache: sqlite3.Connection,
    misses: Misses,
    query: SpecQuery,
    names: dict[str, Any],
    left_out: set[int],
) -> dict[Configuration, int]:
    """Return what `find` finds of a query, narrowed by names, without some conditions."""
    own = configuration_conditions(query)
    for condition in (misses.conditions[place] for place in left_out):
        if condition.kind in ("release", "stack", "host"):
            names = names | {condition.kind: None}
            continue
        if condition.text == f"os={names['os']}":
            names = names | {"os": None}
        if condition in own or condition.kind == "compiler":
            query = without(query, condition.text)
    answers = find(cache, spec_text(query), **names)
    return {each.configuration: each.spec_count for each in answers}


def without(query: SpecQuery, text: str) -> SpecQuery:
    """Return a query without one of its words."""
    words = [each for each in query.text.split() if parse_query(each) != parse_query(text)]
    if text.startswith("@"):
        words[0] = words[0].partition("@")[0]
    if text.startswith("%"):
        words = [each for each in words if not each.startswith("%")]
    return parse_query(" ".join(words))


@pytest.mark.slow
@given(texts(), scopes(), st.sets(st.integers(0, 9), max_size=3))
def test_what_is_left_is_what_find_finds(
    cache: sqlite3.Connection, text: str, names: dict[str, Any], left_out: set[int]
) -> None:
    """With any conditions left out the same configurations are left, with as many specs."""
    query = parse_query(text)
    candidates = Candidates(read_lookups(cache))
    misses = misses_of(candidates, conditions_by(cache, text, names))
    left_out = {place for place in left_out if place < len(misses.conditions)}

    fitting = misses.fitting(left_out)

    words = {candidates.configuration(row): count for row, count in fitting.items()}
    expected = found(cache, misses, query, names, left_out)
    assert sum(row.configurations for row in fitting) == len(expected)
    assert sum(words.values()) == sum(expected.values())
    if all(row.configurations == 1 for row in fitting):
        assert words == expected
    else:
        assert query.name is None and words.keys() <= expected.keys()
