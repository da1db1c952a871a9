"""sources.pages.faults: every fault of a page is told, with its line and what was expected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spack_cache_db.errors import InputError
from spack_cache_db.sources.pages.page_parser import parse_page
from spack_cache_db.sources.units import RawFile
from tests.pagetexts import meta_of, page, page_of, spec

META = json.dumps(meta_of([spec()]))
DETAILS = json.dumps([spec()])


def faults(data: bytes) -> list[str]:
    """Return what is wrong with a page."""
    with pytest.raises(InputError) as caught:
        parse_page(RawFile("in/a.md", "a.md", data))
    return [str(fault).removeprefix("in/a.md:") for fault in caught.value.faults]


def test_every_missing_and_unknown_key_is_told() -> None:
    """All at once, each unknown one with its line."""
    keys = "categories, layout, meta, spec_details, title"
    assert faults(b"---\ntitle: a\nother: 1\nlayout: cache\nmore: 1\n---") == [
        f"1: the key categories is missing, expected {keys}",
        f"1: the key meta is missing, expected {keys}",
        f"1: the key spec_details is missing, expected {keys}",
        f"3: unknown key other, expected only {keys}",
        f"5: unknown key more, expected only {keys}",
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"num_specs": True}, "meta.num_specs has a wrong type, expected a whole number"),
        ({"num_specs": 1.0}, "meta.num_specs has a wrong type, expected a whole number"),
        ({"num_specs": None}, "meta.num_specs has a wrong type, expected a whole number"),
        ({"versions": "1.0"}, "meta.versions has a wrong type, expected a list of texts"),
        ({"versions": [1]}, "meta.versions has a wrong type, expected a list of texts"),
        ({"versions": {}}, "meta.versions has a wrong type, expected a list of texts"),
        (
            {"num_specs_by_stack": {"a": "1"}},
            "meta.num_specs_by_stack has a wrong type, expected an object of whole numbers",
        ),
        ({"stacks": ["a\0"]}, "meta.stacks holds a NUL character, expected text"),
        (
            {"num_specs_by_stack": {"a\0": 1}},
            "meta.num_specs_by_stack holds a NUL character, expected text",
        ),
        (
            {"other": 1},
            "unknown key meta.other, expected only versions, compilers, oss, platforms, targets, "
            "stacks, num_specs, num_specs_by_stack",
        ),
    ],
)
def test_a_member_of_meta_has_its_type(changed: dict[str, Any], expected: str) -> None:
    """The line is that of `meta`."""
    assert faults(page(meta=changed)) == [f"5: {expected}"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"os": None}, ["spec_details[0].os has a wrong type, expected text"]),
        ({"size": 7}, ["spec_details[0].size has a wrong type, expected text"]),
        ({"tarball": None}, ["spec_details[0].tarball has a wrong type, expected text"]),
        ({"stacks": [1]}, ["spec_details[0].stacks has a wrong type, expected a list of texts"]),
        ({"target": "a\0"}, ["spec_details[0].target holds a NUL character, expected text"]),
        (
            {"hash": "A" * 32},
            [
                "spec_details[0].hash is 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', "
                "expected 32 characters of a-z and 2-7"
            ],
        ),
        (
            {"os": 1, "size": 1},
            [
                "spec_details[0].os has a wrong type, expected text",
                "spec_details[0].size has a wrong type, expected text",
            ],
        ),
    ],
)
def test_a_member_of_a_spec_has_its_type(changed: dict[str, Any], expected: list[str]) -> None:
    """Each fault is told; the line is that of `spec_details`."""
    data = page_of("zlib", "develop", META, json.dumps([spec(**changed)]))
    assert faults(data) == [f"6: {each}" for each in expected]


@pytest.mark.parametrize(
    ("meta", "details", "expected"),
    [
        ("[]", DETAILS, "5: meta has a wrong type, expected an object"),
        ("null", DETAILS, "5: meta has a wrong type, expected an object"),
        (META, "{}", "6: spec_details has a wrong type, expected a list of objects"),
        (META, "[[]]", "6: spec_details[0] has a wrong type, expected an object"),
        (META, "", "6: broken JSON in spec_details at column 15: Expecting value, expected JSON"),
        (META, DETAILS + "x", "6: broken JSON in spec_details at column "),
        (META, DETAILS[:-1], "6: broken JSON in spec_details at column "),
        (META, '[{"hash": NaN}]', "6: broken JSON in spec_details: NaN is no JSON number"),
        ("\n {\n x", DETAILS, "7: broken JSON in meta at column 2: Expecting property name"),
    ],
)
def test_what_is_no_such_json_is_told(meta: str, details: str, expected: str) -> None:
    """With line and column where the JSON breaks."""
    (fault,) = faults(page_of("zlib", "develop", meta, details))
    assert fault.startswith(expected)


@pytest.mark.parametrize("apart", [" ", "  ", "\t", "\n ", "\r\n ", ""])
def test_a_key_that_stands_twice_is_found_however_it_is_spaced(apart: str) -> None:
    """A decoder would keep the last one in silence."""
    details = DETAILS.replace('"os": ', f'"os"{apart}: "a", "os"{apart}: ')
    assert faults(page_of("zlib", "develop", META, details)) == [
        "6: spec_details[0].os stands 2 times, expected once"
    ]


@pytest.mark.parametrize("twice", ["key", "hash"])
def test_what_stands_twice_is_named_in_short(twice: str) -> None:
    """A message repeats little of the page."""
    long = "k" * 100_000
    details = json.dumps([spec(hash=long), spec(hash=long)])
    if twice == "key":
        details = DETAILS.replace('"os": ', f'"{long}": 1, "{long}": 2, "os": ')
    told = faults(page_of("zlib", "develop", META, details))
    assert all(len(each) < 300 for each in told)
    assert any("2 times, expected once" in each for each in told)


def test_half_a_character_is_refused() -> None:
    """JSON can escape half of a pair, which is no text."""
    assert len(faults(page(specs=[spec(os="\ud800")]))) == 1
