"""site.spec: the page of one spec."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.lookups import Lookups, read_lookups
from spack_cache_db.site.spec import Contradiction, load_spec
from tests import pagetexts
from tests.conftest import Build
from tests.pagetexts import page, spec
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
    assert page.install is not None
    assert page.install.mirror == "spack mirror add develop https://binaries.spack.io/develop"


def test_command_hash_is_unambiguous(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """Where two hashes share 7 characters the install command uses 8."""
    page = load_spec(conn, lookups, "aaaaaaa" + "b" * 25)

    assert page is not None and page.install is not None
    assert page.install.install == "spack install zlib/aaaaaaab"


def test_a_contradiction_is_told(built: Build) -> None:
    """The page says which release shows the hash otherwise, and in what."""
    conn = built(
        a=page("foo", "develop", [spec(1, os="ubuntu22.04", variants=[])]),
        b=page("foo", "v1.0", [spec(1, os="rhel8", variants=["+x", "~y"])]),
        c=page("foo", "v0.9", [spec(1, os="ubuntu22.04", variants=[])]),
    )

    found = load_spec(conn, read_lookups(conn), pagetexts.spec_hash(1))

    assert found is not None
    assert found.configuration.os == "ubuntu22.04"
    assert found.contradictions == (
        Contradiction("v1.0", (("os", "rhel8", "ubuntu22.04"), ("variants", "+x ~y", "none"))),
    )
    assert [each.release for each in found.listings] == ["develop", "v1.0", "v0.9"]


def test_other_specs_stand_with_the_current_first(built: Build) -> None:
    """What a branch lists comes before what only an old snapshot lists, though that has a day."""
    conn = built(
        a=page("foo", "develop", [spec(1), spec(9)]),
        b=page("foo", "develop-2025-01-05", [spec(2), spec(1)]),
    )

    found = load_spec(conn, read_lookups(conn), pagetexts.spec_hash(1))

    assert found is not None
    assert [each.hash for each in found.others] == [*map(pagetexts.spec_hash, (9, 2))]


def test_a_spec_that_no_release_lists(built: Build) -> None:
    """It has a page, is installed from nowhere, and is no other spec of its configuration."""
    conn = built(a=page("foo", "develop", [spec(1)]))
    conn.execute(
        "INSERT INTO specs SELECT 2, ?, configuration, stacks, 0, NULL, NULL FROM specs",
        [pagetexts.spec_hash(2)],
    )
    lookups = read_lookups(conn)

    unlisted = load_spec(conn, lookups, pagetexts.spec_hash(2))
    listed = load_spec(conn, lookups, pagetexts.spec_hash(1))

    assert unlisted is not None and listed is not None
    assert (unlisted.install, unlisted.listings, unlisted.other_count) == (None, (), 1)
    assert (listed.other_count, listed.others) == (0, ())
