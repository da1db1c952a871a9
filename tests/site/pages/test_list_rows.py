"""site.pages.list_rows: the rows of a list, in one piece."""

from __future__ import annotations

import sqlite3
import zlib
from dataclasses import replace

from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.pages.list_rows import list_rows
from spack_cache_db.site.pages.lists import Asked, load_packages, load_releases
from tests.site.cache import HOSTILE


def test_a_row_says_all(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """A row links to its page, narrowed as the list is, and what is missing is empty."""
    packages = load_packages(conn, lookups, Asked(q="netcdf", release="develop"))
    branch = load_releases(lookups, Asked(kind="branch"))

    assert list_rows(packages, "/package/") == (
        '<tr><th scope="row"><a href="/package/netcdf-c?release=develop">netcdf-c</a></th>'
        '<td>4.9.2</td><td class="count minor">1</td><td class="count">1</td>'
        '<td class="count minor">1</td><td class="minor"></td></tr>\n'
    )
    assert '<td class="minor"></td>' in list_rows(branch, "/release/")


def test_words_are_text(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """A name or a version that is a script is shown, not run."""
    page = load_packages(conn, lookups, Asked())
    row = {**page.rows[0], "name": HOSTILE, "version": HOSTILE}

    body = list_rows(replace(page, rows=(row,)), "/package/")

    assert "<script" not in body
    assert body.count("&lt;script&gt;") == 2


def test_a_thousand_packages_are_few_bytes(conn: sqlite3.Connection, lookups: Lookups) -> None:
    """1,400 packages with names and numbers of their own fit into 60 kB, compressed."""
    page = load_packages(conn, lookups, Asked())
    many = tuple(
        {
            **page.rows[0],
            "name": f"py-{place * 7919 % 104729:x}-{place}",
            "version": f"{place % 23}.{place * 31 % 101}.{place % 7}",
            "configurations": place * 37 % 500,
            "specs": place * 7919 % 5000,
        }
        for place in range(1400)
    )

    body = list_rows(replace(page, rows=many), "/package/")

    assert len(zlib.compress(body.encode(), 6)) < 50_000
