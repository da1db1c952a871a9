"""bounded_yaml: nodes with their lines, values, and what is refused."""

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from spack_cache_db.bounded_yaml import (
    CONFIGURATION_BOUNDS,
    YamlBounds,
    compose,
    entries_of,
    line_of,
    load,
    text_value,
)
from spack_cache_db.errors import LineFault

BOUNDS = YamlBounds(parts=5_000)
DEEP = "[" * 100_000 + "]" * 100_000
READERS = [compose, load]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: [", 1, "broken YAML"),
        ("a: 1\n---\nb: 2", 2, "a second document begins here"),
        ("a:\n\tb: 1", 2, "a tab, expected blanks"),
        ("a:\n- %gcc@13", 2, "a value cannot begin with %: put it in quotes"),
        ("a: [@1.2]", 1, "a value cannot begin with @: put it in quotes"),
        ("a: 1\nb: [\n", 2, "broken YAML"),
        (DEEP, 1, "nested more than 32 levels"),
        (DEEP[:100_000], 1, "nested more than 32 levels"),
        ("- a\n" * 6_000, 0, "more than 5,000 parts"),
        ("x" * (BOUNDS.size + 1), 0, "characters, expected at most"),
        ("a: *b", None, "YAML"),
        ("a: \x07", 0, "broken YAML"),
        ("a: \ud800", 0, "broken YAML"),
    ],
)
def test_broken_yaml_is_refused_with_its_line(
    read: Any, text: str, line: int | None, message: str
) -> None:
    """Broken, deep and endless YAML is refused with its line, and ends no process."""
    with pytest.raises(LineFault, match=message) as fault:
        read(text, BOUNDS)
    assert line is None or fault.value.line == line


@pytest.mark.parametrize("line_break", ["\r", "\x85", "\u2028", "\u2029", "\r\n", "\n"])
def test_lines_end_in_a_line_feed(line_break: str) -> None:
    """A character that only YAML takes for the end of a line does not change the lines
    of nodes and faults.
    """
    is_line = line_break.endswith("\n")
    text = f"a: &x [1]{line_break}b: [2, *x]\nc:{line_break}  d: 3\n"
    node = compose(text)

    assert node is not None

    lines = {key.value: line_of(key) for key, _ in node.value}
    assert lines == {"a": 1, "b": 1 + is_line, "c": 2 + is_line}
    for rest, message in (
        ("b: &x\n- *x\n", "contains itself"),
        ("b: 2\nc: ]\nd: 3\n", "broken YAML"),
        ("b: 2\nc: *y\nd: 3\n", "undefined alias"),
    ):
        with pytest.raises(LineFault, match=message) as fault:
            compose(f"a: '1{line_break}'\n{rest}")
        assert fault.value.line == 3 + is_line


@pytest.mark.parametrize(
    "scalar",
    [
        '!!int ""',
        "!!bool x",
        "!!timestamp x",
        "!!float x",
        "!!binary é",
        "2026-13-45",
        "!!python/object:os.system x",
        "9" * 5_000,
        "1" + ":1" * 10_000,
        "? [a]\n  : b",
    ],
)
def test_a_value_that_its_tag_does_not_allow_is_refused_with_its_line(
    scalar: str,
) -> None:
    """Whatever PyYAML raises for it."""
    with pytest.raises(LineFault, match="broken YAML") as fault:
        load(f"a: 1\nb:\n  {scalar}\n", BOUNDS)
    assert fault.value.line == 3


@example("\r=")
@example("\x85\x85!!int x")
@given(st.text("!&*[]{}:,-?|>'\"%@` \n\r\tab1.\x85\ufeff<=~#", max_size=60))
def test_any_text(text: str) -> None:
    """A text is a value, the one that PyYAML reads, or a fault, and nothing else is
    raised.
    """
    try:
        value = load(text, BOUNDS)
    except LineFault as fault:
        assert 0 <= fault.line <= len(text.splitlines()) + 1
    else:
        assert repr(value) == repr(yaml.load(text, Loader=yaml.CSafeLoader))


@pytest.mark.parametrize("broken", ["\r\n", "\n", "\U0001f600"])
def test_lines_are_those_of_the_file(broken: str) -> None:
    """As editors and `grep -n` count them."""
    text = f"a:\n- &x '{broken} {broken}'\n- b: *x\n# é{broken}#\n  c: d\n"
    node = compose(text, BOUNDS)

    assert node is not None

    ((_, items),) = node.value
    first, second = items.value
    (b, x), (c, d) = second.value

    assert x is first
    for each, word in ((first, "'"), (b, "b:"), (c, "c:"), (d, "d\n")):
        assert line_of(each) == text[: text.index(word)].count("\n") + 1


def test_merged_keys() -> None:
    """Own keys count before merged ones, and earlier mappings before later ones."""
    node = compose(
        "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}", BOUNDS
    )
    assert node is not None
    assert text_value(node)["c"] == {"x": "3", "y": "1", "z": "2"}


@pytest.mark.parametrize("text", ["a: {<<: 1}", "a: {<<: [{b: 1}, c]}"])
def test_merging_something_else(text: str) -> None:
    """Only a mapping can be merged."""
    with pytest.raises(LineFault, match="for merging"):
        compose(text, BOUNDS)


DOUBLING = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 9))]
)
LONG = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 9)}]"
FIFTY_KEYS = ", ".join(f"k{n}: v" for n in range(50))
MERGES = [f"m{n}: &m{n} {{<<: *m{n - 1}}}" for n in range(1, 9)]
MERGING_ALL = "\n".join([f"m0: &m0 {{{FIFTY_KEYS}}}", *MERGES])


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DOUBLING, "has more than 300 parts, aliases written out"),
        (MERGING_ALL, "has more than 300 parts, aliases written out"),
        (LONG, "has more than 500,000 characters, aliases written out"),
        ("a: &a [b, *a]", r"\*a contains itself"),
        ("a: &a {<<: *a}", r"\*a contains itself"),
        ("a: &a {b: {<<: *a}}", r"\*a contains itself"),
    ],
)
def test_aliases_count_as_written_out(read: Any, text: str, message: str) -> None:
    """A text is as large as it is with its aliases written out, however few they
    are.
    """
    bounds = YamlBounds(size=500_000, parts=300)
    assert len(text) < 200_000
    with pytest.raises(LineFault, match=message):
        read(text, bounds)


@pytest.mark.parametrize("text", ["a: 1\na: 2", "[1]", "x"])
def test_only_mappings_with_different_keys_are_read(text: str) -> None:
    """A key that stands twice, a merge, and what is no mapping are refused, not
    guessed.
    """
    node = compose(text, CONFIGURATION_BOUNDS)
    assert node is not None
    with pytest.raises(LineFault):
        entries_of(node, "a thing")
