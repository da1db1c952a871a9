"""query.conditions: a query → ids, whatever the size of the lists between."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query import conditions as module
from spack_cache_db.query.conditions import asked_of, configuration_ids, package_id
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.spack.query import parse_query


def ids_of(conn: sqlite3.Connection, text: str) -> list[int]:
    """Return the configurations that satisfy a spec."""
    return configuration_ids(conn, read_lookups(conn), asked_of(conn, parse_query(text)))


@pytest.mark.parametrize("text", ["*", "@1:", "@1: build_system=python_pip", "py-mpi4py@3:"])
def test_pieces_make_the_whole(
    all_samples: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Lists that go in by pieces find what they find at once, in the same order."""
    whole = ids_of(all_samples, text)
    monkeypatch.setattr(module, "IDS_AT_ONCE", 2)

    assert ids_of(all_samples, text) == whole != []


def test_the_order_is_that_of_names_and_versions(all_samples: sqlite3.Connection) -> None:
    """Packages stand by name, their versions newest first, though only ids are compared."""
    by_name = """
        SELECT configurations.id FROM configurations
        JOIN packages ON packages.id = configurations.package
        JOIN versions ON versions.id = configurations.version
        ORDER BY packages.name, versions.position DESC, configurations.id
    """

    assert ids_of(all_samples, "*") == [row[0] for row in all_samples.execute(by_name)]


def test_a_package_by_name(samples: sqlite3.Connection) -> None:
    """A name that the file does not have is None, and finds nothing."""
    assert package_id(samples, "py-mpi4py") is not None
    assert package_id(samples, "nothing") is None
    assert ids_of(samples, "nothing") == []
