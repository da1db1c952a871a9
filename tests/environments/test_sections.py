"""environments.sections: lists and mappings of a `spack.yaml`."""

from __future__ import annotations

import pytest

from spack_cache_db.bounded_yaml import compose, line_of
from spack_cache_db.environments.sections import BOUNDS, entries_of, items_of
from spack_cache_db.errors import LineFault


def test_nodes_know_their_lines() -> None:
    """Entries and items are given with lines; null items and values are left out."""
    node = compose("a:\n- x\n-\n- y\nb:\n", BOUNDS)
    assert node is not None
    entries = entries_of(node, "a thing")

    assert [line_of(each) for each in items_of(entries["a"], "things")] == [2, 4]
    assert items_of(entries["b"], "things") == []


@pytest.mark.parametrize("text", ["a: 1\na: 2", "<<: {a: 1}", "[1]", "x"])
def test_what_is_no_mapping(text: str) -> None:
    """A key that stands twice, a merge, and what is no mapping are refused, not guessed."""
    node = compose(text, BOUNDS)
    assert node is not None
    with pytest.raises(LineFault):
        entries_of(node, "a thing")
