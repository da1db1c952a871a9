"""sources.indexes.compression: what lies under a compression, never more than is allowed."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.indexes.layouts import decompressed
from spack_cache_db.sources.indexes.spack_json import IndexFault

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
