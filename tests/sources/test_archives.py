"""The bytes of an archive under any compression, and an end that is really there."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.archives import MAX_HEADERS, TarStream, decompressed, unpacked_limit

BLOCK = tarfile.BLOCKSIZE


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.tar", bytes),
        ("a.tar.gz", gzip.compress),
        ("A.TGZ", gzip.compress),
        ("a.tar.zst", zstandard.compress),
        ("a.tar.zst", lambda data: zstandard.compress(data[:9]) + zstandard.compress(data[9:])),
    ],
)
def test_the_name_says_how_it_is_packed(name: str, pack: object) -> None:
    """Also in several frames, as parallel compressors write them."""
    data = bytes(range(256)) * 40
    with decompressed(name, io.BytesIO(pack(data))) as stream:  # type: ignore[operator]
        watched = TarStream(stream, len(data))
        found = b"".join(iter(lambda: watched.read(1000), b""))
    assert found == data


@given(st.binary(max_size=2000), st.integers(1, 700))
def test_reading_changes_nothing(data: bytes, size: int) -> None:
    """Whatever the pieces are."""
    watched = TarStream(io.BytesIO(data), len(data))
    assert b"".join(iter(lambda: watched.read(size), b"")) == data


@pytest.mark.parametrize("zeros", [2, 3, 20])
@pytest.mark.parametrize("read", [0, 700, 5000])
def test_an_archive_ends_with_two_blocks_of_zeros(zeros: int, read: int) -> None:
    """Or more; whoever asks may have read any part of it."""
    watched = TarStream(io.BytesIO(b"x" * BLOCK + bytes(zeros * BLOCK)), 0)
    watched.read(read)
    watched.require_end(BLOCK)


@pytest.mark.parametrize("zeros", [0, 1, BLOCK, 2 * BLOCK - 1])
def test_an_end_that_is_cut_off_is_told(zeros: int) -> None:
    """It would pass for the end otherwise."""
    watched = TarStream(io.BytesIO(b"x" * BLOCK + bytes(zeros)), 0)
    with pytest.raises(tarfile.ReadError, match="it is truncated"):
        watched.require_end(BLOCK)


def test_what_follows_the_end_is_told() -> None:
    """A damaged header looks like the end, and hides the rest."""
    watched = TarStream(io.BytesIO(b"x" * BLOCK + bytes(BLOCK) + b"y" + bytes(4 * BLOCK)), 0)
    with pytest.raises(tarfile.ReadError, match="no member starts at byte 512, and it goes on"):
        watched.require_end(BLOCK)


def test_more_than_is_expected_is_not_read() -> None:
    """Whoever reads says how much may come; a header that claims more is refused unread."""
    stream = io.BytesIO(bytes(3 * MAX_HEADERS))
    watched = TarStream(stream, 0)
    assert len(watched.read(MAX_HEADERS)) == MAX_HEADERS
    with pytest.raises(tarfile.ReadError, match="the headers of a member have more than 1,048,576"):
        watched.read(1)
    watched.expect(700)
    assert len(watched.read(700)) == 700
    assert stream.tell() == watched.tell() == MAX_HEADERS + 700


def test_a_stream_goes_forwards_up_to_its_limit() -> None:
    """What is passed over counts as well."""
    limit = unpacked_limit(0)
    watched = TarStream(io.BytesIO(bytes(limit + 1)), 0)
    watched.seek(limit)
    assert watched.tell() == limit
    with pytest.raises(tarfile.ReadError, match=f"it unpacks to more than {limit:,} bytes"):
        watched.seek(limit + 1)
