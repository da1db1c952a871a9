"""What a response says before its body."""

from __future__ import annotations

import httpx
import pytest

from spack_cache_db.sources.fetch.web import Tags, length_of, tags_of


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


@pytest.mark.parametrize("tag", [b'"\xe9"', b'"\xff"', b'"a\tb"'])
def test_tags_that_no_request_can_repeat(tag: bytes) -> None:
    """What could not be sent back is no tag: every later run would fail."""
    assert tags_of(httpx.Response(200, headers=[(b"ETag", tag)])) == Tags()
