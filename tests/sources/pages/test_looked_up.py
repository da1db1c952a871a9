"""sources.pages.listings: a listing that is looked up by its bytes is what decoding the
whole page gives.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.errors import LineFault
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.pages import listings
from spack_cache_db.sources.pages.json_values import cut_details, decode_piece
from spack_cache_db.sources.pages.page import Page, parse_page
from spack_cache_db.sources.pages.reader import PageReader
from spack_cache_db.sources.writer import Columns, Writer
from tests.examples import examples
from tests.pagetexts import page, spec

Rows = list[tuple[Any, ...]]


def page_with(details: bytes, package: str = "zlib") -> Page:
    """Return a page with any text as its `spec_details`."""
    parsed = parse_page(RawFile("a.md", "a.md", page(package)))
    return parsed._replace(details=details)


def read(pages: list[Page]) -> tuple[Rows, list[str]]:
    """Return the listings of pages that are read one after the other, and the faults of
    those that are refused.
    """
    writer = Writer()
    reader = PageReader(writer)
    faults = []
    for number, one in enumerate(pages):
        document = one.document._replace(path=str(number))
        try:
            reader.add(one._replace(document=document))
        except LineFault as fault:
            faults.append(f"{number}: {fault.line}: {fault.message}")
    reader.finish()
    return rows_of(writer.columns), faults


def rows_of(columns: Columns) -> Rows:
    """Return the listings with values instead of numbers, in the order of pages."""
    table = columns.tables["listings"]
    things = columns.things
    rows = []
    for row in zip(*table.values(), strict=True):
        document, dag_hash, configuration, stacks, size, tarball = row
        rows.append(
            (
                value_of(columns.documents, document),
                value_of(things["hashes"], dag_hash),
                value_of(things["configurations"], configuration),
                value_of(things["stack_sets"], stacks),
                value_of(things["sizes"], size),
                value_of(things["tarballs"], tarball),
            )
        )
    return rows


def value_of(values: Sequence[Any], number: int) -> Any:
    """Return the value with a number; 0 is none."""
    return values[number - 1] if number else None


def read_whole(pages: list[Page]) -> tuple[Rows, list[str]]:
    """Return the same, but let no listing be looked up."""

    def refuse(text: bytes) -> list[bytes]:
        raise ValueError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listings, "cut_details", refuse)
        return read(pages)


TEXTS = st.sampled_from(
    ["a", "-", "7", "}, {", '"}, {"', "{", "}", '"', "\\", "}]", "[{", "é", "a" * 300]
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "size": TEXTS,
        "os": TEXTS,
        "stacks": st.lists(TEXTS, max_size=2),
        "variants": st.lists(TEXTS | st.just("+x"), max_size=3),
        "versions": st.lists(TEXTS, min_size=1, max_size=2),
        "tarball": st.sampled_from(["https://a/b", "=", "https://a/}, {"]),
        "other": TEXTS,
    },
)
LISTINGS = st.builds(
    lambda number, changes: spec(number, **changes), st.integers(1, 4), CHANGES
)
"""Listings, some of which are faulty."""

SPELLINGS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"separators": (", ", ": ")},
        {"separators": (", ", ": "), "sort_keys": True},
        {"separators": (",", ":")},
        {"separators": (", ", ": "), "ensure_ascii": False},
        {"indent": 1},
    ]
)
MARKS = st.sampled_from(
    [b"}, {", b"{", b"}", b"[", b"]", b"}]", b",", b" ", b'"', b"\\", b"\\u007b", b"0"]
)


@st.composite
def details(draw: st.DrawFn) -> bytes:
    """Draw the text of `spec_details`, as the site writes it or broken."""
    drawn = draw(st.lists(LISTINGS, max_size=4))
    text = json.dumps(drawn, **draw(SPELLINGS)).encode()
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        position = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from([0, 0, 1, 3]))
        text = text[:position] + draw(MARKS) + text[position + length :]
    return text.strip()


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(details(), st.sampled_from(["zlib", "hdf5"])), max_size=4))
def test_looked_up_is_as_if_decoded(drawn: list[tuple[bytes, str]]) -> None:
    """Of any pages in any order: the same rows and the same faults."""
    pages = [page_with(text, package) for text, package in drawn]
    assert read(pages + pages) == read_whole(pages + pages)


@pytest.mark.parametrize(
    "between",
    ["}{", "} {", "}\n{", "},{", "} , {", "}, \n{", "},, {", "}], [{", "}]{", "}, [{"],
)
def test_anything_else_between_listings(between: str) -> None:
    """Is read if it is JSON, and a fault if it is not, also if the listings are
    known.
    """
    known = json.dumps([spec(1), spec(2)])
    other = known.replace("}, {", between)

    assert other != known

    pages = [page_with(known.encode()), page_with(other.encode())]
    rows, faults = read(pages)
    try:
        expected = 4 if json.loads(other) == json.loads(known) else 2
    except ValueError:
        expected = 2

    assert len(rows) == expected
    assert len(faults) == (expected == 2)
    assert (rows, faults) == read_whole(pages)


def test_a_repeated_listing_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each listing of a package is decoded once, however many pages have it."""
    decoded = []

    def noted(piece: bytes) -> Any:
        decoded.append(piece)
        return decode_piece(piece)

    monkeypatch.setattr(listings, "decode_piece", noted)
    one = spec(1)
    two = spec(2)
    pages = []
    for specs in ([one], [one, two], [two, one], [one]):
        pages.append(page_with(json.dumps(specs).encode()))
    rows, faults = read(pages)
    assert (len(rows), faults) == (6, [])
    assert len(decoded) == 2
    # Another package has another configuration.
    read([*pages, page_with(json.dumps([one]).encode(), "hdf5")])
    assert len(decoded) == 2 + 3


def test_pieces_are_the_text() -> None:
    """Whatever is between the braces, and the last piece is like the others."""
    assert cut_details(b'[{"a": 1}, {"b": 2}]') == [b'"a": 1}, ', b'"b": 2}, ']
    assert cut_details(b'[{"a": "{"}]') == [b'"a": "', b'"}, ']
    for text in (b"[]", b"{}", b"", b'[{"a": 1}', b' [{"a": 1}]'):
        with pytest.raises(ValueError, match="written in another way"):
            cut_details(text)
