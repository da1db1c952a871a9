"""sources.pages.parse: sound pages as records, and every page either kept or refused."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, to_builtins

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.pages import page_parser
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


def test_big_keys_in_one_entry_with_small_ones_are_refused() -> None:
    """Indented or in braces all keys are one entry, and each big one is told."""
    names = "title: zlib, layout: cache, categories: [package, develop]"
    for text in (
        f"{{{names},\n meta: {META},\n spec_details: {DETAILS}}}",
        f" {names.split(', cat')[0].replace(', ', chr(10) + ' ')}\n categories: [package, v1]\n"
        f" meta: {META}\n spec_details: {DETAILS}",
    ):
        told = page_faults(f"---\n{text}\n---".encode())
        assert [each.split(": ")[1].split()[0] for each in told] == ["meta", "spec_details"]


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
        ("layout: cache", "layout: [a]", ["3: layout is no text, expected cache"]),
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


def test_every_fault_of_the_small_keys_is_told() -> None:
    """All at once."""
    data = b"---\ntitle: [a]\nlayout: post\ncategories: x\nmeta: {}\nspec_details: []\n---"
    assert [fault.split(":")[0] for fault in page_faults(data)] == ["2", "3", "4"]


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


LINES = (
    b'title: "zlib"',
    b"title: zlib",
    b" title: zlib",
    b"title: [a]",
    b"{title: zlib, layout: cache}",
    b"title: zlib\rlayout: cache",
    b"layout: cache",
    b"layout: home",
    b"categories: [package, develop]",
    b"categories: [package, v0.18] # a word",
    b"categories:",
    b"- package",
    b"---",
    b"",
    b"more: 1",
    b"\xc3\xa9: 1",
)


@st.composite
def front_matters(draw: st.DrawFn) -> bytes:
    """Draw a page as sites write it, in which a few lines or bytes may be others."""
    lines = page("zlib", "develop", [spec(1), spec(2)]).strip().split(b"\n")
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(lines) - 1))
        lines[at : at + draw(st.integers(0, 1))] = draw(
            st.lists(st.sampled_from([*LINES, *lines]), max_size=2)
        )
    text = b"\n".join(lines)
    if draw(st.booleans()):
        at = draw(st.integers(0, len(text)))
        more = draw(st.sampled_from([b"", b" ", b"\n", b"\r", b"\0", b"}", b'"', b"\xff", b": "]))
        text = text[:at] + more + text[at + draw(st.integers(0, 2)) :]
    return text + draw(st.sampled_from([b"", b"\n", b" \r\n", b"\n\n", b"\ntext"]))


@pytest.mark.slow
@given(front_matters())
def test_a_usual_page_is_read_as_any_other(text: bytes) -> None:
    """The fast way to read a page gives the same record, and the same faults, as the slow one."""

    def read() -> Page | list[Fault]:
        try:
            return parse_page(RawFile("a.md", "a.md", text))
        except InputError as error:
            return [*error.faults]

    fast = read()
    with mock.patch.object(page_parser, "_usual_page", return_value=None):
        slow = read()
    assert repr(fast) == repr(slow)
