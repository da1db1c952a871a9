"""site.pages.configurations: the lines of the table of configurations."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.pages.filters import Filters
from tests.site.cache import MPI, spec_hash
from tests.site.pages.test_package import hdf5


def test_hashes_are_those_of_the_chosen_release(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """A hash offered under a release filter is listed in that release."""
    page = hdf5(conn, lookups, Filters(release="develop-2025-04-20", target="zen3"))

    assert [row.hashes for row in page.rows] == [
        (spec_hash(MPI.replace("1.14.5 x86_64_v3", "1.14.10 zen3")),)
    ]


def test_an_opened_row_shows_every_hash(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """A row has its first hash, and once it is opened all of them; the others stay closed."""
    closed = hdf5(conn, lookups, Filters(release="v0.23.1")).rows[0]
    opened = hdf5(conn, lookups, Filters(release="v0.23.1").opening(closed.hashes[0])).rows[0]

    assert len(closed.hashes) == 1
    assert len(opened.hashes) == opened.spec_count == closed.spec_count == 7
    assert opened.hashes[0] == closed.hashes[0]
    assert (closed.is_open, opened.is_open) == (False, True)
    assert not any(row.is_open for row in hdf5(conn, lookups, Filters().opening("zzz")).rows)
