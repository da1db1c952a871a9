"""sources.pages.page_reader: pages read by the texts of their listings say what decoding says."""

from __future__ import annotations

import json
import random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spack_cache_db.errors import InputError
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import Columns, Writer
from spack_cache_db.sources.pages.page_format import Page, SpecDetail
from spack_cache_db.sources.pages.page_parser import parse_page
from spack_cache_db.sources.pages.page_reader import ListingTexts, PageReader
from tests.pagetexts import meta_of, page_of, spec, spec_hash

MIRROR = "https://example.org/v1"
ARCH = "linux-ubuntu24.04-x86_64_v3"


def url(number: int, mirror: str = MIRROR, version: str = "1.0") -> str:
    """Return the URL that the layout of mirrors gives to a spec."""
    folder = f"{ARCH}/gcc-13.2.0/zlib-{version}"
    return (
        f"{mirror}/build_cache/{folder}/{ARCH}-gcc-13.2.0-zlib-{version}-{spec_hash(number)}.spack"
    )


def sorted_keys(listed: dict[str, Any]) -> dict[str, Any]:
    """Return a listing as most pages write it."""
    return dict(sorted(listed.items()))


def insertion_order(listed: dict[str, Any]) -> dict[str, Any]:
    """Return a listing with its hash first, as the oldest pages write it."""
    return {"hash": listed["hash"]} | listed


ORDERS = (sorted_keys, insertion_order)


CUTS = ("", " ", '"', "}, {", "}", '"hash": "', ",", "]", "\\", "\x01")
ODD: tuple[dict[str, Any], ...] = (
    {"variants": ['a"hash": "b']},
    {"variants": ["a}, {b"]},
    {"variants": [f"x={spec_hash(1)}", f"y={spec_hash(2)}"]},
    {"os": "\u00e9"},
    {"os": 'a\\"b'},
    {"size": "\x7f"},
    {"stacks": ["root", "root"]},
    {"versions": ["1", "2"]},
    {"versions": []},
    {"hash": "a" * 31},
    {"hash": "A" * 32},
    {"hash": "a" * 15 + " " + "a" * 16},
    {"more": 1},
    {"os": None},
    {"tarball": f"{MIRROR}/build_cache/{spec_hash(1)}"},
    {"tarball": f"{MIRROR}/build_cache/x"},
    {"tarball": "x"},
    {"tarball": f"{spec_hash(1)}/build_cache/{spec_hash(1)}"},
)


@st.composite
def specs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw what a page lists: few configurations, hashes that sometimes stand twice."""
    numbers = draw(st.lists(st.integers(0, 40), max_size=6, unique=draw(st.integers(0, 9)) > 0))
    with_urls = draw(st.sampled_from([None, MIRROR, "", "https://example.org/releases/v1"]))
    order = draw(st.sampled_from(ORDERS))
    listed = []
    for number in numbers:
        version = draw(st.sampled_from(["1.0", "1.1"]))
        each = spec(number, versions=[version], stacks=draw(st.sampled_from([["root"], ["a"]])))
        if with_urls is not None:
            each["tarball"] = url(number, with_urls, version)
        if draw(st.integers(0, 15)) == 0:
            each |= draw(st.sampled_from(ODD))
        listed.append(order(each))
    return listed


@st.composite
def pages(draw: st.DrawFn) -> bytes:
    """Draw a page as sources write it, or with a few changed bytes."""
    listed = draw(specs())
    sound = [each for each in listed if each["versions"]]
    written = json.dumps(listed, ensure_ascii=draw(st.booleans()))
    if draw(st.integers(0, 3)) == 0 and written:
        at = draw(st.integers(0, len(written)))
        cut = draw(
            st.sampled_from(["", " ", '"', "}, {", "}", '"hash": "', ",", "]", "\\", "\x01"])
        )
        written = written[:at] + cut + written[at + draw(st.integers(0, 3)) :]
    package = draw(st.sampled_from(["zlib", "zlib", "zstd"]))
    return page_of(package, "develop", json.dumps(meta_of(sound[:1])), written)


def read(files: list[bytes]) -> tuple[Columns, list[str]]:
    """Read pages one after the other; return the columns and the faults."""
    writer = Writer()
    reader = PageReader(writer)
    faults: list[str] = []
    for number, data in enumerate(files):
        try:
            reader.add(RawFile(f"{number}.md", f"{number}.md", data))
        except InputError as error:
            faults += map(str, error.faults)
    return writer.columns, faults


def said(found: Columns) -> list[tuple[object, ...]]:
    """Return the listings, in texts."""
    things = found.things
    return [
        (
            at,
            things["hashes"][spec - 1],
            things["configurations"][configuration - 1],
            things["stack_sets"][stacks - 1],
            things["sizes"][size - 1] if size else None,
            things["tarballs"][tarball - 1] if tarball else None,
        )
        for at, spec, configuration, stacks, size, tarball in zip(
            *(
                found.tables["listings"][name]
                for name in ("document", "spec", "configuration", "stacks", "size", "tarball")
            ),
            strict=True,
        )
    ]


def decoded(files: list[bytes]) -> tuple[Columns, list[str]]:
    """Read pages as `read` does, each of them decoded whole."""
    with mock.patch.object(ListingTexts, "rows", return_value=None):
        return read(files)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(pages(), min_size=1, max_size=4))
def test_texts_say_what_decoding_says(files: list[bytes]) -> None:
    """The same listings, documents, problems and faults, whatever a page holds."""
    by_text, faults = read(files)
    by_decoding, expected_faults = decoded(files)

    assert said(by_text) == said(by_decoding)
    assert by_text.documents == by_decoding.documents
    assert faults == expected_faults


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_what_is_odd_is_read_as_it_stands(odd: dict[str, Any]) -> None:
    """Before and after a listing that has been seen, and in either order of keys."""
    for order in ORDERS:
        listed = [spec(each, tarball=url(each)) for each in (1, 2, 3)]
        listed[1] |= odd
        turned = [listed[0], listed[2], listed[1]]
        files = [
            page_of(
                "zlib", "develop", json.dumps(meta_of([spec()])), json.dumps([*map(order, one)])
            )
            for one in (listed, turned)
        ]
        by_text, faults = read(files)
        by_decoding, expected_faults = decoded(files)
        assert (said(by_text), faults) == (said(by_decoding), expected_faults)


def test_a_text_that_repeats_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred listings that differ in their hash, one is looked at."""
    numbers = random.Random(1).sample(range(1000), 100)
    looked_at = []
    row_of = PageReader._row_without_hash

    def look(self: PageReader, page: Page, detail: SpecDetail) -> Any:
        looked_at.append(detail)
        return row_of(self, page, detail)

    monkeypatch.setattr(PageReader, "_row_without_hash", look)
    listed = [insertion_order(spec(each, tarball=url(each))) for each in numbers]
    data = page_of("zlib", "develop", json.dumps(meta_of(listed)), json.dumps(listed))

    reader = PageReader(Writer())
    reader.keep(parse_page(RawFile("a.md", "a.md", data)))

    assert len(looked_at) == 1
