"""The small pure parts: filters, ranges, install commands, charts, row limits."""

from __future__ import annotations

import sqlite3

import pytest

from spack_cache_db.query.install import install_spec, mirror_command, shortest_prefix
from spack_cache_db.site.charts import bars, columns
from spack_cache_db.site.data_links import package_links
from spack_cache_db.site.download import choose_part
from spack_cache_db.site.filters import Filters
from spack_cache_db.site.limits import bounded_rows

ETAG = '"sum"'


def test_filters_survive_the_address() -> None:
    """What an address says is what the address of the same filters says."""
    pairs = [("release", "develop"), ("variant", "+mpi"), ("variant", "~cxx"), ("hide", "os")]

    assert Filters.parse(pairs).pairs() == pairs


def test_filters_ignore_what_they_do_not_know() -> None:
    """Unknown, empty and senseless parts of an address change nothing."""
    pairs = [("x", "1"), ("target", ""), ("page", "-3"), ("hide", "everything"), ("_sql", "drop")]

    assert Filters.parse(pairs) == Filters()


def test_a_new_filter_starts_at_the_first_page() -> None:
    """Narrowing or widening the rows leads back to page one."""
    filters = Filters(variants=("+mpi",), page=4)

    assert filters.with_value("target", "zen3").page == 1
    assert filters.without("variant", "+mpi") == Filters()


def test_data_links_carry_the_filters() -> None:
    """The data of a filtered page is filtered the same way."""
    links = package_links("spack-cache", "hdf5", Filters(release="develop", target="zen3"))

    assert links.json == (
        "/spack-cache/build_listings.json?package=hdf5&release=develop&target=zen3"
        "&_shape=array&_size=max"
    )


@pytest.mark.parametrize(
    ("headers", "status", "start", "length"),
    [
        ({}, 200, 0, 100),
        ({"range": "bytes=0-9"}, 206, 0, 10),
        ({"range": "bytes=90-"}, 206, 90, 10),
        ({"range": "bytes=-5"}, 206, 95, 5),
        ({"range": "bytes=-500"}, 206, 0, 100),
        ({"range": "bytes=50-500"}, 206, 50, 50),
        ({"range": "bytes=100-"}, 416, 0, 0),
        ({"range": "bytes=-0"}, 416, 0, 0),
        ({"range": "bytes=9-5"}, 200, 0, 100),
        ({"range": "bytes=-"}, 200, 0, 100),
        ({"range": "bytes=0-1,5-6"}, 200, 0, 100),
        ({"range": "lines=0-1"}, 200, 0, 100),
        ({"range": "bytes=0-9", "if-range": ETAG}, 206, 0, 10),
        ({"range": "bytes=0-9", "if-range": '"old"'}, 200, 0, 100),
        ({"if-none-match": ETAG}, 304, 0, 0),
        ({"if-none-match": '"old", W/"sum"'}, 304, 0, 0),
    ],
)
def test_chooses_the_part_of_a_file(
    headers: dict[str, str], status: int, start: int, length: int
) -> None:
    """Ranges, conditions and nonsense in a request lead to the answer that HTTP wants."""
    part = choose_part(100, ETAG, headers)

    assert (part.status, part.start, part.length) == (status, start, length)


def test_commands_are_safe_to_paste() -> None:
    """A name from a page cannot smuggle a second command into the shell."""
    assert mirror_command("x; rm -rf ~") == (
        "spack mirror add 'x; rm -rf ~' 'https://binaries.spack.io/x; rm -rf ~'"
    )


def test_mirror_follows_the_tarball() -> None:
    """Where a page gave a tarball, the mirror is where that tarball lies."""
    tarball = "https://binaries.spack.io/releases/v0.18/build_cache/a/b.spack"
    install = install_spec("hdf5", "abcdefg", "v0.18", tarball)

    assert install.mirror == "spack mirror add v0.18 https://binaries.spack.io/releases/v0.18"
    assert install.install == "spack install hdf5/abcdefg"


@pytest.mark.parametrize(
    ("neighbours", "expected"),
    [((), "abcdefg"), (("abcdefz",), "abcdefg"), (("abcdefgz", "abcdefgha"), "abcdefghi")],
)
def test_prefix_is_as_short_as_it_can_be(neighbours: tuple[str, ...], expected: str) -> None:
    """The hash in a command has 7 characters, more only where 7 mean two specs."""
    assert shortest_prefix("abcdefghij", neighbours) == expected


def test_charts_fill_their_space() -> None:
    """The largest value fills the chart, and an empty one divides by nothing."""
    assert [bar.share for bar in bars([("a", 4), ("b", 1)])] == [100.0, 25.0]
    assert [column.height for column in columns([("a", 4), ("b", 1)]).columns] == [120.0, 30.0]
    assert columns([]).columns == ()
    assert bars([("a", 0)])[0].share == 0.0


def test_rows_are_bounded_by_result() -> None:
    """A result over the limit stops with a reason; the next one starts from nothing."""
    conn = sqlite3.connect(":memory:")
    conn.row_factory = bounded_rows(most=1000)

    assert len(conn.execute("SELECT zeroblob(900)").fetchall()) == 1
    assert len(conn.execute("SELECT zeroblob(900)").fetchall()) == 1
    with pytest.raises(sqlite3.OperationalError, match="larger than"):
        conn.execute("SELECT zeroblob(600) UNION ALL SELECT zeroblob(600)").fetchall()
