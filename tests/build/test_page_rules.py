"""build.page_rules: one page for a package in a release, one package for a spec there."""

from __future__ import annotations

from itertools import permutations

import pytest

from spack_cache_db.build.arrays import numbers
from spack_cache_db.build.listings import Listings
from spack_cache_db.build.page_rules import kept_pages
from spack_cache_db.sources.columns import Document, PageFacts

HASHES = ["a", "b", "c"]


def page(path: str, package: str = "zlib", release: str = "develop", sha256: str = "0") -> Document:
    """Return a page."""
    return Document(f"in/{path}", path, sha256, release, (), PageFacts(package, "A"))


def listings(*rows: tuple[int, int, int]) -> Listings:
    """Return listings: (document, spec, configuration) of each."""
    whole = [(*row, 0, 0, 0) for row in rows]
    return Listings(*(numbers(row[at] for row in whole) for at in range(6)))


def test_a_page_that_is_there_twice_is_kept_once() -> None:
    """The same bytes: the first by path."""
    documents = [page("b"), page("a"), page("c", "zstd")]
    assert kept_pages(documents, listings(), HASHES) == ([1, 2], [])


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_pages_that_contradict_each_other_are_told(order: tuple[int, ...]) -> None:
    """Whichever comes first, the first by path is kept, and the message names both."""
    pages = [page("a", sha256="1"), page("b", sha256="2"), page("c", sha256="1")]
    documents = [pages[at] for at in order]
    kept, faults = kept_pages(documents, listings(), HASHES)
    assert [documents[at].path for at in kept] == ["a"]
    assert [*map(str, faults)] == [
        "in/b: another page of zlib in develop than in/a, expected one page per package and release"
    ]


def test_a_spec_is_of_one_package_in_a_release() -> None:
    """The later package by name is refused; the message names the first such spec."""
    documents = [page("a", "zstd"), page("b", "zlib"), page("c", "zlib", "v0.20")]
    found = listings((0, 0, 5), (0, 1, 5), (1, 0, 6), (1, 1, 6), (2, 0, 5))
    kept, faults = kept_pages(documents, found, HASHES)
    assert kept == [1, 2]
    assert [*map(str, faults)] == [
        "in/a: lists the spec a, which in/b lists in the same release; expected one package"
    ]


def test_a_refused_page_refuses_no_other() -> None:
    """Its specs are nobody's."""
    documents = [page("a", "p"), page("b", "q"), page("c", "r")]
    found = listings((0, 0, 1), (1, 0, 2), (1, 1, 2), (2, 1, 3))
    kept, faults = kept_pages(documents, found, HASHES)
    assert (kept, len(faults)) == ([0, 2], 1)


def test_the_rules_are_for_pages_alone() -> None:
    """Other documents may say of a release whatever they like."""
    other = Document("in/x", "x", "1", "develop")
    documents = [other, page("a"), other._replace(sha256="2")]
    found = listings((0, 0, 1), (1, 0, 2), (2, 0, 3))
    assert kept_pages(documents, found, HASHES) == ([1], [])
