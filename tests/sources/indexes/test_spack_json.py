"""sources.indexes: nodes, manifests, addresses, signatures and compressed files."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.indexes import (
    IndexFault,
    decompressed,
    read_address,
    without_signature,
)
from tests.indexes import signed


@given(st.text(st.characters(codec="ascii", exclude_characters="\r"), max_size=200))
def test_the_text_of_a_signed_message_comes_back(text: str) -> None:
    """With lines that begin with a dash, and without its signature."""
    text = f"{{{text}"
    assert without_signature(signed(text).encode()) == text.encode()
    assert without_signature(text.encode()) == text.encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "broken address of a mirror: "),
        (b"{}", "broken address of a mirror: "),
        (b'{"url": 1}', "broken address of a mirror: "),
        (b'{"url": "https://a", "more": 1}', "broken address of a mirror: "),
        (b'{"url": "\xff"}', "broken address of a mirror: "),
        (b"[" * 100_000, "broken address of a mirror: "),
        (b'{"url": "somewhere"}', "the address of a mirror is not a URL, expected one such as"),
        (b'{"url": "https://a b"}', "the address of a mirror is not a URL, expected one such as"),
        (b'{"url": "https://a\\nb"}', "the address of a mirror is not a URL, expected one such as"),
    ],
)
def test_what_says_no_address(data: bytes, message: str) -> None:
    """A file that says none is refused by what is wrong with it."""
    with pytest.raises(IndexFault, match=message):
        read_address(data)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("form", sorted(PACK))
@given(data=st.binary(max_size=3000))
def test_what_was_packed_comes_back(form: str, data: bytes) -> None:
    """Whatever it is, and as it is if it is not packed."""
    assert decompressed(PACK[form](data), 3000) == data
    assert decompressed(b"{" + data, 1) == b"{" + data


@pytest.mark.parametrize("form", sorted(PACK))
def test_a_bomb_is_refused(form: str) -> None:
    """Ten megabytes of zeros have a few kilobytes."""
    with pytest.raises(IndexFault, match=r"has more than 1,000,000 bytes"):
        decompressed(PACK[form](bytes(10_000_000)), 1_000_000)


@pytest.mark.parametrize("form", sorted(PACK))
def test_what_is_cut_or_broken_is_refused(form: str) -> None:
    """At any place."""
    whole = PACK[form](bytes(range(256)) * 50)
    for end in (5, len(whole) // 2, len(whole) - 1):
        with pytest.raises(IndexFault, match="broken compression"):
            decompressed(whole[:end], 2**20)
    with pytest.raises(IndexFault, match="broken compression"):
        decompressed(whole[:4] + b"\xff" * 40, 2**20)
