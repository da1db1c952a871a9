"""verify.compare: what differs is named, and only that."""

from __future__ import annotations

from typing import Any

import pytest

from spack_cache_db.verify.compare import differences

DETAIL = {"hash": "h", "size": "-", "stacks": ["e4s", "root"]}
META = {"num_specs": 1, "targets": ["zen3"], "num_specs_by_stack": {"e4s": 1, "root": 1}}
PAGE = {"meta": META, "spec_details": {"h": DETAIL}}


def page(meta: dict[str, Any] | None = None, **details: dict[str, Any]) -> dict[str, Any]:
    """Return the page with these changes."""
    return {"meta": META | (meta or {}), "spec_details": {"h": DETAIL} | details}


def test_what_is_the_same_is_not_told() -> None:
    """Nothing differs, nothing is said."""
    assert [*differences(PAGE, page())] == []


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (page({"num_specs": 2}), "meta.num_specs is 1, the file has 2"),
        (page({"targets": ["zen2", "zen3"]}), 'meta.targets is [], the file has ["zen2"]'),
        (page({"targets": ["zen3"] * 2}),
         'meta.targets is ["zen3"], the file has ["zen3", "zen3"]'),
        (
            page({"num_specs_by_stack": {"e4s": 2, "root": 1}}),
            'meta.num_specs_by_stack is {"e4s": 1}, the file has {"e4s": 2}',
        ),
        (page(h=DETAIL | {"size": "ä"}), 'the spec h: size is "-", the file has "ä"'),
        (page(h=DETAIL | {"stacks": ["e4s"]}), 'the spec h: stacks is ["root"], the file has []'),
        (page(h=DETAIL | {"license": "MIT"}),
         'the spec h: license is not there, the file has "MIT"'),
        (page(h={"hash": "h", "size": "-"}),
         'the spec h: stacks is ["e4s", "root"], the file has none'),
        (page(i=DETAIL), "does not list the spec i, the file does"),
        ({"meta": META, "spec_details": {}}, "lists the spec h, the file does not"),
    ],
)  # fmt: skip
def test_what_differs_is_told_in_one_line(stored: dict[str, Any], said: str) -> None:
    """First what the page says, then what the file says."""
    assert [*differences(PAGE, stored)] == [said]


def test_all_that_differs_is_told() -> None:
    """Part by part, in order."""
    stored = page({"num_specs": 2}, h=DETAIL | {"size": "7", "hash": "x"}, i=DETAIL)
    assert [each.split(",")[0] for each in differences(PAGE, stored)] == [
        "meta.num_specs is 1",
        'the spec h: hash is "h"',
        'the spec h: size is "-"',
        "does not list the spec i",
    ]
