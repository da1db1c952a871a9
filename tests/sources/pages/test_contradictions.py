"""sources.pages.checks: what a page says twice is compared, and told if it differs.

The `meta` of a page sums up its listings: all versions, the number of specs and so on.
A summary that is wrong does not make the listings wrong, so the page is read, and the
difference is a problem of it.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.model import Problem
from spack_cache_db.sources.pages.checks import (
    computed_meta,
    declared_meta,
    normal_configuration,
)
from spack_cache_db.sources.pages.page import details_of
from spack_cache_db.sources.pages.reader import PageReader
from spack_cache_db.sources.writer import Writer
from tests.pagetexts import page, spec, spec_hash
from tests.sources.pages.parsing import parse, problems

SPECS = [spec(1, target="zen3", stacks=["e4s", "root"]), spec(2, stacks=["root"])]


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"num_specs": 7}, "meta declares num_specs 7, the page lists 2"),
        (
            {"stacks": ["e4s", "root", "tutorial"]},
            "meta.stacks declares tutorial, which no spec has",
        ),
        ({"oss": ["ubuntu24.04"] * 2}, "meta.oss has a repeated entry"),
        (
            {"num_specs_by_stack": {"e4s": 1, "root": 3}},
            "meta.num_specs_by_stack declares root 3, which no spec has "
            "and does not declare root 2, which specs have",
        ),
    ],
)
def test_what_does_not_add_up_is_told_and_kept(
    meta: dict[str, Any], message: str
) -> None:
    """A problem has the key, a message, and the value that the page declares."""
    (problem,) = problems(page(specs=SPECS, meta=meta))
    ((key, declared),) = meta.items()

    assert problem.code == key
    assert problem.message == message

    # Lists are sorted, because their order means nothing.
    if isinstance(declared, list):
        declared = sorted(declared)
    assert json.loads(problem.value or "") == declared


def test_text_that_is_no_variant_is_told_once() -> None:
    """It is kept as it is."""
    specs = [spec(1, variants=["a b"]), spec(2, variants=["+c", "a b"])]
    assert problems(page(specs=specs)) == (
        Problem("variant", "'a b' is not a variant of Spack's; stored unchanged", None),
    )


def test_a_page_that_adds_up_does_not_hide_one_that_does_not() -> None:
    """A reader remembers which pages add up, and takes no other page for one of
    them.
    """
    writer = Writer()
    reader = PageReader(writer)
    sound = parse(page(specs=SPECS))
    one, other = SPECS

    # Pages with the same `meta`, and these listings; a spec is listed only once.
    for first, second in ((one, other), (other, one), (other, other), (one, one)):
        listings = [first | {"hash": spec_hash(1)}, second | {"hash": spec_hash(2)}]
        reader.add(sound._replace(details=json.dumps(listings).encode()))

    codes = []
    for document in writer.columns.documents:
        codes.append([problem.code for problem in document.problems])
    assert codes == [
        [],
        [],
        ["targets", "stacks", "num_specs_by_stack"],
        ["targets", "num_specs_by_stack"],
    ]


NAMES = ["e4s", "root", "ubuntu24.04", "zen3", "x86_64_v3"]
LISTS_OF_NAMES = st.lists(st.sampled_from(NAMES))
COMPILERS = st.lists(st.sampled_from(["gcc@13.2.0", "gcc@=13.2.0", "gcc@12"]))
COUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2))
METAS = st.fixed_dictionaries(
    {},
    optional={
        "oss": LISTS_OF_NAMES,
        "stacks": LISTS_OF_NAMES,
        "targets": LISTS_OF_NAMES,
        "compilers": COMPILERS,
        "num_specs": st.integers(1, 3),
        "num_specs_by_stack": COUNTS,
    },
)


@given(METAS)
def test_a_problem_is_told_if_and_only_if_something_differs(
    meta: dict[str, Any],
) -> None:
    """Whatever is declared: there is one problem for each key with another value than
    the listings give.
    """
    data = page(specs=SPECS, meta=meta)
    parsed = parse(data)
    computed = computed_meta(
        [normal_configuration(parsed.package, detail) for detail in details_of(parsed)],
        [detail.stacks for detail in details_of(parsed)],
    )
    declared = declared_meta(parsed.meta)
    differing = [key for key, value in declared.items() if value != computed[key]]

    assert [problem.code for problem in problems(data)] == differing
