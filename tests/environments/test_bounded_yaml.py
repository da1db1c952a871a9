"""environments.bounded_yaml: nodes with their lines, and what is refused."""

from __future__ import annotations

import pytest

from spack_cache_db.environments.bounded_yaml import (
    MAX_LENGTH,
    compose,
    entries_of,
    items_of,
    line_of,
)
from spack_cache_db.environments.faults import Refused

DEEP = "[" * 5_000 + "]" * 5_000


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: [", 1, "broken YAML"),
        ("a: 1\n---\nb: 2", 2, "broken YAML"),
        ("a: 1\nb: [\n", 2, "broken YAML"),
        ("# \r\r\r\na: 1\nb: *c\n", 3, "broken YAML"),
        ("# a\x85b\na: 1\n", 2, "broken YAML"),
        (DEEP, 0, "nested more than 32 levels"),
        ("- a\n" * 60_000, 0, "more than 50,000 parts"),
        ("x" * (MAX_LENGTH + 1), 0, "characters, expected at most"),
        ("a: *b", 1, "broken YAML"),
        ("a: \x07", 0, "broken YAML"),
    ],
)
def test_what_is_refused(text: str, line: int, said: str) -> None:
    """Broken, deep and endless YAML is refused with its line, and ends no process."""
    with pytest.raises(Refused, match=said) as refused:
        compose(text)

    assert refused.value.line == line


def test_nodes_know_their_lines() -> None:
    """Entries and items are given with lines; null items and values are left out."""
    node = compose("a:\n- x\n-\n- y\nb:\n")
    assert node is not None
    entries = entries_of(node, "a thing")

    assert [line_of(each) for each in items_of(entries["a"], "things")] == [2, 4]
    assert items_of(entries["b"], "things") == []


@pytest.mark.parametrize("broken", ["\r", "\x85", "\u2028", "\u2029", "\r\n", "\n", "\U0001f600"])
def test_lines_are_those_of_the_file(broken: str) -> None:
    """As editors and `grep -n` count them, whatever else ends a line in YAML."""
    text = f"a: &x\n- '{broken} {broken}'\n- b: *x\n# é{broken}#\n  c: d\n"
    node = compose(text)
    assert node is not None
    ((_, items),) = node.value
    first, second = items.value
    (b, x), (c, d) = second.value

    assert x is items
    for each, word in ((first, "'"), (b, "b:"), (c, "c:"), (d, "d\n")):
        assert line_of(each) == text[: text.index(word)].count("\n") + 1


@pytest.mark.parametrize("text", ["a: 1\na: 2", "<<: {a: 1}", "[1]", "x"])
def test_what_is_no_mapping(text: str) -> None:
    """A key that stands twice, a merge, and what is no mapping are refused, not guessed."""
    node = compose(text)
    assert node is not None
    with pytest.raises(Refused):
        entries_of(node, "a thing")
