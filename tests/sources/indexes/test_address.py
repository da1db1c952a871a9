"""The file that says where a mirror is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.sources.indexes.layouts import read_address, write_address
from spack_cache_db.sources.indexes.spack_json import IndexFault


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), max_size=50))
def test_what_is_written_is_read(rest: str) -> None:
    """A URL comes back as it went in."""
    assert read_address(write_address(f"https://{rest}")) == f"https://{rest}"


def test_the_file_is_json() -> None:
    """The file is small JSON, on lines that people can read."""
    data = write_address("oci://ghcr.io/a/b")

    assert json.loads(data) == {"url": "oci://ghcr.io/a/b"}
    assert data.endswith(b"}\n")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "broken address of a mirror: "),
        (b"{}", "broken address of a mirror: "),
        (b'{"url": 1}', "broken address of a mirror: "),
        (b'{"url": "https://a", "more": 1}', "broken address of a mirror: "),
        (b'{"url": "\xff"}', "broken address of a mirror: "),
        (b"[" * 100_000, "broken address of a mirror: "),
        (b'{"url": "somewhere"}', "the address of a mirror is no URL, expected one such as"),
        (b'{"url": "https://a b"}', "the address of a mirror is no URL, expected one such as"),
        (b'{"url": "https://a\\nb"}', "the address of a mirror is no URL, expected one such as"),
    ],
)
def test_what_says_no_address(data: bytes, message: str) -> None:
    """A file that says none is refused by what is wrong with it."""
    with pytest.raises(IndexFault, match=message):
        read_address(data)
