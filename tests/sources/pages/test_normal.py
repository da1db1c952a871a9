"""sources.pages.normal: one thing spelled in two eras becomes one, and nothing else changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.records import Configuration
from spack_cache_db.sources.pages.page_format import SpecDetail
from spack_cache_db.sources.pages.page_reader import as_set, kept_variant, normal_configuration
from spack_cache_db.spack.variants import variant_row
from tests.pagetexts import spec

TEXTS = st.lists(st.text(max_size=4), unique=True, max_size=5)


def configuration(**changes: Any) -> Configuration:
    """Return the normal configuration of a spec with these changes."""
    return normal_configuration("zlib", msgspec.convert(spec(**changes), SpecDetail))


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ({"compiler": "gcc@=13.2.0"}, {"compiler": "gcc@13.2.0"}),
        ({"compiler": "gcc@13.2.0/abcdefg"}, {"compiler": "gcc@13.2.0"}),
        ({"variants": ["libs:=static,shared"]}, {"variants": ["libs=shared,static"]}),
        ({"variants": ["patches:=cc8ac22"]}, {"variants": ["patches=cc8ac22"]}),
        ({"variants": ["~ipo", "+cuda"]}, {"variants": ["+cuda", "~ipo"]}),
    ],
)
def test_two_spellings_are_one_configuration(
    then: dict[str, object], now: dict[str, object]
) -> None:
    """The same thing in two eras."""
    assert configuration(**then) == configuration(**now)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"compiler": "gcc@13.2.0"}, {"compiler": "gcc@13.2"}),
        ({"compiler": "none"}, {"compiler": "gcc"}),
        ({"variants": ["+cuda"]}, {"variants": ["~cuda"]}),
        ({"variants": ["a b"]}, {"variants": ["a", "b"]}),
        ({"variants": []}, {"variants": [""]}),
        ({"variants": ["x=True"]}, {"variants": ["+x"]}),
        ({"os": "rhel8"}, {"os": "RHEL8"}),
        ({"versions": ["1.0"]}, {"versions": ["1.00"]}),
    ],
)
def test_other_things_stay_apart(one: dict[str, object], other: dict[str, object]) -> None:
    """Nothing is made equal that the pages tell apart."""
    assert configuration(**one) != configuration(**other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"versions": []}, "has 0 versions, expected one"),
        ({"versions": ["1", "2"]}, "has 2 versions, expected one"),
        ({"variants": ["+a", "+a"]}, r"lists the variant '\+a' twice, expected once"),
        ({"variants": ["a=x", "a:=x"]}, "lists the variant 'a=x' twice, expected once"),
        ({"compiler": ""}, "'' is not a compiler"),
        ({"compiler": "gcc@"}, "'gcc@' is not a compiler"),
    ],
)
def test_what_a_row_cannot_hold_is_refused(changes: dict[str, object], message: str) -> None:
    """Rather than dropped."""
    with pytest.raises(ValueError, match=message):
        configuration(**changes)


@given(TEXTS)
def test_a_set_has_one_order(texts: list[str]) -> None:
    """Sorted, with every member, whatever the order of the page."""
    assert as_set("stack", reversed(texts)) == as_set("stack", texts)
    assert sorted(as_set("stack", texts)) == sorted(texts)


@given(TEXTS.filter(bool))
def test_a_set_refuses_what_stands_twice(texts: list[str]) -> None:
    """A set cannot give it back."""
    with pytest.raises(ValueError, match="twice, expected once"):
        as_set("stack", [*texts, texts[0]])


@given(st.text(max_size=12))
def test_normal_text_is_its_own_normal_form(text: str) -> None:
    """Applied twice it changes nothing more; what is no variant stays as it is."""
    assert kept_variant(kept_variant(text)) == kept_variant(text)
    if variant_row(text) is None:
        assert kept_variant(text) == text
