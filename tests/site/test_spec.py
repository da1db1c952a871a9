"""site.spec: the page of one spec."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.spec import load_spec
from tests.site.cache import MPI, spec_hash


def test_a_spec_knows_its_listings_and_what_shares_its_configuration(
    conn: sqlite3.Connection, lookups: Lookups
) -> None:
    """A spec's page has every release that lists it and every other hash of its configuration."""
    page = load_spec(conn, lookups, spec_hash(MPI))

    assert page is not None
    assert [each.release for each in page.listings] == [
        "develop",
        "v0.23.1",
        "develop-2025-04-20",
        "develop-2025-04-13",
    ]
    assert (page.other_count, len(page.others)) == (6, 6)
    assert page.stacks == ("e4s", "hep")
    assert page.install.mirror == "spack mirror add develop https://binaries.spack.io/develop"


def test_command_hash_is_unambiguous(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """Where two hashes share 7 characters the install command uses 8."""
    page = load_spec(conn, lookups, "aaaaaaa" + "b" * 25)

    assert page is not None
    assert page.install.install == "spack install zlib/aaaaaaab"
