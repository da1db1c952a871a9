"""query.why_not.reasons: what excludes everything, held against `find` without each condition."""

from __future__ import annotations

import sqlite3
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given

from spack_cache_db.query.conditions import ANYWHERE, Scope, asked_of
from spack_cache_db.query.find import find
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.query.why_not.candidates import Candidates
from spack_cache_db.query.why_not.misses import misses_of
from spack_cache_db.query.why_not.reasons import WhyNot, close_names, why_not
from spack_cache_db.spack.parser import parse_query
from tests.query.why_not.test_misses import cache, found, scope_by, scopes, texts

__all__ = ["cache"]


def explained(conn: sqlite3.Connection, text: str, scope: Scope = ANYWHERE) -> WhyNot:
    """Return why there is no answer."""
    return why_not(conn, read_lookups(conn), parse_query(text), scope)


@pytest.mark.slow
@given(texts(), scopes())
def test_what_is_found_without_conditions(
    cache: sqlite3.Connection, text: str, names: dict[str, str | None]
) -> None:
    """Each condition, or else pair, without which something is found is named with its count."""
    query, scope = parse_query(text), scope_by(cache, names)
    lookups = read_lookups(cache)
    misses = misses_of(Candidates(cache, lookups), asked_of(cache, query), scope)
    if found(cache, misses, query, scope, set()):
        return
    places = range(len(misses.conditions))
    expected: dict[tuple[str, ...], int] = {}
    for size in (1, 2):
        for pair in combinations(places, size):
            left = len(found(cache, misses, query, scope, {*pair}))
            if left:
                expected[tuple(misses.conditions[place].text for place in pair)] = left
        if expected:
            break

    why = why_not(cache, lookups, query, scope)

    told = {tuple(cond.text for cond in each.left_out): each.configurations for each in why.without}
    assert told == expected
    for each in why.without:
        if scope == ANYWHERE:
            assert find(cache, each.spec)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "py-mpi4py target=zen4",
            ["without target=zen4: 7 configurations; x86_64_v3 runs on zen4: ask for target=:zen4"],
        ),
        (
            "py-mpi4py@99",
            [
                "no version 99 of py-mpi4py: newest 4.0.1",
                "without @99: 7 configurations",
            ],
        ),
        (
            "py-mpi4py@4 +cuda",
            ["without +cuda: 6 configurations; none has a variant cuda"],
        ),
        (
            "py-mpi4py@3.1 os=sequoia",
            [
                "without @3.1: 1 configuration; newest 4.0.1",
                "without os=sequoia: 1 configuration; there is ubuntu20.04",
            ],
        ),
        (
            "py-mpi4py@99 +cuda ~rocm os=sequoia",
            [
                "no version 99 of py-mpi4py: newest 4.0.1",
                "nearest is py-mpi4py@4.0.1 apple-clang@16.0.0 sequoia aarch64, "
                "which misses @99, +cuda, ~rocm",
            ],
        ),
        ("mpi4py", ["no package here is called 'mpi4py'; close: py-mpi4py"]),
        ("zzzz", ["no package here is called 'zzzz'"]),
    ],
)
def test_sentences(samples: sqlite3.Connection, text: str, sentences: list[str]) -> None:
    """The counts without a condition are told, and what there is in its place."""
    assert [*explained(samples, text).sentences()] == sentences


def test_the_spec_without_a_condition_can_be_typed(samples_file: Path) -> None:
    """Each way out has the spec to type, which finds as many configurations as it says."""
    with sqlite3.connect(samples_file) as conn:
        (without,) = explained(conn, "py-mpi4py@4: target=zen4 os=ubuntu22.04").without

        assert without.spec == "py-mpi4py@4: os=ubuntu22.04"
        assert len(find(conn, without.spec)) == without.configurations
        assert without.nearest == find(conn, without.spec)[0].configuration


def test_close_names() -> None:
    """Names that are alike come first, then those that have the name as a part."""
    known = ["py-torch", "py-torchvision", "torque", "zlib", "zlib-ng"]

    assert close_names("zlibb", known) == ("zlib",)
    assert close_names("torch", known)[-2:] == ("py-torch", "py-torchvision")
    assert close_names("zz", known) == ()


def test_many_conditions_take_no_longer(samples: sqlite3.Connection) -> None:
    """A spec of hundreds of conditions is told what is nearest, without trying all pairs."""
    text = "py-mpi4py " + " ".join(f"+x{number}" for number in range(500))
    why = explained(samples, text)

    assert why.without == ()
    assert why.nearest is not None and len(why.nearest[1]) == 500
