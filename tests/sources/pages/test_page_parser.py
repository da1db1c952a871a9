"""sources.pages.page_parser: sound pages as records, and every page either kept or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from spack_cache_db.errors import InputError
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.pages.page_parser import Page, parse_page
from tests.pagetexts import meta_of, page, page_of, spec

META = json.dumps(meta_of([spec()]))
DETAILS = json.dumps([spec()])


def parse(data: bytes) -> Page:
    """Parse a page."""
    return parse_page(RawFile("in/a.md", "a.md", data))


def page_faults(data: bytes) -> list[str]:
    """Return what is wrong with a page."""
    with pytest.raises(InputError) as caught:
        parse(data)
    return [str(fault).removeprefix("in/a.md:") for fault in caught.value.faults]


@pytest.mark.parametrize("spelling", ['"{}"', "'{}'", "{} ", "&x {}", "!!str {}"])
@pytest.mark.parametrize(("key", "line"), [("meta", 5), ("spec_details", 6)])
def test_a_big_key_is_spelled_in_one_way(key: str, line: int, spelling: str) -> None:
    """YAML would read the same key, but its value is JSON to a decoder in the one spelling only."""
    data = page().replace(f"\n{key}:".encode(), f"\n{spelling.format(key)}:".encode())
    assert page_faults(data) == [
        f"{line}: {key} is not plain JSON, expected a line `{key}: ` and JSON"
    ]


@pytest.mark.parametrize(
    ("name", "can_be_release", "can_be_package"),
    [
        ("py-torch", True, True),
        ("7zip", True, True),
        ("_x", True, True),
        ("builtin.zlib", True, True),
        ("a" * 100, True, True),
        ("a" * 101, False, False),
        ("a b", True, False),
        ("../x", True, False),
        ("<script>alert(1)</script>", True, False),
        ("é", True, False),
        ("--help", False, False),
        ("-rf", False, False),
        (" a", False, False),
        ("a\\nb", False, False),
        ("a\\0b", False, False),
        ("a\u202eb", False, False),
        ("a\u200bb", False, False),
        ("a\\x85b", False, False),
    ],
)
def test_names_stand_in_lists_and_commands(
    name: str, can_be_release: bool, can_be_package: bool
) -> None:
    """A release is any printable text that is no option; a package is a name that Spack reads."""
    packaged, released = page(package=name), page(release=f'"{name}"')
    for data, line, can_be in ((packaged, 2, can_be_package), (released, 4, can_be_release)):
        if can_be:
            assert name in (parse(data).package, parse(data).release)
        else:
            (fault,) = page_faults(data)
            assert fault.startswith(f"{line}: ")
            assert "name: at most 100" in fault


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    key=st.sampled_from([*spec(), "tarball", "other"]),
    value=VALUES,
    meta_key=st.sampled_from([*meta_of([]), "other"]),
    meta_value=VALUES,
    remove=st.booleans(),
)
def test_any_value_in_any_place_is_read_or_told(
    key: str, value: Any, meta_key: str, meta_value: Any, remove: bool
) -> None:
    """A page gives a record that says the same, or faults; nothing else is ever raised."""
    detail = spec(**{key: value})
    if remove:
        del detail[key]
    meta = meta_of([spec()]) | {meta_key: meta_value}
    data = page_of("zlib", "develop", json.dumps(meta), json.dumps([detail]))
    try:
        parsed = parse(data)
        details = parsed.details
    except InputError as error:
        assert error.faults
        assert all(fault.line in (5, 6) for fault in error.faults)
    else:
        assert json.loads(json.dumps(getattr(parsed.meta, meta_key))) == meta_value
        found = getattr(details[0], key, UNSET)
        assert (found is UNSET) if remove else (json.loads(json.dumps(found)) == value)


def test_a_page_has_its_keys_and_no_others() -> None:
    """The first fault is reported, an unknown key with its line."""
    keys = "categories, layout, meta, spec_details, title"
    assert page_faults(b"---\ntitle: a\nlayout: cache\n---") == [
        f"1: the key categories is missing, expected {keys}"
    ]
    assert page_faults(page().replace(b"layout:", b"other: 1\nlayout:")) == [
        f"3: unknown key other, expected only {keys}"
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"os": None}, "Expected `str`, got `null` - at `$[0].os`"),
        ({"size": 7}, "Expected `str`, got `int` - at `$[0].size`"),
        ({"tarball": None}, "Expected `str`, got `null` - at `$[0].tarball`"),
        ({"stacks": [1]}, "Expected `str`, got `int` - at `$[0].stacks[0]`"),
        ({"other": 1}, "Object contains unknown field `other` - at `$[0]`"),
        (
            {"hash": "A" * 32},
            "$[0].hash is 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', expected 32 characters of a-z",
        ),
        ({"hash": "a" * 31 + "é"}, f"$[0].hash is '{'a' * 31}é', expected 32 characters"),
    ],
)
def test_a_member_of_a_listing_has_its_type(changed: dict[str, Any], expected: str) -> None:
    """The first fault is reported, with the line of `spec_details` and the path of the member."""
    (fault,) = page_faults(page_of("zlib", "develop", META, json.dumps([spec(**changed)])))
    assert fault.startswith(f"6: spec_details: {expected}")


@pytest.mark.parametrize(
    ("meta", "details", "expected"),
    [
        ("[]", DETAILS, "5: meta: Expected `object`, got `array`"),
        ("null", DETAILS, "5: meta: Expected `object`, got `null`"),
        (META, "{}", "6: spec_details: Expected `array`, got `object`"),
        (META, "[[]]", "6: spec_details: Expected `object`, got `array` - at `$[0]`"),
        (META, "", "6: spec_details: Input data was truncated"),
        (META, DETAILS + "x", "6: spec_details: JSON is malformed: trailing characters"),
        (META, DETAILS[:-1], "6: spec_details: Input data was truncated"),
        (META, '[{"hash": NaN}]', "6: spec_details: JSON is malformed: invalid character"),
        ("\n {\n x", DETAILS, "5: meta: JSON is malformed: object keys must be strings"),
    ],
)
def test_other_json_is_refused(meta: str, details: str, expected: str) -> None:
    """With the line of the key."""
    (fault,) = page_faults(page_of("zlib", "develop", meta, details))
    assert fault.startswith(expected)
