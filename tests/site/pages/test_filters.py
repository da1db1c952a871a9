"""site.pages.filters: what a package page is narrowed to, and how that reads in an address."""

from __future__ import annotations

import pytest

from spack_cache_db.site.pages.filters import LAST_PAGE, Filters, page_number


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


def test_opening_a_row_keeps_the_page() -> None:
    """The hashes of one row are shown where the row stands, and a new filter closes them."""
    filters = Filters(target="zen3", page=4).opening("abc")

    assert filters.address() == "?target=zen3&page=4&open=abc"
    assert Filters.parse(filters.pairs()) == filters
    assert filters.with_value("target", "zen4").opened is None
    assert filters.at_page(5).opened is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("0", 1),
        ("007", 7),
        ("0" * 5_000 + "7", 7),
        ("9" * 5_000, LAST_PAGE),
        ("1" + "0" * 9, LAST_PAGE),
        ("-7", 1),
        ("1e3", 1),
        ("٣", 1),
        ("", 1),
    ],
)
def test_every_text_is_a_page_number(text: str, number: int) -> None:
    """A number has as many digits as it likes; what is none leads to the first page."""
    assert page_number([("page", text)]) == number
