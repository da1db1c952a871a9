"""sources.pages.front_matter: a page is five entries between two lines of dashes.

    ---
    title: "zlib"
    layout: cache
    categories: [package, develop]
    meta: {"versions": […], …}
    spec_details: [{"hash": …}, …]
    ---

`meta` and `spec_details` are JSON; the others are YAML. A page with anything else is
refused, and the fault has a line.
"""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spack_cache_db.errors import LineFault
from spack_cache_db.sources.pages.front_matter import Entry, read_front_matter
from tests.pagetexts import meta_of, page, page_of, spec
from tests.sources.pages.parsing import fault, parse

META = json.dumps(meta_of([spec()]))
DETAILS = json.dumps([spec()])

# What is read.


def test_an_entry_may_continue_on_further_lines() -> None:
    """Lists in block style, JSON over lines, blank lines and comments belong to the key
    above.
    """
    data = b"""---
categories:
- package
# a word

- develop
meta: {"a":
 1
}
spec_details: []
layout: cache
title: 1.10
---"""
    assert read_front_matter(data) == {
        "categories": Entry(2, ["package", "develop"]),
        "meta": Entry(7, b'{"a":\n 1\n}'),
        "spec_details": Entry(10, b"[]"),
        "layout": Entry(11, "cache"),
        # Not the number 1.1.
        "title": Entry(12, "1.10"),
    }


@pytest.mark.parametrize(
    "key", [b'"title"', b"'title'", b"!!str title", b"&x title", b"title "]
)
def test_a_small_key_may_be_spelled_as_yaml_allows(key: bytes) -> None:
    """However a key is written, it is read; twice the same key is refused."""
    data = b"---\n" + key + b": 2\ntitle: 1\n---"
    message = "the key title is listed twice, first on line 2"
    with pytest.raises(LineFault, match=message) as caught:
        read_front_matter(data)
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("name", "can_be_release", "can_be_package"),
    [
        ("py-torch", True, True),
        ("builtin.zlib", True, True),
        ("a" * 100, True, True),
        ("a" * 101, False, False),
        ("a b", True, False),
        ("../x", True, False),
        ("é", True, False),
        ("--help", False, False),
        (" a", False, False),
        ("a\\nb", False, False),
        ("a\u202eb", False, False),
    ],
)
def test_names_stand_in_lists_and_commands(
    name: str, can_be_release: bool, can_be_package: bool
) -> None:
    """A release is any printable text that is no option; a package is a name that Spack
    reads.
    """
    page_of_package = page(package=name)
    if can_be_package:
        assert parse(page_of_package).package == name
    else:
        assert_name_is_refused(page_of_package, line=2)

    page_of_release = page(release=f'"{name}"')
    if can_be_release:
        assert parse(page_of_release).document.release == name
    else:
        assert_name_is_refused(page_of_release, line=4)


def assert_name_is_refused(data: bytes, line: int) -> None:
    """Check that the fault of a page is the name on a line."""
    message = fault(data)
    assert message.startswith(f"{line}: ")
    assert "name: at most 100" in message


# What is refused.

NOT_CLOSED = "the front matter is not closed, expected a second line ---"
NOT_OPENED = "no front matter, expected --- on the first line"
NOT_AN_ENTRY = "broken YAML: this is not one entry"
NO_COLON = "broken YAML: could not find expected ':'"
NO_END = "broken YAML: found unexpected end of stream"
A_TAB = "broken YAML: a tab, expected blanks"
NOT_ONE = "broken YAML: a second document begins here"
NO_CHARACTER = "broken YAML: found invalid Unicode character"

DEEP = b"---\ntitle: " + b"[" * 40 + b"]" * 40 + b"\n---"
LONG = b"---\ntitle: '" + b"a" * 2**14 + b"'\n---"

FAULTS = {
    # The bytes of the file.
    "empty": (b" \n\n", 0, "the file is empty, expected a page that starts with ---"),
    "NUL": (b"---\ntitle: 1\nb: \0\n---", 3, "a NUL byte, expected UTF-8 text"),
    "Latin-1": (b"---\ntitle: 1\nb: \xe9\n---", 3, "not UTF-8: byte 0xe9"),
    # The lines of dashes.
    "only dashes": (b"---", 1, NOT_CLOSED),
    "one line": (b"---\n", 1, NOT_CLOSED),
    "four dashes": (b"---\ntitle: 1\n----\n", 1, NOT_CLOSED),
    "text beside dashes": (b"--- x\ntitle: 1\n---\n", 1, NOT_OPENED),
    "late dashes": (b"\n---\ntitle: 1\n---\n", 1, NOT_OPENED),
    "byte order mark": (b"\xef\xbb\xbf---\n---", 1, NOT_OPENED),
    "text after dashes": (b"---\ntitle: 1\n---\n\ntext", 4, "text after the front matter"),
    # Entries that are not `key: value`.
    "key twice": (b"---\ntitle: 1\nlayout: 2\ntitle: 1\n---", 4, "the key title is listed twice"),
    "no colon": (b"---\ntitle: 1\nb\n---", 3, f"{NOT_AN_ENTRY}, expected `key: value`"),
    "braces": (b"---\n{title: 1, layout: 2}\n---", 2, NOT_AN_ENTRY),
    "indented": (b"---\n title: 1\n layout: 2\n---", 2, NOT_AN_ENTRY),
    "two documents": (b"---\ntitle: 1\n---\nb: 2\n---", 3, NOT_ONE),
    # Broken YAML.
    "open quote": (b"---\na: 'x\n---", 2, NO_END),
    "alias": (b"---\ntitle: 1\na: *x\n---", 3, "broken YAML: found undefined alias"),
    "half a character": (b'---\na: "\\ud800"\n---', 2, NO_CHARACTER),
    "tab": (b"---\n\ta: 1\n---", 2, A_TAB),
    # Only YAML takes these signs for the end of a line.
    "carriage return": (b"---\ntitle: \r.\n---", 2, NO_COLON),
    "line separator": ("---\na: \u2028.\nb: 1\n---".encode(), 2, NO_COLON),
    "lines of Windows": (b"---\r\ntitle: 1\r\nb: 'x\r\n---\r\n", 3, NO_END),
    "late byte order mark": (b"---\n\xef\xbb\xbfa: 'x\n---", 2, NO_END),
    # More than a page needs.
    "deep": (DEEP, 2, "is nested more than 32 levels"),
    "long": (LONG, 2, "this entry has more than 16,384 bytes"),
}  # fmt: skip
"""A file, the line of its fault, and how the message begins."""


@pytest.mark.parametrize(("data", "line", "message"), FAULTS.values(), ids=FAULTS)
def test_the_first_fault_of_a_front_matter_has_a_line(
    data: bytes, line: int, message: str
) -> None:
    """A page that is not entries between two lines of dashes is refused."""
    with pytest.raises(LineFault) as caught:
        read_front_matter(data)
    assert caught.value.line == line
    assert caught.value.message.startswith(message)


def test_a_page_has_its_keys_and_no_others() -> None:
    """A missing key is a fault of the page, an unknown key one of its line."""
    keys = "categories, layout, meta, spec_details, title"
    without_categories = b"---\ntitle: a\nlayout: cache\n---"
    missing = f"1: the key categories is missing, expected {keys}"
    assert fault(without_categories) == missing

    with_other = page().replace(b"layout:", b"other: 1\nlayout:")
    unknown = f"3: unknown key other, expected only {keys}"
    assert fault(with_other) == unknown


@pytest.mark.parametrize("spelling", ['"{}"', "'{}'", "{} ", "&x {}", "!!str {}"])
@pytest.mark.parametrize(("key", "line"), [("meta", 5), ("spec_details", 6)])
def test_a_big_key_is_spelled_in_one_way(key: str, line: int, spelling: str) -> None:
    """YAML would read the same key, but its value is JSON to a decoder in the one
    spelling only.
    """
    spelled = spelling.format(key)
    data = page().replace(f"\n{key}:".encode(), f"\n{spelled}:".encode())
    expected = f"expected a line `{key}: ` and JSON"
    assert fault(data) == f"{line}: {key} is not plain JSON, {expected}"


MANY_LISTS = "[" + "[]," * 250_000 + "[]]"
MANY_NUMBERS = '[{"a":' + "0," * 500_000 + "0}]"
A_LONG_TEXT_AND_COMMAS = '{"oss":["' + "a" * 2_000_000 + "," * 500_001
A_LONGER_TEXT = '["' + "a" * 2**24 + '"]'

MALFORMED = "6: spec_details: JSON is malformed:"
NOT_AN_OBJECT = "6: spec_details: Expected `object`, got `array` - at `$[0]`"

WRONG_JSON = {
    # Another type.
    "meta is a list": ("[]", DETAILS, "5: meta: Expected `object`, got `array`"),
    "details are an object": (META, "{}", "6: spec_details: Expected `array`, got `object`"),
    "a detail is a list": (META, "[[]]", NOT_AN_OBJECT),
    # Not JSON.
    "no quotes": ("\n {\n x", DETAILS, "5: meta: JSON is malformed: object keys must be strings"),
    "nothing": (META, "", "6: spec_details: Input data was truncated"),
    "more after it": (META, f"{DETAILS}x", f"{MALFORMED} trailing characters"),
    "NaN": (META, '[{"hash": NaN}]', f"{MALFORMED} invalid character"),
    # So much that it would fill the memory: values are counted before they are made,
    # and bytes before they are copied.
    "many lists": (META, MANY_LISTS, "6: spec_details has about 500,002 values"),
    "many numbers": (META, MANY_NUMBERS, "6: spec_details has about 500,002 values"),
    "many texts": (A_LONG_TEXT_AND_COMMAS, "[]", "5: meta has about 500,003 values"),
    "a long text": (META, A_LONGER_TEXT, "6: spec_details has more than 16,777,216 bytes"),
}  # fmt: skip
"""The values of `meta` and `spec_details`, and how the fault begins."""


@pytest.mark.parametrize(
    ("meta", "details", "expected"), WRONG_JSON.values(), ids=WRONG_JSON
)
def test_other_json_is_refused(meta: str, details: str, expected: str) -> None:
    """With the line of the key, before it fills the memory."""
    assert fault(page_of("zlib", "develop", meta, details)).startswith(expected)


# What holds for any file.

LINE_BREAKS = ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"]
"""The last three are line breaks only in YAML."""
WORDS = ["---", "...", "title", "meta", "spec_details", "categories", "x", "é"]
SIGNS = [": ", ":", "- ", "? ", ", ", "#", "<<", "'", '"', "{", "}", "[", "]", "{}"]
YAML_SIGNS = ["&a", "*a", "!!str ", "|", ">", "%", "\\"]
OTHER_CHARACTERS = ["\t", " ", "\ufeff", "\x07", "\0"]
PIECES = [*LINE_BREAKS, *WORDS, *SIGNS, *YAML_SIGNS, *OTHER_CHARACTERS]


def joined(pieces: list[str]) -> bytes:
    """Return pieces of a front matter as bytes."""
    return "".join(pieces).encode()


LIKELY_BYTES = st.lists(st.sampled_from(PIECES), max_size=20).map(joined)


@given(data=st.binary(max_size=60) | LIKELY_BYTES)
@example(data=b"\r.")
def test_any_bytes_give_entries_or_a_fault(data: bytes) -> None:
    """Nothing else is ever raised, and a fault names a line that the file has."""
    between_dashes = b"---\n" + data + b"\n---"
    as_value = b"---\ntitle: " + data + b"\n---"

    for text in (data, between_dashes, as_value):
        line_count = len(text.removesuffix(b"\n").split(b"\n"))
        try:
            front = read_front_matter(text)
        except LineFault as error:
            assert 0 <= error.line <= line_count
        else:
            assert all(1 < entry.line < line_count for entry in front.values())


@given(st.data())
def test_a_page_that_lost_its_end_is_never_whole(data: st.DataObject) -> None:
    """Cut anywhere, a page is refused."""
    whole = page()
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(LineFault):
        read_front_matter(whole[:length])
