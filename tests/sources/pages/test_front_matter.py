"""sources.pages.page_parser: what stands between the two lines of dashes, and on which line."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spack_cache_db.errors import LineFault
from spack_cache_db.sources.pages.page_parser import read_front_matter
from tests.pagetexts import page

SMALL = b'---\ntitle: "zlib"\nlayout: cache\nmeta: {"a": 1}\n---'


def test_an_entry_may_go_on_over_several_lines() -> None:
    """Lists in block style, JSON over lines, blank lines and comments belong to the key above."""
    categories = b"categories:\n- package\n# a word\n\n- develop\n"
    meta = b'meta: {"a":\n 1\n}\n'
    front = read_front_matter(b"---\n" + categories + meta + b"layout: cache\n---")
    assert front.values == {"categories": ["package", "develop"], "layout": "cache"}
    assert front.json["meta"].text == b'{"a":\n 1\n}'
    assert front.lines == {"categories": 2, "meta": 7, "layout": 10}


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"", 0, "the file is empty, expected a page that starts with ---"),
        (b" \n\n", 0, "the file is empty, expected a page that starts with ---"),
        (b"---", 1, "the front matter is not closed, expected a second line ---"),
        (b"---\n", 1, "the front matter is not closed, expected a second line ---"),
        (b"---\na: 1\n----\n", 1, "the front matter is not closed, expected a second line ---"),
        (b"--- x\na: 1\n---\n", 1, "no front matter, expected --- on the first line"),
        (b"\n---\na: 1\n---\n", 1, "no front matter, expected --- on the first line"),
        (b"\xef\xbb\xbf---\n---", 1, "no front matter, expected --- on the first line"),
        (b"---\na: 1\nb: \0\n---", 3, "a NUL byte, expected UTF-8 text"),
        (b"---\na: 1\nb: \xe9\n---", 3, "not UTF-8: byte 0xe9, expected UTF-8 text"),
        (b"---\na: 1\n---\n\ntext", 4, "text after the front matter, expected none"),
        (b"---\na: 1\nb: 2\na: 1\n---", 4, "the key a is listed twice, first on line 2"),
        (b"---\na: 1\nb\n---", 3, "broken YAML: this is not an entry, expected `key: value`"),
        (b"---\na: 'x\n---", 2, "broken YAML: found unexpected end of stream"),
        (
            b"---\nb: 1\na: *x\n---",
            3,
            "has YAML aliases (*x), expected none",
        ),
        (b'---\na: "\\ud800"\n---', 2, "broken YAML: found invalid Unicode character escape"),
        (b"---\na: 1\n---\nb: 2\n---", 3, "broken YAML: but found another document"),
        (b"---\ntitle: \r.\n---", 2, "broken YAML: could not find expected ':'"),
        ("---\na: 1\nb: \x85.\n---".encode(), 3, "broken YAML: could not find expected ':'"),
        ("---\na: \u2028.\nb: 1\n---".encode(), 2, "broken YAML: could not find expected ':'"),
        (b"---\r\na: 1\r\nb: 'x\r\n---\r\n", 3, "broken YAML: found unexpected end of stream"),
        (b"---\n\xef\xbb\xbfa: 'x\n---", 2, "broken YAML: found unexpected end of stream"),
        (b"---\n\ta: 1\n---", 2, "broken YAML: found character that cannot start any token"),
        (b"---\na: 1\n? b\n: 2\n---", 4, "broken YAML: did not find expected key"),
        (b"---\n&x a: [*x]\n<<: *x\n---", 2, "has YAML aliases"),
        (b"---\na: &x [*x]\n---", 2, "has YAML aliases (*x), expected none"),
    ],
)
def test_what_is_no_front_matter_is_told(data: bytes, line: int, message: str) -> None:
    """The first fault, with its line where there is one."""
    with pytest.raises(LineFault) as caught:
        read_front_matter(data)
    assert (caught.value.line, caught.value.message[: len(message)]) == (line, message)


@pytest.mark.parametrize(
    ("entries", "lines"),
    [
        (b"{a: 1, b: 2}", {"a": 2, "b": 2}),
        (b"{a: 1,\n b: 2}", {"a": 2, "b": 3}),
        (b" a: 1\n b: 2", {"a": 2, "b": 3}),
        (b"a: 1\rb: 2", {"a": 2, "b": 2}),
        ("a: 1\u2028b: 2".encode(), {"a": 2, "b": 2}),
        (b"\"a\": 1\n'b': 2", {"a": 2, "b": 3}),
        (b"!!str a: 1\n&x b: 2", {"a": 2, "b": 3}),
        (b"a : 1\r\nb\t: 2\r", {"a": 2, "b": 3}),
    ],
)
def test_keys_may_be_spelled_as_yaml_allows(entries: bytes, lines: dict[str, int]) -> None:
    """However two keys are written, both are read, each on its own line; twice one is refused."""
    front = read_front_matter(b"---\n" + entries + b"\n---")
    assert (front.values, front.lines) == ({"a": "1", "b": "2"}, lines)
    with pytest.raises(LineFault, match="the key a is listed twice, first on line 2") as caught:
        read_front_matter(b"---\n" + entries.replace(b"b", b"a") + b"\n---")
    assert caught.value.line == lines["b"]


@pytest.mark.parametrize("depth", [20, 40, 100_000])
def test_deep_yaml_is_refused_and_shallow_is_not(depth: int) -> None:
    """The fast loader of YAML would end the process at great depth."""
    data = b"---\na: " + b"[" * depth + b"]" * depth + b"\n---"
    if depth < 32:
        assert read_front_matter(data).lines.keys() == {"a"}
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
            assert set(front.lines) == {*front.values, *front.json}
            assert all(1 < line < lines for line in front.lines.values())


@given(st.data())
def test_a_page_that_lost_its_end_is_never_whole(data: st.DataObject) -> None:
    """Cut anywhere, a page is refused."""
    whole = page()
    with pytest.raises(LineFault):
        read_front_matter(whole[: data.draw(st.integers(0, len(whole) - 1))])
