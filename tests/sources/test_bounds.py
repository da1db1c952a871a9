"""sources.bounds: what no real source says is refused by name."""

from __future__ import annotations

import pytest

from spack_cache_db.records import Configuration
from spack_cache_db.sources.bounds import require_bounded, require_few, require_short
from tests.configurations import configuration


@pytest.mark.parametrize("word", [each for each in Configuration._fields if each != "variants"])
def test_names_have_at_most_two_hundred_characters(word: str) -> None:
    """Each text of a configuration; search words grow as the square of a package's name."""
    require_bounded(configuration(**{word: "a" * 200}))
    with pytest.raises(ValueError, match=f"has a {word} of 201 characters, expected at most 200"):
        require_bounded(configuration(**{word: "a" * 201}))


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        (("a=" + "b" * 4095,), "has a variant of 4,097 characters, expected at most 4,096"),
        (("a" * 201 + "=b",), "has a variant name of 201 characters, expected at most 200"),
        (tuple(f"+v{number}" for number in range(1001)), "has 1,001 variants, expected at most"),
    ],
)
def test_variants_are_bounded(variants: tuple[str, ...], words: str) -> None:
    """Their texts, their names, and how many there are."""
    with pytest.raises(ValueError, match=words):
        require_bounded(configuration(variants=variants))


def test_what_is_within_the_bounds_passes() -> None:
    """The bounds themselves are allowed."""
    require_short("text", "12345", 5)
    require_few("texts", 1000)
