"""sources.pages.page_parser: what stands between the two lines of dashes, and on which line."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spack_cache_db.errors import LineFault
from spack_cache_db.sources.pages.page_parser import Entry, Json, read_front_matter
from tests.pagetexts import page

SMALL = b'---\ntitle: "zlib"\nlayout: cache\nmeta: {"a": 1}\n---'


def test_an_entry_may_go_on_over_several_lines() -> None:
    """Lists in block style, JSON over lines, blank lines and comments belong to the key above."""
    categories = b"categories:\n- package\n# a word\n\n- develop\n"
    meta = b'meta: {"a":\n 1\n}\n'
    rest = b"spec_details: []\nlayout: cache\ntitle: 1.10\n---"
    front = read_front_matter(b"---\n" + categories + meta + rest)
    assert front == {
        "categories": Entry(2, ["package", "develop"]),
        "meta": Entry(7, Json(b'{"a":\n 1\n}', 7)),
        "spec_details": Entry(10, Json(b"[]", 10)),
        "layout": Entry(11, "cache"),
        "title": Entry(12, "1.10"),
    }


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"", 0, "the file is empty, expected a page that starts with ---"),
        (b" \n\n", 0, "the file is empty, expected a page that starts with ---"),
        (b"---", 1, "the front matter is not closed, expected a second line ---"),
        (b"---\n", 1, "the front matter is not closed, expected a second line ---"),
        (b"---\ntitle: 1\n----\n", 1, "the front matter is not closed, expected a second line ---"),
        (b"--- x\ntitle: 1\n---\n", 1, "no front matter, expected --- on the first line"),
        (b"\n---\ntitle: 1\n---\n", 1, "no front matter, expected --- on the first line"),
        (b"\xef\xbb\xbf---\n---", 1, "no front matter, expected --- on the first line"),
        (b"---\ntitle: 1\nb: \0\n---", 3, "a NUL byte, expected UTF-8 text"),
        (b"---\ntitle: 1\nb: \xe9\n---", 3, "not UTF-8: byte 0xe9, expected UTF-8 text"),
        (b"---\ntitle: 1\n---\n\ntext", 4, "text after the front matter, expected none"),
        (
            b"---\ntitle: 1\nlayout: 2\ntitle: 1\n---",
            4,
            "the key title is listed twice, first on line 2",
        ),
        (b"---\ntitle: 1\nb\n---", 3, "broken YAML: this is not one entry, expected `key: value`"),
        (b"---\na: 'x\n---", 2, "broken YAML: found unexpected end of stream"),
        (
            b"---\ntitle: 1\na: *x\n---",
            3,
            "has YAML aliases (*x), expected none",
        ),
        (b'---\na: "\\ud800"\n---', 2, "broken YAML: found invalid Unicode character escape"),
        (b"---\ntitle: 1\n---\nb: 2\n---", 3, "broken YAML: but found another document"),
        (b"---\ntitle: \r.\n---", 2, "broken YAML: could not find expected ':'"),
        ("---\ntitle: 1\nb: \x85.\n---".encode(), 3, "broken YAML: could not find expected ':'"),
        ("---\na: \u2028.\nb: 1\n---".encode(), 2, "broken YAML: could not find expected ':'"),
        (b"---\r\ntitle: 1\r\nb: 'x\r\n---\r\n", 3, "broken YAML: found unexpected end of stream"),
        (b"---\n\xef\xbb\xbfa: 'x\n---", 2, "broken YAML: found unexpected end of stream"),
        (b"---\n\ta: 1\n---", 2, "broken YAML: found character that cannot start any token"),
        (b"---\n&x a: [*x]\n<<: *x\n---", 2, "has YAML aliases"),
        (b"---\na: &x [*x]\n---", 2, "has YAML aliases (*x), expected none"),
    ],
)
def test_what_is_no_front_matter_is_told(data: bytes, line: int, message: str) -> None:
    """The first fault, with its line where there is one."""
    with pytest.raises(LineFault) as caught:
        read_front_matter(data)
    assert (caught.value.line, caught.value.message[: len(message)]) == (line, message)


@pytest.mark.parametrize("key", [b'"title"', b"'title'", b"!!str title", b"&x title", b"title "])
def test_a_key_may_be_spelled_as_yaml_allows(key: bytes) -> None:
    """However a key is written, it is read; twice the same key is refused."""
    with pytest.raises(LineFault, match="the key title is listed twice, first on line 2") as caught:
        read_front_matter(b"---\n" + key + b": 2\ntitle: 1\n---")
    assert caught.value.line == 3


@pytest.mark.parametrize("entries", [b"{title: 1, layout: 2}", b" title: 1\n layout: 2", b"[]"])
def test_an_entry_has_one_key(entries: bytes) -> None:
    """Several keys in one entry are refused: their lines would not be known."""
    with pytest.raises(LineFault, match="this is not one entry"):
        read_front_matter(b"---\n" + entries + b"\n---")


@pytest.mark.parametrize("depth", [20, 40, 100_000])
def test_deep_yaml_is_refused_and_shallow_is_not(depth: int) -> None:
    """The fast loader of YAML would end the process at great depth."""
    data = b"---\ntitle: " + b"[" * depth + b"]" * depth + b"\n---"
    if depth < 32:
        with pytest.raises(LineFault, match="missing"):
            read_front_matter(data)
    else:
        with pytest.raises(LineFault, match="nested more than 32 levels deep"):
            read_front_matter(data)


# What YAML, JSON and the fences are made of, the line breaks that only YAML knows among it.
PIECES = [
    *("---", "\n", "\r", "\r\n", "\x85", "\u2028", "\u2029", "\t", " ", "\ufeff", "\x07", "\0"),
    *("title", "meta", "spec_details", "categories", ": ", ":", "- ", "? ", ", ", "#", "<<", "..."),
    *("'", '"', "{", "}", "[", "]", "&a", "*a", "!!str ", "|", ">", "%", "\\", "{}", "x", "é"),
]
PAGES = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=20).map(lambda words: "".join(words).encode()),
)


@given(data=PAGES)
@example(data=b"\r.")
def test_any_bytes_give_entries_or_a_fault(data: bytes) -> None:
    """Nothing else is ever raised, and a fault names a line that the file has."""
    for text in (data, b"---\n" + data + b"\n---", b"---\ntitle: " + data + b"\n---"):
        lines = len(text.removesuffix(b"\n").split(b"\n"))
        try:
            front = read_front_matter(text)
        except LineFault as fault:
            assert 0 <= fault.line <= lines
        else:
            assert all(1 < entry.line < lines for entry in front.values())


@given(st.data())
def test_a_page_that_lost_its_end_is_never_whole(data: st.DataObject) -> None:
    """Cut anywhere, a page is refused."""
    whole = page()
    with pytest.raises(LineFault):
        read_front_matter(whole[: data.draw(st.integers(0, len(whole) - 1))])
