"""site.pages.home: the first page."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.lookups import Lookups, read_lookups
from spack_cache_db.site.pages.home import load_home


def test_home_counts_everything(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """The totals on the first page are those of the file, and it starts with a release."""
    page = load_home(conn, lookups)

    assert (page.totals.packages, page.totals.releases) == (6, 4)
    assert page.install is not None and page.install.release == "v0.23.1"
    assert [name for name, _ in page.over_time] == ["develop-2025-04-13", "develop-2025-04-20"]


def test_what_is_no_binary_is_not_counted(real_index: sqlite3.Connection) -> None:
    """Externals of an index, and packages that only they have, are in no total and no list."""
    page = load_home(real_index, read_lookups(real_index))

    assert (page.totals.packages, page.totals.specs) == (226, 883)
    assert min(count for _, count in page.largest) > 0
    assert sum(count for _, count in page.families) == 883
