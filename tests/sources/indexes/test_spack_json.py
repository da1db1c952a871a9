"""Nodes of every specfile version as one record, and texts without their signatures."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.indexes.spack_json import (
    IndexFault,
    read_node,
    require_hash,
    without_signature,
)
from tests.indexes import hash_of, old_node, signed


@given(st.text(st.characters(codec="ascii", exclude_characters="\r"), max_size=200))
def test_the_text_of_a_signed_message_comes_back(text: str) -> None:
    """With lines that begin with a dash, and without its signature."""
    text = f"{{{text}"
    assert without_signature(signed(text).encode()) == text.encode()
    assert without_signature(text.encode()) == text.encode()


def test_a_node_is_the_same_in_the_first_specfile_and_the_second() -> None:
    """There, names of packages are keys."""
    one = read_node(json.dumps(old_node("a", "5", "b", "c")).encode(), is_named=True)
    two = read_node(json.dumps(old_node("a", "6", "b", "c")).encode(), is_named=False)

    assert one.edges == two.edges
    names = ("name", "version", "namespace", "hash", "compiler", "full_hash")
    assert [getattr(one, name) for name in names] == [getattr(two, name) for name in names]


@pytest.mark.parametrize("text", [b"{}", b'{"a": {}}', b"[]", b"1"])
def test_what_is_no_node_is_refused(text: bytes) -> None:
    """In either form."""
    for is_named in (False, True):
        with pytest.raises(msgspec.ValidationError):
            read_node(text, is_named=is_named)


def test_a_hash_has_thirty_two_characters() -> None:
    """Of base32, in small letters."""
    require_hash(hash_of("a"))
    for text in ("", "a" * 31, "a" * 33, "A" * 32, "a" * 31 + "1", "a" * 32 + "\n"):
        with pytest.raises(IndexFault, match="is no hash, expected 32 characters"):
            require_hash(text)
