"""The first page, and the page about the site."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from spack_cache_db.build import build
from spack_cache_db.query.connection import Lookups, read_lookups, select
from spack_cache_db.site.pages.home import load_about, load_home, newest_snapshot
from spack_cache_db.site.pages.spec import load_spec
from tests.indexes import index, node, record


def test_home_counts_everything(lookups: Lookups) -> None:
    """The totals on the first page are those of the file, and it starts with a release."""
    page = load_home(lookups)

    assert (page.totals.packages, page.totals.releases) == (6, 4)
    assert [name for name, _ in page.over_time] == ["develop-2025-04-13", "develop-2025-04-20"]


def test_the_first_page_and_a_spec_page_name_one_release(lookups: Lookups) -> None:
    """The release to install from is the first one that lists the binary, on both pages."""
    install = load_home(lookups).install
    assert install is not None
    sql = "SELECT hash FROM build_listings WHERE release = :release"
    hashes = [dag_hash for (dag_hash,) in select(lookups.conn, sql, release=install.release)]
    assert hashes
    for dag_hash in hashes:
        page = load_spec(lookups, dag_hash)
        assert page is not None and page.install is not None
        assert page.install.release == install.release


def test_what_is_no_binary_is_not_counted(real_index: sqlite3.Connection) -> None:
    """Externals of an index, and packages that only they have, are in no total and no list."""
    page = load_home(read_lookups(real_index))

    assert (page.totals.packages, page.totals.specs) == (226, 883)
    assert min(count for _, count in page.largest) > 0
    assert sum(count for _, count in page.families) == 883


def test_of_pages(lookups: Lookups) -> None:
    """Totals, dates and sources are those of the file's own tables."""
    page = load_about(lookups)

    assert (page.totals.packages, page.totals.specs, page.totals.releases) == (6, 23, 4)
    assert (page.first_snapshot, page.newest_snapshot) == ("2025-04-13", "2025-04-20")
    assert sum(count for _, count in page.pages) == len(page.pages) * 15
    assert page.mirrors == ()
    assert page.example is not None and page.example.name == "develop"


def test_of_an_index(tmp_path: Path) -> None:
    """An index is named with its release and stack; where there is no snapshot, there is no day."""
    place = tmp_path / "v1.0" / "e4s" / "build_cache" / "index.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(index(record(node("zlib"))))
    build([str(tmp_path / "v1.0")], tmp_path / "out.db", release="v1.0", stack="e4s")
    conn = sqlite3.connect(tmp_path / "out.db")
    page = load_about(read_lookups(conn))
    newest = newest_snapshot(read_lookups(conn))
    conn.close()

    assert [(each.release, each.stack, each.spec_count) for each in page.mirrors] == [
        ("v1.0", "e4s", 1)
    ]
    assert page.pages == ()
    assert page.newest_snapshot is newest is None
