"""site.configurations: the lines of the table of configurations."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.filters import Filters
from tests.site.cache import MPI, spec_hash
from tests.site.test_package import hdf5


def test_hashes_are_those_of_the_chosen_release(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """A hash offered under a release filter is listed in that release."""
    page = hdf5(conn, lookups, Filters(release="develop-2025-04-20", target="zen3"))

    assert [row.hashes for row in page.rows] == [
        (spec_hash(MPI.replace("1.14.5 x86_64_v3", "1.14.10 zen3")),)
    ]
