"""Requests over HTTP: redirects, retries with pauses, limits. Knows neither mirrors nor files."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import httpx
from msgspec import Struct

from spack_cache_db.errors import reason
from spack_cache_db.sources.indexes.fetch import FetchLimits, Progress
from spack_cache_db.sources.indexes.fetch.addresses import FetchFault
from spack_cache_db.sources.indexes.fetch.encodings import (
    ENCODINGS,
    BrokenEncoding,
    TooLong,
    decoded,
)


class NotThereFault(FetchFault):
    """Nothing is at the URL; stores of objects say so by 403 as well (Amazon S3, GetObject)."""


class LoginFault(FetchFault):
    """The URL asks for a login; `challenge` is what it says of how."""

    def __init__(self, url: str, challenge: str) -> None:
        super().__init__(url, "asks for a login, expected what anybody may read")
        self.challenge = challenge


class SilenceFault(FetchFault):
    """The URL gave no answer, however often it was asked."""


class MismatchFault(FetchFault):
    """The URL's bytes are not those that the mirror promised: it may have changed meanwhile."""


class Passing(Exception):
    """A trouble that may pass: worth another try, not before `pause` seconds if it says so."""

    def __init__(self, message: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.pause = pause


class Tags(Struct, frozen=True, omit_defaults=True):
    """What a server calls the state of a file (RFC 9110 section 8.8); empty where it does not."""

    etag: str = ""
    last_modified: str = ""

    def conditions(self) -> dict[str, str]:
        """Return the headers of a request for the file unless it is still this one."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value}


_PASSING = (408, 425, 429, 500, 502, 503, 504)
_NOT_THERE = (403, 404, 410)


def tags_of(response: httpx.Response) -> Tags:
    """Return what a response calls the state of its file."""
    headers = response.headers
    return Tags(headers.get("ETag", ""), headers.get("Last-Modified", ""))


def encoding_of(url: str, response: httpx.Response) -> str:
    """Return a response's content encoding, empty for none; `FetchFault` if it is not known."""
    encoding: str = response.headers.get("Content-Encoding", "").strip().lower()
    encoding = {"identity": "", "x-gzip": "gzip"}.get(encoding, encoding)
    if encoding and encoding not in ENCODINGS:
        known = ", ".join(ENCODINGS)
        raise FetchFault(url, f"sends the content encoding {encoding!r}, expected {known} or none")
    return encoding


def require_size(url: str, size: int, limit: int) -> None:
    """Raise `FetchFault` if there are more bytes than the limit."""
    if size > limit:
        raise too_large(url, limit)


def too_large(url: str, limit: int) -> FetchFault:
    """Return the fault of a body that is larger than the limit."""
    return FetchFault(url, f"has more than {limit:,} bytes, expected less (--max-size)")


def require_good(url: str, response: httpx.Response) -> None:
    """Raise unless a response is worth reading: its status is 200, 206, 304 or 416.

    Raises:
        Passing: it says that the trouble may pass.
        FetchFault: it says anything else.
    """
    status = response.status_code
    if status in (200, 206, 304, 416):
        return
    if status == 401:
        raise LoginFault(url, response.headers.get("WWW-Authenticate", ""))
    if status in _PASSING:
        raise Passing(f"answers {status}", _retry_after(response))
    if status in _NOT_THERE:
        raise NotThereFault(url, f"answers {status}, expected an index there")
    raise FetchFault(url, f"answers {status}, expected 200")


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds that a server asks for (RFC 9110 section 10.2.3)."""
    text: str = response.headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, (_date(text) - datetime.now(UTC)).total_seconds())
    except ValueError:
        return None


def _date(text: str) -> datetime:
    date = parsedate_to_datetime(text)
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def length_of(response: httpx.Response) -> int | None:
    """Return the bytes that a response says it sends; None if it does not."""
    text: str = response.headers.get("Content-Length", "")
    return int(text) if text.isdecimal() and len(text) < 20 else None


T = TypeVar("T")
Headers = Mapping[str, str]
NO_HEADERS: Headers = MappingProxyType({})
LONGEST_PAUSE = 120.0
"""Seconds; a server that asks for a longer one is left for another day."""

SLOWEST = 1024
"""Bytes per second; a server that sends less over a whole timeout counts as silent."""

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 10


class Body(NamedTuple):
    """A small body, whole; None if it is still what the request's conditions name."""

    data: bytes | None
    tags: Tags


class Web:
    """A client for as many requests as a run takes; an asynchronous context."""

    def __init__(self, limits: FetchLimits, progress: Progress | None = None) -> None:
        self.limits = limits
        self.received = 0
        self._expected = 0
        self._progress = progress
        self._client = httpx.AsyncClient(
            headers={
                "User-Agent": f"spack-cache-db/{version('spack-cache-db')}",
                "Accept-Encoding": ", ".join(ENCODINGS),
            },
            timeout=limits.timeout,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=limits.jobs),
        )

    async def __aenter__(self) -> Web:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.aclose()

    async def read(self, url: str, limit: int, headers: Headers = NO_HEADERS) -> Body:
        """Return a small body; `FetchFault` if there is none of at most `limit` bytes."""
        return await self.persist(url, lambda: self._read(url, limit, headers))

    async def persist(self, url: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return what an attempt returns, after as many as it takes and the limits allow.

        Raises:
            FetchFault: it raised one, or the last of them had a trouble that may pass.
        """
        limits = self.limits
        for turn in range(limits.retries + 1):
            try:
                return await attempt()
            except Passing as trouble:
                pause = max(limits.pause * 2**turn, trouble.pause or 0)
                message = str(trouble)
            if pause > LONGEST_PAUSE:
                raise SilenceFault(url, f"{message}, asks for a pause of {pause:,.0f} s: try later")
            if turn < limits.retries:
                await asyncio.sleep(pause)
        tries = limits.retries + 1
        raise SilenceFault(url, f"{message}; tried {tries} time{'s' if tries > 1 else ''}")

    @asynccontextmanager
    async def opened(self, url: str, headers: Headers) -> AsyncIterator[httpx.Response]:
        """Open a response that is worth reading: its status is 200, 206, 304 or 416.

        Raises:
            FetchFault: the server refuses.
            Passing: the server or the network has a trouble that may pass, within the body as well.
        """
        try:
            async with asyncio.timeout(3 * self.limits.timeout):
                response = await self._follow(url, headers)
            try:
                require_good(url, response)
                yield response
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise Passing(f"cannot be read: {_said(error)}") from None
        except TimeoutError:
            raise Passing("does not answer in time") from None

    async def body(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """Yield what is sent, in its content encoding; `Passing` if it comes too slowly."""
        clock = asyncio.get_running_loop().time
        since, gained, left = clock(), 0, length_of(response) or 0
        self._expected += left
        try:
            async for data in response.aiter_raw():
                gained += len(data)
                if clock() - since > self.limits.timeout:
                    if gained < SLOWEST * self.limits.timeout:
                        raise Passing(f"sends less than {SLOWEST:,} bytes a second")
                    since, gained = clock(), 0
                left -= len(data)
                self._count(len(data))
                yield data
        finally:
            # What did not come is asked for again, or not at all.
            self._expected -= left
            self._count(0)

    async def _read(self, url: str, limit: int, headers: Headers) -> Body:
        async with self.opened(url, headers) as response:
            if response.status_code == 304:
                return Body(None, tags_of(response))
            if response.status_code != 200:
                raise FetchFault(url, f"answers {response.status_code}, expected 200")
            require_size(url, length_of(response) or 0, limit)
            raw = bytearray()
            async for data in self.body(response):
                raw += data
                require_size(url, len(raw), limit)
        encoding = encoding_of(url, response)
        if not encoding:
            return Body(bytes(raw), tags_of(response))
        try:
            whole = b"".join(decoded(io.BytesIO(raw), encoding, limit))
        except BrokenEncoding as error:
            raise Passing(str(error)) from None
        except TooLong:
            raise too_large(url, limit) from None
        return Body(whole, tags_of(response))

    async def _follow(self, url: str, headers: Headers) -> httpx.Response:
        """Ask for a URL, and for those that it leads to; a login goes to its own host alone."""
        try:
            at = httpx.URL(url)
            for _ in range(_MOST_REDIRECTS):
                request = self._client.build_request("GET", at, headers=headers)
                response = await self._client.send(request, stream=True)
                if response.status_code not in _REDIRECTS:
                    return response
                await response.aclose()
                to = _required(url, at, at.join(response.headers.get("Location", "")))
                if (to.scheme, to.host, to.port) != (at.scheme, at.host, at.port):
                    to = to.copy_with(userinfo=b"")
                    headers = {k: v for k, v in headers.items() if k != "Authorization"}
                at = to
        except (httpx.InvalidURL, UnicodeError) as error:
            # The package idna raises UnicodeError for names that httpx lets through to it.
            raise FetchFault(url, f"is or leads to no URL: {reason(error)}") from None
        raise FetchFault(url, f"leads on more than {_MOST_REDIRECTS} times, expected an answer")

    def _count(self, size: int) -> None:
        self.received += size
        if self._progress is not None:
            self._progress(self.received, max(self._expected, self.received))


def _required(url: str, at: httpx.URL, to: httpx.URL) -> httpx.URL:
    """Return where a redirect leads; `FetchFault` unless it is as safe as where it stands."""
    if to.scheme not in ("https", at.scheme) or not to.host:
        raise FetchFault(url, f"leads to {to.scheme}://, expected {at.scheme}://")
    if to.port is not None and not 0 < to.port < 2**16:
        raise FetchFault(url, f"leads to the port {to.port}, expected 1 to 65535")
    return to


def _said(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "nothing comes for too long (--timeout)"
    text = reason(error)
    return text[:1].lower() + text[1:]
