"""The small pure parts: filters, install commands, charts."""

from __future__ import annotations

import pytest

from spack_cache_db.query.install import install_spec, mirror_command, shortest_prefix
from spack_cache_db.site.charts import bars, columns
from spack_cache_db.site.data_links import package_links
from spack_cache_db.site.filters import Filters


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
