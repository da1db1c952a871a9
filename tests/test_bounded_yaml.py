"""bounded_yaml: nodes with their lines, values, and what is refused."""

from __future__ import annotations

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

BOUNDS = YamlBounds()
DEEP = "[" * 100_000 + "]" * 100_000
READERS = [compose, load]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: [", 1, "broken YAML"),
        ("a: 1\n---\nb: 2", 2, "broken YAML"),
        ("a: 1\nb: [\n", 2, "broken YAML"),
        (DEEP, 1, "nested more than 32 levels"),
        (DEEP[:100_000], 1, "nested more than 32 levels"),
        ("- a\n" * 60_000, 0, "more than 50,000 parts"),
        ("x" * (BOUNDS.size + 1), 0, "characters, expected at most"),
        ("a: *b", None, "YAML"),
        ("a: \x07", 0, "broken YAML"),
        ("a: \ud800", 0, "broken YAML"),
    ],
)
def test_what_is_refused(read: Any, text: str, line: int | None, said: str) -> None:
    """Broken, deep and endless YAML is refused with its line, and ends no process."""
    with pytest.raises(LineFault, match=said) as fault:
        read(text, BOUNDS)

    assert line is None or fault.value.line == line


@pytest.mark.parametrize(
    ("scalar", "line"),
    [
        ('!!int ""', 3),
        ("!!bool x", 3),
        ("!!timestamp x", 3),
        ("!!float x", 3),
        ("!!binary é", 3),
        ("!!python/object:os.system x", 3),
        ("2026-13-45", 3),
        ("9" * 5_000, 3),
        ("1" + ":1" * 10_000, 3),
        ("? [a]\n  : b", 3),
    ],
)
def test_a_scalar_that_is_none_of_its_tag(scalar: str, line: int) -> None:
    """Whatever PyYAML raises for a value, it is told with its line."""
    with pytest.raises(LineFault, match="broken YAML") as fault:
        load(f"a: 1\nb:\n  {scalar}\n", BOUNDS)

    assert fault.value.line == line


@example("\r=")
@given(st.text("!&*[]{}:,-?|>'\"%@` \n\r\tab1.\x85\ufeff<=~#", max_size=60))
def test_any_text(text: str) -> None:
    """A text is a value, the one that PyYAML reads, or a fault, and nothing else is raised."""
    try:
        value = load(text, BOUNDS)
    except LineFault as fault:
        assert 0 <= fault.line <= text.count("\n") + 1
    else:
        assert repr(value) == repr(yaml.load(text, Loader=yaml.CSafeLoader))


@given(st.sampled_from(["int", "float", "bool", "timestamp", "binary", "null"]), st.text())
def test_any_scalar_of_any_tag(tag: str, text: str) -> None:
    """A scalar is a value of its tag, or a fault."""
    quoted = text.replace("'", "''")
    try:
        load(f"!!{tag} '{quoted}'", BOUNDS)
    except LineFault as fault:
        assert "broken YAML" in fault.message


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


MERGING = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xyz"), max_size=3),
        st.lists(st.integers(0, 5), max_size=3),
    ),
    min_size=1,
    max_size=6,
)


@given(MERGING)
def test_keys_are_merged_as_pyyaml_merges_them(
    mappings: list[tuple[dict[str, str], list[int]]],
) -> None:
    """Own keys count before merged ones, and earlier mappings before later ones."""
    lines = []
    for number, (own, merged) in enumerate(mappings):
        pairs = [f"{key}: {value}" for key, value in own.items()]
        names = [f"*m{each}" for each in merged if each < number]
        pairs += [f"<<: [{', '.join(names)}]"] if len(names) > 1 else []
        pairs += [f"<<: {names[0]}"] if len(names) == 1 else []
        lines.append(f"m{number}: &m{number} {{{', '.join(pairs)}}}")
    text = "\n".join(lines)
    node = compose(text, YamlBounds())
    assert node is not None

    assert text_value(node) == yaml.safe_load(text)


@pytest.mark.parametrize("text", ["a: {<<: 1}", "a: {<<: [{b: 1}, c]}"])
def test_merging_something_else(text: str) -> None:
    """Only a mapping can be merged."""
    with pytest.raises(LineFault, match="for merging"):
        compose(text, BOUNDS)


DOUBLING = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 9))]
)
LONG = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 9)}]"
DEEPER = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [[[[*a{n - 1}]]]]" for n in range(1, 9))])
MERGING_ALL = "\n".join(
    ["m0: &m0 {" + ", ".join(f"k{n}: v" for n in range(50)) + "}"]
    + [f"m{n}: &m{n} {{<<: *m{n - 1}}}" for n in range(1, 9)]
)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DOUBLING, "has more than 300 parts, aliases written out"),
        (MERGING_ALL, "has more than 300 parts, aliases written out"),
        (LONG, "has more than 500,000 characters, aliases written out"),
        (DEEPER, "is nested more than 32 levels deep: use fewer"),
        ("a: &a [b, *a]", r"\*a contains itself"),
        ("a: &a {<<: *a}", r"\*a contains itself"),
        ("a: &a {b: {<<: *a}}", r"\*a contains itself"),
    ],
)
def test_aliases_count_as_what_they_stand_for(read: Any, text: str, said: str) -> None:
    """A text is as large as it is with its aliases written out, however few they are."""
    bounds = YamlBounds(size=500_000, parts=300)
    assert len(text) < 200_000
    with pytest.raises(LineFault, match=said):
        read(text, bounds)


TREES = st.recursive(
    st.text("xyz", max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab"), inner, max_size=4),
    max_leaves=20,
)


def _written(value: Any, anchors: list[str], choose: Any) -> str:
    """Write a value as YAML in one line, with aliases at places that are chosen."""
    if anchors and choose(st.integers(0, 3)) == 0:
        return f"*{choose(st.sampled_from(anchors))}"
    if isinstance(value, dict):
        pairs = [f"'{key}': {_written(each, anchors, choose)}" for key, each in value.items()]
        text = f"{{{', '.join(pairs)}}}"
    elif isinstance(value, list):
        text = f"[{', '.join(_written(each, anchors, choose) for each in value)}]"
    else:
        text = f"'{value}'"
    # The anchor is known behind the value only, so that nothing contains itself.
    anchors.append(f"n{len(anchors)}")
    return f"&{anchors[-1]} {text}"


def _extent(value: Any) -> tuple[int, int, int]:
    """Return the parts, characters and levels of a value that is written out, naively."""
    if isinstance(value, str):
        return 1, len(value), 0
    pairs = [*value, *value.values()] if isinstance(value, dict) else value
    inner = [_extent(each) for each in pairs]
    parts, size, depth = (
        (list(each) for each in zip(*inner, strict=True)) if inner else ([], [], [])
    )
    return 1 + sum(parts), sum(size), 1 + max(depth, default=0)


@given(st.data(), TREES)
def test_bounds_are_those_of_what_is_written_out(data: st.DataObject, value: Any) -> None:
    """A text is read within the bounds of its written-out value, and refused below any of them."""
    text = _written(value, [], data.draw)
    parts, size, depth = _extent(yaml.safe_load(text))
    # The text itself has to fit as well.
    size = max(size, len(text))
    node = compose(text, YamlBounds(size, parts, depth))

    assert node is not None
    assert text_value(node) == yaml.safe_load(text)
    for bounds in (
        YamlBounds(size, parts - 1, depth),
        YamlBounds(size, parts, depth - 1),
    ):
        if bounds.depth >= 0:
            with pytest.raises(LineFault):
                compose(text, bounds)


@pytest.mark.parametrize("text", ["a: 1\na: 2", "[1]", "x"])
def test_what_is_no_mapping(text: str) -> None:
    """A key that stands twice, a merge, and what is no mapping are refused, not guessed."""
    node = compose(text, CONFIGURATION_BOUNDS)
    assert node is not None
    with pytest.raises(LineFault):
        entries_of(node, "a thing")
