"""sources.pages: the listings of a page become rows, or the page is refused.

A listing is a member of `spec_details`: one binary, with its version, its variants and
so on. A fault names the line of `spec_details`, which is the sixth of a page.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from spack_cache_db.errors import InputError, LineFault, faults_of
from spack_cache_db.sources.bounds import MAX_NAME, MAX_TEXT, MAX_TEXTS
from spack_cache_db.sources.pages import front_matter, json_values
from spack_cache_db.sources.pages.front_matter import read_front_matter
from spack_cache_db.sources.pages.page import details_of
from spack_cache_db.sources.pages.reader import PageReader
from spack_cache_db.sources.writer import Writer
from tests.pagetexts import (
    MORE_SAMPLES,
    SAMPLE_PAGES,
    meta_of,
    page,
    page_of,
    spec,
    spec_hash,
)
from tests.sources.pages.parsing import PATH, fault, parse

SPEC = spec_hash(1)
META = json.dumps(meta_of([spec()]))


def test_a_page_that_is_refused_leaves_nothing_but_its_fault() -> None:
    """The pages before and after it are whole, even if some of its listings were
    read.
    """
    writer = Writer()
    reader = PageReader(writer)
    two_versions = spec(8, versions=["1", "2"])
    bad = page(release="v0.1", specs=[spec(7), two_versions])

    reader.add(parse(page(specs=[spec(1)])))
    with pytest.raises(LineFault):
        reader.add(parse(bad))
    reader.add(parse(page(release="v0.2", specs=[spec(2)])))

    reader.finish()

    columns = writer.columns
    assert [document.release for document in columns.documents] == ["develop", "v0.2"]
    rows = columns.tables["listings"]
    assert list(rows["document"]) == [1, 2]
    hashes = [writer.texts.hashes.things[number - 1] for number in rows["spec"]]
    assert hashes == [spec_hash(1), spec_hash(2)]


THE_SPEC = f"the spec {SPEC}"
NO_TEXT = "spec_details: Expected `str`, got"
UNKNOWN_KEY = "spec_details: Object contains unknown field"
HASH = "spec_details: $[0].hash is"
LONG_NAME = f"{THE_SPEC} has a os of 201 characters, expected at most 200"

WRONG_LISTINGS = {
    # Values of another type, and other keys.
    "null": ({"os": None}, f"{NO_TEXT} `null` - at `$[0].os`"),
    "number": ({"size": 7}, f"{NO_TEXT} `int` - at `$[0].size`"),
    "no tarball": ({"tarball": None}, f"{NO_TEXT} `null` - at `$[0].tarball`"),
    "number in a list": ({"stacks": [1]}, f"{NO_TEXT} `int` - at `$[0].stacks[0]`"),
    "unknown key": ({"other": 1}, f"{UNKNOWN_KEY} `other` - at `$[0]`"),
    # Texts that are not what they stand for.
    "capitals": ({"hash": "A" * 32}, f"{HASH} '{'A' * 32}', expected 32 char"),
    "not ASCII": ({"hash": "a" * 31 + "é"}, f"{HASH} '{'a' * 31}é', expected 32"),
    "long name": ({"os": "o" * 201}, LONG_NAME),
    "half a compiler": ({"compiler": "gcc@"}, f"{THE_SPEC} 'gcc@' is not a compiler"),
    # Lists with too few or too many texts.
    "no version": ({"versions": []}, f"{THE_SPEC} has 0 versions, expected one"),
    "two versions": ({"versions": ["1", "2"]}, f"{THE_SPEC} has 2 versions, expected one"),
    "variant twice": ({"variants": ["+a", "+a"]}, f"{THE_SPEC} lists the variant '+a' twice"),
    "two forms": ({"variants": ["a=x", "a:=x"]}, f"{THE_SPEC} lists the variant 'a=x' twice"),
}  # fmt: skip
"""The keys of a listing that are wrong, and how the fault begins."""


@pytest.mark.parametrize(
    ("changes", "expected"), WRONG_LISTINGS.values(), ids=WRONG_LISTINGS
)
def test_a_listing_that_is_not_a_row_is_refused(
    changes: dict[str, Any], expected: str
) -> None:
    """The fault has the path of the member in the JSON, or the hash of the spec."""
    data = page_of("zlib", "develop", META, json.dumps([spec(**changes)]))
    assert fault(data).startswith(f"6: {expected}")


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for lists and objects of some values."""
    objects = st.dictionaries(st.text(max_size=3), inner)
    return st.lists(inner, max_size=2) | objects


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
JSON_VALUES = st.recursive(SCALARS, containers, max_leaves=4)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    key=st.sampled_from([*spec(), "tarball", "other"]),
    value=JSON_VALUES,
    meta_key=st.sampled_from([*meta_of([]), "other"]),
    meta_value=JSON_VALUES,
    is_removed=st.booleans(),
)
def test_any_value_of_any_key_is_read_or_refused(
    key: str, value: Any, meta_key: str, meta_value: Any, is_removed: bool
) -> None:
    """A page gives a record with the same value, or a fault; nothing else is ever
    raised.
    """
    detail = spec(**{key: value})
    if is_removed:
        del detail[key]
    meta = meta_of([spec()]) | {meta_key: meta_value}
    data = page_of("zlib", "develop", json.dumps(meta), json.dumps([detail]))
    try:
        parsed = parse(data)
        with faults_of(PATH):
            details = details_of(parsed)
    except InputError as error:
        assert [fault.line for fault in error.faults] in ([5], [6])
        return

    # As JSON, because the record has tuples where the page has lists.
    assert json.loads(json.dumps(getattr(parsed.meta, meta_key))) == meta_value
    read_value = getattr(details[0], key, UNSET)
    if is_removed:
        assert read_value is UNSET
    else:
        assert json.loads(json.dumps(read_value)) == value


# Bounds: what a record takes and nothing bounds could fill a disk.


def too_large_values() -> Iterator[tuple[str, Any]]:
    """Yield each field of a spec with a text that is too long, or too many texts."""
    for field, sample in spec(tarball="u").items():
        if isinstance(sample, list):
            yield field, ["+" + "t" * 4097]
            yield field, [f"+t{number}" for number in range(1001)]
        else:
            yield field, "t" * 4097


@pytest.mark.parametrize(("field", "value"), list(too_large_values()))
def test_no_field_of_a_spec_is_without_a_bound(field: str, value: Any) -> None:
    """A page with a text that is too long, or with too many texts, is refused."""
    fault(page(specs=[spec(**{field: value})], meta=meta_of([spec()])))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"versions": ["1" * 201]},
            "a text in versions of 201 characters, expected at most",
        ),
        ({"oss": ["a"] * 1001}, "1,001 oss, expected at most 1,000"),
        (
            {"num_specs_by_stack": {"s" * 201: 1}},
            "a text in num_specs_by_stack of 201 char",
        ),
    ],
)
def test_a_summary_that_is_too_large_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    """The texts of `meta` are bounded as well, because they go into messages."""
    assert fault(page(meta=changes)).startswith(f"5: meta has {message}")


def test_the_pages_of_the_site_are_far_from_the_bounds() -> None:
    """No sample comes near a tenth of any bound but that of a name, which is a
    third.
    """
    for path in [*SAMPLE_PAGES, *MORE_SAMPLES.glob("*/*/specs.md")]:
        front = read_front_matter(path.read_bytes())
        for key in front_matter.JSON_KEYS:
            text = front[key].value
            assert len(text) * 10 < front_matter.MAX_JSON
            assert text.count(b",") * 10 < json_values.MAX_ITEMS
        for detail in json.loads(front["spec_details"].value):
            assert len(detail["variants"]) * 10 < MAX_TEXTS
            for variant in detail["variants"]:
                assert len(variant) * 10 < MAX_TEXT
            for name in (detail["compiler"], *detail["versions"]):
                assert len(name) * 3 < MAX_NAME


# Formulas: a spreadsheet runs a cell of CSV that begins with one of these signs.

FORMULAS = ["=1+1", "+1", "-1", "@SUM(1)"]


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize(
    "field",
    ["versions", "os", "target", "platform", "compiler", "size", "tarball", "stacks"],
)
def test_no_text_of_a_page_is_a_formula(field: str, text: str) -> None:
    """A page with a formula is refused; the variant `+name` and the size `-` are
    none.
    """
    value: Any = text
    if field in ("versions", "stacks"):
        value = [text]
    assert text[0] in fault(page(specs=[spec(**{field: value})]))


@pytest.mark.parametrize("text", FORMULAS)
def test_no_variant_of_a_page_is_a_formula(text: str) -> None:
    """A variant may begin with `+`, but not with a formula that runs a program."""
    variants = [f"{text}|cmd"]
    assert text[0] in fault(page(specs=[spec(variants=variants)]))
