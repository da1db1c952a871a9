"""What a response says before its body."""

from __future__ import annotations

import httpx
import pytest

from spack_cache_db.sources.indexes.fetch.addresses import FetchFault
from spack_cache_db.sources.indexes.fetch.web import Tags, encoding_of, length_of, tags_of

NOTHING = httpx.ByteStream(b"")


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("gzip", "gzip"), ("X-GZIP", "gzip"), (" zstd ", "zstd"), ("identity", ""), ("", "")],
)
def test_encodings(name: str, encoding: str) -> None:
    """Encodings have several spellings (RFC 9110 section 8.4.1)."""
    response = httpx.Response(200, headers={"Content-Encoding": name}, stream=NOTHING)

    assert encoding_of("https://host", response) == encoding


@pytest.mark.parametrize("name", ["br", "deflate", "gzip, zstd", "gzip\x7f"])
def test_unknown_encodings(name: str) -> None:
    """What cannot be undone is refused by name."""
    response = httpx.Response(200, headers={"Content-Encoding": name}, stream=NOTHING)

    with pytest.raises(FetchFault, match="expected gzip, zstd or none"):
        encoding_of("https://host", response)


@pytest.mark.parametrize(
    ("text", "length"), [("0", 0), ("12", 12), ("-1", None), ("a", None), ("9" * 5000, None)]
)
def test_lengths(text: str, length: int | None) -> None:
    """A length that is none is as good as no word."""
    assert length_of(httpx.Response(200, headers={"Content-Length": text})) == length


def test_tags() -> None:
    """Tags are kept as they are sent, weak ones as well."""
    headers = {"ETag": 'W/"a"', "Last-Modified": "yesterday"}

    assert tags_of(httpx.Response(200, headers=headers)) == Tags('W/"a"', "yesterday")
    assert tags_of(httpx.Response(200)) == Tags()
