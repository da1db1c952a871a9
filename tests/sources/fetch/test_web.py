"""Requests: redirects, logins, pauses, limits."""

from __future__ import annotations

import asyncio

import pytest

from spack_cache_db.sources.fetch import FetchLimits
from spack_cache_db.sources.fetch.web import (
    Body,
    Headers,
    SilenceFault,
    Web,
)
from tests.sources.fetch.mirrors import QUICK
from tests.sources.fetch.server import (
    Site,
    drop,
    status,
)

pytestmark = pytest.mark.slow


def read(url: str, limits: FetchLimits = QUICK, headers: Headers | None = None) -> Body:
    """Read a small body of at most 1,000 bytes."""

    async def once() -> Body:
        async with Web(limits) as web:
            return await web.read(url, 1000, headers or {})

    return asyncio.run(once())


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, without making them."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(round(seconds))

    monkeypatch.setattr(asyncio, "sleep", pause)
    return made


def test_pauses_grow(site: Site, pauses: list[float]) -> None:
    """Each pause is twice as long as the one before; then it is enough."""
    site.always["/a"] = drop

    with pytest.raises(SilenceFault, match=r"^cannot be read: .*; tried 5 times$"):
        read(f"{site.url}/a", FetchLimits(pause=1))

    assert pauses == [1, 2, 4, 8]


@pytest.mark.parametrize(("after", "pause"), [("100", 100), ("soon", 3), ("", 3), ("-5", 3)])
def test_pauses_that_the_server_asks_for(
    site: Site, pauses: list[float], after: str, pause: int
) -> None:
    """No request comes earlier; what names no time changes nothing."""
    site.serve({"a": b"hello"})
    site.answers["/a"] = [status(503, retry_after=after)]

    assert read(f"{site.url}/a", FetchLimits(pause=3)).data == b"hello"

    assert pauses == [pause]


def test_nobody_listens() -> None:
    """A server that is not there is one line."""
    with pytest.raises(SilenceFault, match=r"^cannot be read: all connection attempts failed"):
        read("http://127.0.0.1:1/a")
