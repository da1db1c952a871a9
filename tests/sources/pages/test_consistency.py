"""sources.pages: what a page says of itself, held against what it lists."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from spack_cache_db.records import Problem
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import Writer
from spack_cache_db.sources.pages import (
    PageReader,
    as_set,
    computed_meta,
    declared_meta,
    normal_configuration,
    page_problems,
)
from spack_cache_db.sources.pages.page_parser import Page, parse_page
from tests.pagetexts import page, spec

NAMES = ["e4s", "root", "ubuntu24.04", "zen3", "x86_64_v3"]
SPECS = [spec(1, target="zen3", stacks=["e4s", "root"]), spec(2, stacks=["root"])]


def parsed(data: bytes) -> Page:
    """Parse a page."""
    return parse_page(RawFile("a.md", "a.md", data))


def computed(found: Page) -> dict[str, Any]:
    """Return the `meta` that a page's specs imply."""
    return computed_meta(
        {normal_configuration(found.package, each) for each in found.details},
        Counter(as_set("stack", each.stacks) for each in found.details).items(),
    )


def problems(data: bytes) -> list[Problem]:
    """Return what does not add up in a page."""
    found = parsed(data)
    return list(
        page_problems(
            found.meta,
            {normal_configuration(found.package, each) for each in found.details},
            Counter(as_set("stack", each.stacks) for each in found.details).items(),
        )
    )


@pytest.mark.parametrize(
    ("meta", "code", "message"),
    [
        ({"num_specs": 7}, "num_specs", "meta declares num_specs 7, the page lists 2"),
        (
            {"stacks": ["e4s", "root", "tutorial"]},
            "stacks",
            "meta.stacks declares tutorial, which no spec has",
        ),
        ({"oss": ["ubuntu24.04"] * 2}, "oss", "meta.oss has a repeated entry"),
        (
            {"num_specs_by_stack": {"e4s": 1, "root": 3}},
            "num_specs_by_stack",
            "meta.num_specs_by_stack declares root 3, which no spec has "
            "and does not declare root 2, which specs have",
        ),
        (
            {"compilers": ["gcc@13.2.0", ""]},
            "compilers",
            "meta.compilers declares , which no spec has",
        ),
    ],
)
def test_what_does_not_add_up_is_told_and_kept(
    meta: dict[str, Any], code: str, message: str
) -> None:
    """The value is the JSON of what the page says instead."""
    (found,) = problems(page(specs=SPECS, meta=meta))
    assert (found.code, found.message) == (code, message)
    assert json.loads(found.value or "") == (
        sorted(meta[code]) if isinstance(meta[code], list) else meta[code]
    )


def told(data: bytes) -> tuple[Problem, ...]:
    """Return the problems of a page, as its reader tells them."""
    writer = Writer()
    PageReader(writer).keep(parsed(data))
    return writer.columns.documents[0].problems


def test_text_that_is_no_variant_is_told_once() -> None:
    """It is kept as it is."""
    specs = [spec(1, variants=["a b"]), spec(2, variants=["+c", "a b"])]
    assert told(page(specs=specs)) == (
        Problem("variant", "'a b' is not a variant of Spack's; stored unchanged", None),
    )


def test_a_page_that_adds_up_does_not_hide_one_that_does_not() -> None:
    """What is remembered of a sound page counts for its equals alone."""
    writer = Writer()
    reader = PageReader(writer)
    sound = parsed(page(specs=SPECS))
    one, other = sound.details
    for details in ((one, other), (other, one), (other, other), (one, one)):
        reader.keep(replace(sound, details=details))
    found = [[each.code for each in document.problems] for document in writer.columns.documents]
    assert found == [
        [],
        [],
        ["targets", "stacks", "num_specs_by_stack"],
        ["targets", "num_specs_by_stack"],
    ]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("oss", "stacks", "targets"), st.lists(st.sampled_from(NAMES))),
            "compilers": st.lists(st.sampled_from(["gcc@13.2.0", "gcc@=13.2.0", "gcc@12"])),
            "num_specs": st.integers(1, 3),
            "num_specs_by_stack": st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2)),
        },
    )
)
def test_a_problem_is_told_if_and_only_if_something_differs(meta: dict[str, Any]) -> None:
    """Whatever is declared: there are as many problems as keys that are not what they must."""
    data = page(specs=SPECS, meta=meta)
    declared, implied = declared_meta(parsed(data).meta), computed(parsed(data))
    differing = [key for key, value in declared.items() if value != implied[key]]
    assert [problem.code for problem in problems(data)] == differing
