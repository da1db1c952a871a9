"""site.pages.narrowing: what narrows an answer, in an address and in a file."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query.find import UnknownNameError
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.pages.narrowing import EVERYWHERE, Narrowing


def test_it_survives_the_address() -> None:
    """What an address says is what the same narrowing says; the first of a name counts."""
    pairs = [("release", "develop"), ("host", "zen3")]

    assert Narrowing.parse([*pairs, ("host", "zen4"), ("q", "x")]).pairs == pairs
    assert Narrowing.parse(pairs).narrowing == "&release=develop&host=zen3"
    assert Narrowing.parse([("release", ""), ("stack", " ")]) == EVERYWHERE
    assert EVERYWHERE.narrowing == ""


def test_names_that_are_not_known_are_errors(lookups: Lookups) -> None:
    """A release, a stack or a machine that is not there is told, and not taken for any."""
    assert EVERYWHERE.scope(lookups) == Narrowing(release=None).scope(lookups)
    for narrowing in (Narrowing(release="v9"), Narrowing(stack="root"), Narrowing(host="zen99")):
        with pytest.raises(UnknownNameError):
            narrowing.scope(lookups)


def test_what_it_is_in_a_file(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """Names become the ids of the file."""
    scope = Narrowing("develop", "e4s", "zen3").scope(lookups)
    release = conn.execute("SELECT id FROM releases WHERE name = 'develop'").fetchone()[0]
    stack = conn.execute("SELECT id FROM stacks WHERE name = 'e4s'").fetchone()[0]

    assert (scope.release, scope.stack, scope.host) == (release, stack, "zen3")
