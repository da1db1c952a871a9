"""site.groups: the pages of a release and of a stack."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.groups import load_release, load_stack


def test_snapshots_know_their_neighbours(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """A snapshot leads to the one before and after; a branch has neither."""
    earlier = load_release(conn, lookups, "develop-2025-04-13")
    later = load_release(conn, lookups, "develop-2025-04-20")
    branch = load_release(conn, lookups, "develop")

    assert earlier is not None and (earlier.before, earlier.after) == (None, "develop-2025-04-20")
    assert later is not None and (later.before, later.after) == ("develop-2025-04-13", None)
    assert branch is not None and (branch.before, branch.after) == (None, None)


def test_stack_counts_each_spec_once(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """A stack's packages are counted over all releases, each spec once."""
    page = load_stack(conn, lookups, "hep")

    assert page is not None
    assert page.packages == (("hdf5", 7),)
    assert len(page.releases) == 4


def test_root_has_no_page(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """The top-level index is in the file, but is shown as no stack."""
    assert load_stack(conn, lookups, "root") is None
