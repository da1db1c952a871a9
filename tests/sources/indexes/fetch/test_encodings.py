"""Content encodings, undone piece by piece."""

from __future__ import annotations

import gzip
import io
import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.indexes.fetch.encodings import (
    ENCODINGS,
    BrokenEncoding,
    TooLong,
    decoded,
)


def encode(name: str, data: bytes) -> bytes:
    """Return data in an encoding."""
    return gzip.compress(data) if name == "gzip" else zstandard.compress(data)


def decode(name: str, body: bytes, limit: int = 10**6) -> bytes:
    """Return what an encoded body is."""
    return b"".join(decoded(io.BytesIO(body), name, limit))


@given(st.sampled_from(ENCODINGS), st.lists(st.binary(max_size=3000), min_size=1, max_size=3))
def test_what_is_encoded_is_decoded(name: str, parts: list[bytes]) -> None:
    """All members of a body come, as far as there are bytes."""
    body = b"".join(encode(name, part) for part in parts)

    assert decode(name, body) == b"".join(parts)


@given(st.sampled_from(ENCODINGS), st.binary(max_size=3000), st.data())
def test_what_is_cut_is_refused(name: str, content: bytes, data: st.DataObject) -> None:
    """No body that is cut counts as whole."""
    body = encode(name, content)
    cut = data.draw(st.integers(0, len(body) - 1))

    with pytest.raises(BrokenEncoding):
        decode(name, body[:cut])


@pytest.mark.parametrize("name", ENCODINGS)
def test_what_follows_is_no_litter(name: str) -> None:
    """Bytes after the end are damage."""
    with pytest.raises(BrokenEncoding):
        decode(name, encode(name, b"hello") + b"more")


@pytest.mark.parametrize("name", ENCODINGS)
def test_the_limit_is_exact(name: str) -> None:
    """As many bytes as the limit are taken, one more is not."""
    assert decode(name, encode(name, b"x" * 1000), 1000) == b"x" * 1000
    with pytest.raises(TooLong):
        decode(name, encode(name, b"x" * 1001), 1000)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODINGS)
def test_a_bomb_takes_no_memory(name: str) -> None:
    """A body that unfolds ten thousandfold is stopped long before it is unfolded."""
    body = encode(name, b" " * 300_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(TooLong):
            decode(name, body, 10**6)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


def test_a_window_that_is_too_wide() -> None:
    """A frame of zstd that wants more than eight megabytes to be decoded is refused."""
    wide = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27)
    ).compressobj()
    body = wide.compress(b"x" * 100_000) + wide.flush()

    with pytest.raises(BrokenEncoding, match="sends broken zstd"):
        decode("zstd", body)
