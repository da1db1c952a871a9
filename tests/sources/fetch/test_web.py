"""Requests: redirects, logins, pauses, limits."""

from __future__ import annotations

import asyncio
import threading
import time
from email.utils import formatdate

import pytest

from spack_cache_db.sources.fetch import FetchLimits
from spack_cache_db.sources.fetch.addresses import FetchFault
from spack_cache_db.sources.fetch.web import (
    Body,
    Headers,
    LoginFault,
    NotThereFault,
    SilenceFault,
    Web,
)
from tests.sources.fetch.mirrors import QUICK
from tests.sources.fetch.server import (
    Answer as Behaviour,
)
from tests.sources.fetch.server import (
    Handler,
    Site,
    drop,
    encoded,
    instead,
    serve,
    silent,
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


def test_a_body(site: Site) -> None:
    """A body comes whole, with the tags of its state."""
    site.serve({"a": b"hello"})

    answer = read(f"{site.url}/a")

    assert answer.data == b"hello"
    assert answer.tags.conditions() == {"If-None-Match": answer.tags.etag}
    assert read(f"{site.url}/a", headers=answer.tags.conditions()).data is None


def test_an_encoded_body(site: Site) -> None:
    """Small bodies are decoded as large ones are."""
    site.serve({"a": b"hello"})
    site.always["/a"] = encoded("gzip")

    assert read(f"{site.url}/a").data == b"hello"


@pytest.mark.parametrize("behaviour", [instead(b"x" * 1001), encoded("gzip")])
def test_a_body_beyond_the_limit(site: Site, behaviour: Behaviour) -> None:
    """Small bodies have limits of their own, encoded or not."""
    site.serve({"a": b"x" * 1001})
    site.always["/a"] = behaviour

    with pytest.raises(FetchFault, match=r"^has more than 1,000 bytes"):
        read(f"{site.url}/a")


def test_pauses_grow(site: Site, pauses: list[float]) -> None:
    """Each pause is twice as long as the one before; then it is enough."""
    site.always["/a"] = drop

    with pytest.raises(SilenceFault, match=r"^cannot be read: .*; tried 5 times$"):
        read(f"{site.url}/a", FetchLimits(pause=1))

    assert pauses == [1, 2, 4, 8]


@pytest.mark.parametrize("as_date", [False, True])
def test_pauses_that_the_server_asks_for(site: Site, pauses: list[float], as_date: bool) -> None:
    """Seconds or a date: no request comes earlier."""

    def busy(handler: Handler, data: bytes) -> None:
        after = formatdate(time.time() + 101, usegmt=True) if as_date else "100"
        handler.send(503, b"", retry_after=after)

    site.serve({"a": b"hello"})
    site.answers["/a"] = [busy]

    assert read(f"{site.url}/a").data == b"hello"

    assert len(pauses) == 1
    assert 90 < pauses[0] <= 101


@pytest.mark.parametrize(
    "after",
    ["soon", "", "-5", "Sun, 06 Nov 1994 08:49:37 GMT", f"Sun, 06 Nov {10**20} 08:49:37 GMT"],
)
def test_pauses_that_mean_nothing(site: Site, pauses: list[float], after: str) -> None:
    """What names no time to come changes nothing."""
    site.serve({"a": b"hello"})
    site.answers["/a"] = [status(503, retry_after=after)]

    assert read(f"{site.url}/a", FetchLimits(pause=3)).data == b"hello"

    assert pauses == [3]


def test_a_pause_that_is_too_long(site: Site, pauses: list[float]) -> None:
    """A server that asks for an hour is left for another day."""
    site.always["/a"] = status(429, retry_after=3600)

    with pytest.raises(SilenceFault, match=r"^answers 429, asks for a pause of 3,600 s: try later"):
        read(f"{site.url}/a")

    assert (pauses, len(site.asked)) == ([], 1)


def test_a_server_that_says_nothing(site: Site) -> None:
    """A connection without a byte is given up, and tried again."""
    site.serve({"a": b"hello"})
    site.answers["/a"] = [silent(2)]

    assert read(f"{site.url}/a", FetchLimits(timeout=0.5, pause=0.01)).data == b"hello"


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


def test_statuses(site: Site) -> None:
    """What no retry mends is said at once."""
    for number, kind in ((404, NotThereFault), (401, LoginFault), (418, FetchFault)):
        site.always["/a"] = status(number)
        with pytest.raises(kind):
            read(f"{site.url}/a")
    assert len(site.asked) == 3


@pytest.mark.parametrize("number", [301, 302, 303, 307, 308])
def test_redirects(site: Site, number: int) -> None:
    """Redirects are followed, to other hosts as well."""
    with serve({"b": b"hello"}) as other:
        site.always["/a"] = status(number, location=f"{other.url}/b")

        assert read(f"{site.url}/a").data == b"hello"


def test_redirects_within_a_host(site: Site) -> None:
    """A redirect may name a path alone."""
    site.serve({"b/c": b"hello"})
    site.always["/a"] = status(302, location="b/c")

    assert read(f"{site.url}/a").data == b"hello"


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
    """A redirect to what is no URL is one line."""
    site.always["/a"] = status(302, location=location)

    with pytest.raises(FetchFault):
        read(f"{site.url}/a", FetchLimits(retries=0))


@pytest.mark.parametrize("url", ["http://xn--/a", "http://\u2177.example/a", "http://127.0.0.1:0/"])
def test_names_of_no_host(url: str) -> None:
    """A host that no name server could know is one line."""
    with pytest.raises(FetchFault):
        read(url, FetchLimits(retries=0))


def test_redirects_in_a_circle(site: Site) -> None:
    """A circle ends."""
    site.always["/a"] = status(302, location="/a")

    with pytest.raises(FetchFault, match=r"^leads on more than 10 times, expected an answer"):
        read(f"{site.url}/a")


def test_a_password_goes_to_its_own_host_alone(site: Site) -> None:
    """A user and a password of a URL are sent there, and not where it leads."""
    with serve({"b": b"hello"}) as other:
        site.always["/a"] = status(302, location="/again")
        site.always["/again"] = status(302, location=f"{other.url}/b")

        read(site.url.replace("://", "://me:secret@") + "/a")

        assert [bool(each.headers.get("authorization")) for each in site.asked] == [True, True]
        assert [each.headers.get("authorization") for each in other.asked] == [None]


def test_progress_adds_up(site: Site) -> None:
    """What came never exceeds what is expected, and is all of it at the end."""
    site.serve({"a": b"x" * 900, "b": b"y" * 900})
    site.answers["/b"] = [drop, status(500)]
    seen: list[tuple[int, int]] = []

    async def both() -> int:
        async with Web(QUICK, lambda done, total: seen.append((done, total))) as web:
            await asyncio.gather(*(web.read(f"{site.url}/{name}", 1000) for name in "ab"))
            return web.received

    assert asyncio.run(both()) == 1800
    assert all(done <= total for done, total in seen)
    assert seen[-1] == (1800, 1800)
