"""sources.pages.parse: sound pages as records, and every page either kept or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, to_builtins

from spack_cache_db.errors import InputError
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.pages.page_format import Page
from spack_cache_db.sources.pages.page_parser import parse_page, read_details
from tests.pagetexts import MORE_SAMPLES, SAMPLES, front_matter, meta_of, page, page_of, spec

META = json.dumps(meta_of([spec()]))
DETAILS = json.dumps([spec()])
SAMPLE_PAGES = sorted([*SAMPLES.glob("*.txt"), *MORE_SAMPLES.glob("*/*/specs.md")])


def parse(data: bytes) -> Page:
    """Parse a page."""
    return parse_page(RawFile("in/a.md", "a.md", data))


def page_faults(data: bytes) -> list[str]:
    """Return what is wrong with a page."""
    with pytest.raises(InputError) as caught:
        parse(data)
    return [str(fault).removeprefix("in/a.md:") for fault in caught.value.faults]


@pytest.mark.parametrize("path", SAMPLE_PAGES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_records_say_what_the_page_says(path: Any) -> None:
    """No text is changed: the records hold the very values of the JSON."""
    data = path.read_bytes()
    plain, parsed = front_matter(data), parse(data)
    assert [parsed.package, parsed.release] == [plain["title"], plain["categories"][1]]
    meta = {name: getattr(parsed.meta, name) for name in parsed.meta.__struct_fields__}
    assert json.loads(json.dumps(meta)) == plain["meta"]
    details = [
        {
            name: value
            for name in detail.__struct_fields__
            if (value := getattr(detail, name)) is not UNSET
        }
        for detail in read_details(parsed)
    ]
    assert json.loads(json.dumps(details)) == plain["spec_details"]


@pytest.mark.parametrize("spelling", ['"{}"', "'{}'", "{} ", "&x {}", "!!str {}"])
@pytest.mark.parametrize(("key", "line"), [("meta", 5), ("spec_details", 6)])
def test_a_big_key_is_spelled_in_one_way(key: str, line: int, spelling: str) -> None:
    """YAML would read the same key, but its value is JSON to a decoder in the one spelling only."""
    data = page().replace(f"\n{key}:".encode(), f"\n{spelling.format(key)}:".encode())
    assert page_faults(data) == [
        f"{line}: {key} is not plain JSON, expected a line `{key}: ` and JSON"
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"{{title: a, layout: cache, categories: [a],\n meta: {META},\n spec_details: {DETAILS}}}",
        f" title: a\n layout: cache\n categories: [a]\n meta: {META}\n spec_details: {DETAILS}",
    ],
)
def test_big_keys_in_one_entry_with_small_ones_are_refused(text: str) -> None:
    """Indented or in braces all keys are one entry, and the first big one is named."""
    (fault,) = page_faults(f"---\n{text}\n---".encode())
    assert fault.split(": ")[1].startswith("meta is not plain JSON")


@pytest.mark.parametrize(
    ("change", "era"),
    [
        ({}, "A"),
        ({"compiler": "gcc@=13.2.0"}, "B"),
        ({"compiler": "none"}, "A"),
    ],
)
def test_the_era_of_a_page(change: dict[str, Any], era: str) -> None:
    """Early in 2025 compilers still had their `@=`."""
    assert parse(page(specs=[spec(**change)])).format == era


def test_a_page_in_the_order_of_insertion_is_of_2024_or_before() -> None:
    """Era C wrote `versions` first."""
    meta = meta_of([spec()])
    ordered = {"versions": meta.pop("versions"), **meta}
    assert parse(page_of("zlib", "v0.20", json.dumps(ordered), DETAILS)).format == "C"


def test_json_may_be_spaced_in_any_way() -> None:
    """Without blanks, or over many lines: the same values."""
    expected = parse(page())
    for options in ({"separators": (",", ":")}, {"indent": 1}, {"separators": (" , ", " : ")}):
        meta, details = (json.dumps(value, **options) for value in (meta_of([spec()]), [spec()]))
        found = parse(page_of("zlib", "develop", meta, details))
        assert to_builtins(found.meta) == to_builtins(expected.meta)
        assert to_builtins(read_details(found)) == to_builtins(read_details(expected))


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


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"zlib"', "[a]", ["2: title is not a package name, expected text"]),
        ('"zlib"', "", ["2: title is not a package name, expected text"]),
        ("layout: cache", "layout: [a]", ["3: layout is not a text, expected cache"]),
        ("[package, develop]", "develop", None),
        ("[package, develop]", "[package]", None),
        ("[package, develop]", "[develop, package]", None),
        ("[package, develop]", "[package, develop, v0.20]", None),
        ("[package, develop]", "[package, '']", None),
        ("[package, develop]", "[package, [develop]]", None),
    ],
)
def test_small_keys_have_their_form(old: str, new: str, expected: list[str] | None) -> None:
    """A page is of one package in one release."""
    no_release = ["4: no release in categories, expected [package, RELEASE]"]
    assert page_faults(page().replace(old.encode(), new.encode())) == (expected or no_release)


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
        details = read_details(parsed)
    except InputError as error:
        assert error.faults
        assert all(fault.line in (5, 6) for fault in error.faults)
    else:
        assert json.loads(json.dumps(getattr(parsed.meta, meta_key))) == meta_value
        found = getattr(details[0], key, UNSET)
        assert (found is UNSET) if remove else (json.loads(json.dumps(found)) == value)


META = json.dumps(meta_of([spec()]))
DETAILS = json.dumps([spec()])


def faults(data: bytes) -> list[str]:
    """Return what is wrong with a page."""
    with pytest.raises(InputError) as caught:
        read_details(parse_page(RawFile("in/a.md", "a.md", data)))
    return [str(fault).removeprefix("in/a.md:") for fault in caught.value.faults]


def test_a_missing_key_comes_before_an_unknown_one() -> None:
    """The first fault is reported, an unknown key with its line."""
    keys = "categories, layout, meta, spec_details, title"
    assert faults(b"---\ntitle: a\nother: 1\nlayout: cache\n---") == [
        f"1: the key categories is missing, expected {keys}"
    ]
    assert faults(page().replace(b"layout:", b"other: 1\nlayout:")) == [
        f"3: unknown key other, expected only {keys}"
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"num_specs": True}, "Expected `int`, got `bool` - at `$.num_specs`"),
        ({"num_specs": 1.5}, "Expected `int`, got `float` - at `$.num_specs`"),
        ({"num_specs": None}, "Expected `int`, got `null` - at `$.num_specs`"),
        ({"versions": "1.0"}, "Expected `array`, got `str` - at `$.versions`"),
        ({"versions": [1]}, "Expected `str`, got `int` - at `$.versions[0]`"),
        ({"versions": {}}, "Expected `array`, got `object` - at `$.versions`"),
        ({"num_specs_by_stack": {"a": "1"}}, "Expected `int`, got `str` - at"),
        (
            {"stacks": ["a\0"]},
            "has a text in stacks with the character '\\x00', expected printable",
        ),
        ({"num_specs_by_stack": {"a\0": 1}}, "has a text in num_specs_by_stack with the character"),
        ({"other": 1}, "Object contains unknown field `other`"),
    ],
)
def test_a_member_of_meta_has_its_type(changed: dict[str, Any], expected: str) -> None:
    """The fault has the line of `meta` and the path of the member."""
    (fault,) = faults(page(meta=changed))
    assert fault.replace("meta: ", "meta ").startswith(f"5: meta {expected}")


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
    (fault,) = faults(page_of("zlib", "develop", META, json.dumps([spec(**changed)])))
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
    (fault,) = faults(page_of("zlib", "develop", meta, details))
    assert fault.startswith(expected)


@pytest.mark.parametrize("apart", [" ", "  ", "\t", "\n ", "\r\n ", ""])
@pytest.mark.parametrize("text", ["linux", "li\\u006eux", 'a\\"b'])
def test_a_repeated_key_is_found_however_it_is_spaced(apart: str, text: str) -> None:
    """A decoder alone would keep the last value silently."""
    details = DETAILS.replace('"os": ', f'"os"{apart}: "{text}", "os"{apart}: ')
    assert faults(page_of("zlib", "develop", META, details)) == [
        "6: spec_details: the key os stands twice, expected once"
    ]


def test_a_message_repeats_little_of_the_page() -> None:
    """A key of 100,000 characters is shortened."""
    details = DETAILS.replace('"os": ', f'"{"k" * 100_000}": 1, "os": ')
    (fault,) = faults(page_of("zlib", "develop", META, details))
    assert len(fault) < 300


def test_half_a_character_is_refused() -> None:
    """JSON can escape half of a pair, which is no text."""
    assert len(faults(page(specs=[spec(os="\ud800")]))) == 1
