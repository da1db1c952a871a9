"""sources: texts that no real source has are refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.records import Configuration
from spack_cache_db.sources import (
    require_bounded,
    require_name,
)
from spack_cache_db.spack.lexer import QuerySyntaxError, is_package, tokens
from tests.configurations import configuration

ODD = [
    "\u202e",
    "\u200b",
    "\n",
    "\x1b[2J",
    "\x85",
    "\u2028",
    "\u3000",
    "\ufeff",
    "\ud800",
    "\U000e0001",
]


@pytest.mark.parametrize("odd", ODD)
def test_no_name_changes_how_text_around_it_is_shown(odd: str) -> None:
    """No name or variant has control or format characters, ends of lines, halves of pairs."""
    texts = dict.fromkeys(Configuration._fields, f"a{odd}b") | {"variants": (f"a=b{odd}c",)}
    for changes in ({name: value} for name, value in texts.items()):
        with pytest.raises(ValueError, match=r"^has (?:a|the) ") as caught:
            require_bounded(configuration(**changes))
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["--help", "-rf", "-", " a", "a "])
def test_no_name_looks_like_an_option(name: str) -> None:
    """Names stand in commands to copy, and beside others in lists."""
    with pytest.raises(ValueError, match="expected a name"):
        require_name("stack", name)
    for word in ("package", "os", "target", "compiler"):
        with pytest.raises(ValueError, match="expected a name"):
            require_bounded(configuration(**{word: name}))


@given(st.text(st.sampled_from("aZ09_-. /@=é\n"), max_size=6))
def test_packages_are_those_that_a_spec_can_name(name: str) -> None:
    """A package is accepted if, and only if, a spec of this text names it."""
    try:
        (word,) = tokens(name)
        can_be_named = word.kind == "name" and word.text == name != "*"
    except (QuerySyntaxError, ValueError):
        can_be_named = False
    assert is_package(name) == can_be_named
