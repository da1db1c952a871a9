"""query.selection: conditions over SQL, whatever the length of the lists between."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from spack_cache_db.query import selection as module
from spack_cache_db.query.asked import of_configurations
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.query.selection import (
    ANYWHERE,
    Scope,
    configurations_meeting,
    configurations_with_other,
)
from spack_cache_db.spack.parser import parse_query
from tests.conftest import Build
from tests.pagetexts import page, spec


def ids_of(
    conn: sqlite3.Connection, text: str, scope: Scope = ANYWHERE, **single: Any
) -> list[int]:
    """Return the configurations that are as a spec asks."""
    asked = of_configurations(parse_query(text))
    return configurations_meeting(conn, read_lookups(conn), asked, scope, single)


@pytest.mark.parametrize("text", ["*", "@1:", "@1: build_system=python_pip", "py-mpi4py@3:"])
def test_long_lists_find_what_short_ones_find(
    all_samples: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Lists that are too long for SQLite find the same, in the same order."""
    whole = ids_of(all_samples, text)
    monkeypatch.setattr(module, "IDS_AT_ONCE", 0)

    assert ids_of(all_samples, text) == whole != []


def test_a_scope_and_filters_narrow(all_samples: sqlite3.Connection) -> None:
    """The machine of a scope and the filters of one value hold together with what is asked."""
    every = ids_of(all_samples, "py-mpi4py")
    here = ids_of(all_samples, "py-mpi4py", Scope(os="ubuntu24.04"))
    there = ids_of(all_samples, "py-mpi4py", release=1)

    assert set(here) < set(every)
    assert here
    assert 0 < len(there) <= len(every)
    assert ids_of(all_samples, "nothing") == []


def test_other_values_of_a_variant(built: Build) -> None:
    """A configuration has another value if it has the variant, and not as asked."""
    variants = [["+x"], ["~x"], ["x=a,b"], ["+y"], []]
    conn = built(aa=page("aa", specs=[spec(at, variants=each) for at, each in enumerate(variants)]))

    def others(text: str) -> set[str]:
        (constraint,) = parse_query(text).variants
        ids = configurations_with_other(conn, read_lookups(conn), constraint)
        texts = "SELECT text FROM variant_sets JOIN configurations ON variants = variant_sets.id"
        return {
            conn.execute(f"{texts} WHERE configurations.id = ?", [each]).fetchone()[0]
            for each in ids
        }

    assert others("++x") == {"~x", "x=a,b"}
    assert others("x==a") == {"+x", "~x"}
    assert others("x==*") == others("++nothing") == set()
