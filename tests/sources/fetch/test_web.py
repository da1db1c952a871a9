"""Requests: redirects, logins, pauses, limits."""

from __future__ import annotations

import asyncio
import threading

import pytest

from spack_cache_db.sources.fetch import FetchLimits
from spack_cache_db.sources.fetch.addresses import FetchFault
from spack_cache_db.sources.fetch.web import (
    Body,
    Headers,
    SilenceFault,
    Web,
)
from tests.sources.fetch.mirrors import QUICK
from tests.sources.fetch.server import (
    Handler,
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


def test_a_pause_that_is_too_long(site: Site, pauses: list[float]) -> None:
    """A server that asks for an hour is left for another day."""
    site.always["/a"] = status(429, retry_after=3600)

    with pytest.raises(SilenceFault, match=r"^answers 429, asks for a pause of 3,600 s: try later"):
        read(f"{site.url}/a")

    assert (pauses, len(site.asked)) == ([], 1)


def test_headers_that_never_end(site: Site) -> None:
    """A byte now and then keeps no connection open for ever."""
    site.serve({"a": b"hello"})

    def trickle(handler: Handler, data: bytes) -> None:
        for _ in range(200):
            handler.wfile.write(b"H")
            handler.wfile.flush()
            threading.Event().wait(0.02)

    site.always["/a"] = trickle

    with pytest.raises(SilenceFault, match=r"^does not answer in time; tried 1 time$"):
        read(f"{site.url}/a", FetchLimits(timeout=0.5, retries=0))


def test_nobody_listens() -> None:
    """A server that is not there is one line."""
    with pytest.raises(SilenceFault, match=r"^cannot be read: all connection attempts failed"):
        read("http://127.0.0.1:1/a")


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "ftp://example.org/a",
        "gopher://localhost/",
        "s3://bucket/a",
    ],
)
def test_redirects_to_other_schemes(site: Site, location: str) -> None:
    """A redirect leads nowhere but to HTTP."""
    site.always["/a"] = status(302, location=location)

    with pytest.raises(FetchFault, match=f"^leads to {location.partition(':')[0]}://, expected"):
        read(f"{site.url}/a")


@pytest.mark.parametrize(
    "location",
    [
        "data:,x",
        "http://[",
        "http://a b/",
        "http://",
        "http:///a",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:-1/",
        "http://xn--/",
        "http://999.999.999.999/",
        "\x01",
    ],
)
def test_redirects_to_nowhere(site: Site, location: str) -> None:
    """A redirect to what is not a URL is one line."""
    site.always["/a"] = status(302, location=location)

    with pytest.raises(FetchFault):
        read(f"{site.url}/a", FetchLimits(retries=0))
