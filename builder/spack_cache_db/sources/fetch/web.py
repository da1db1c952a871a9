"""Sends requests over HTTP and for local files, with logins, retries and limits."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import httpx
from msgspec import Struct

from spack_cache_db.bounded_files import FileFault, open_regular
from spack_cache_db.errors import reason
from spack_cache_db.sources.fetch import FetchLimits, Progress
from spack_cache_db.sources.fetch.addresses import ConfiguredMirror, FetchFault, Login

T = TypeVar("T")
Headers = Mapping[str, str]
NO_HEADERS: Headers = MappingProxyType({})

LONGEST_PAUSE = 120.0
"""Longest pause in seconds that a server may ask for; a longer one is an error."""

_MOST_REDIRECTS = 10
_RETRIED = (408, 425, 429, 500, 502, 503, 504)
_NOT_THERE = (403, 404, 410)


class NotThereFault(FetchFault):
    """The URL does not exist; object stores also return 403 (Amazon S3, GetObject).

    `is_closed` is true for 403: a login may be missing.
    """

    def __init__(self, url: str, message: str, *, is_closed: bool = False) -> None:
        super().__init__(url, message)
        self.is_closed = is_closed


class LoginFault(FetchFault):
    """The server of a URL requires a login; `challenge` is its header `WWW-Authenticate`.

    A server that it redirects to must not ask: it would choose the receiver of the password.
    """

    def __init__(self, url: str, challenge: str) -> None:
        super().__init__(
            url, "requires a login, expected a public mirror, or its login in --mirrors"
        )
        self.challenge = challenge


class SilenceFault(FetchFault):
    """The URL did not respond, despite retries."""


class MismatchFault(FetchFault):
    """The data does not match the mirror's checksum or form; the mirror may have changed."""


class PassingTrouble(Exception):
    """A temporary error: retry, after `pause` seconds if the server gives them."""

    def __init__(self, message: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.pause = pause


class Access:
    """Logins and endpoints of URLs, from the configured mirror with the longest matching URL.

    Requests to object stores follow Amazon S3's "Virtual hosting of general purpose buckets" and
    "Signature Version 4". The environment variables are those of Amazon's tools and, for the
    endpoint, of Spack.
    """

    def __init__(
        self, mirrors: Iterable[ConfiguredMirror] = (), variables: Mapping[str, str] | None = None
    ) -> None:
        """Take the configured mirrors, and the environment for all other URLs.

        Args:
            mirrors: configured mirrors, with mapped URLs.
            variables: environment variables such as `AWS_ACCESS_KEY_ID`.
        """
        environment = variables or {}
        self._mirrors = sorted(mirrors, key=lambda mirror: len(mirror.url), reverse=True)
        self._endpoint = environment.get("S3_ENDPOINT_URL")
        self._region = (
            environment.get("AWS_DEFAULT_REGION") or environment.get("AWS_REGION") or "us-east-1"
        )
        user, secret = (
            environment.get("AWS_ACCESS_KEY_ID"),
            environment.get("AWS_SECRET_ACCESS_KEY"),
        )
        session = environment.get("AWS_SESSION_TOKEN")
        self._login = Login(user, secret, session) if user and secret else None

    def login(self, url: str) -> Login | None:
        """Return the login for a URL; None without one."""
        return self._mirror(url).login

    def request(self, url: str) -> tuple[str, httpx.Auth | None]:
        """Return the HTTP address of a URL, and the signature of its requests."""
        if not url.startswith("s3://"):
            # httpx reads a URL without a host as a relative URL.
            return url.replace("file:///", "file://localhost/", 1), None
        mirror = self._mirror(url)
        address = _object_url(url, mirror.endpoint or self._endpoint)
        login = mirror.login or self._login
        if login is None:
            return address, None
        # Imported late: it is slow to import.
        from httpx_auth import AWS4Auth

        return address, AWS4Auth(
            login.user, login.secret, self._region, "s3", security_token=login.session
        )

    def _mirror(self, url: str) -> ConfiguredMirror:
        above = (mirror for mirror in self._mirrors if f"{url}/".startswith(f"{mirror.url}/"))
        return next(above, ConfiguredMirror(url))


def _object_url(url: str, endpoint: str | None) -> str:
    """Return the HTTP URL of an object in an object store.

    The path of an `s3://` URL is not percent-encoded. Amazon's certificates do not cover hosts of
    buckets with a dot in the name.
    """
    bucket, _, key = url.removeprefix("s3://").partition("/")
    path = quote(key, safe="/-_.~")
    if endpoint is not None:
        return f"{endpoint.rstrip('/')}/{bucket}/{path}"
    if "." in bucket:
        return f"https://s3.amazonaws.com/{bucket}/{path}"
    return f"https://{bucket}.s3.amazonaws.com/{path}"


class Tags(Struct, frozen=True, omit_defaults=True):
    """The validators of a file that a server sends (RFC 9110 section 8.8); empty if missing."""

    etag: str = ""
    last_modified: str = ""

    def conditions(self) -> dict[str, str]:
        """Return the headers that request the file only if it changed."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value}


class Body(NamedTuple):
    """A small body; None if it has not changed since the tags of the request."""

    data: bytes | None
    tags: Tags


class Web:
    """The HTTP client of a run; an asynchronous context manager."""

    def __init__(
        self,
        limits: FetchLimits,
        progress: Progress | None = None,
        access: Access | None = None,
    ) -> None:
        self.limits = limits
        self.access = access or Access()
        self.received = 0
        self._expected = 0
        self._progress = progress
        self._client = httpx.AsyncClient(
            headers={
                "User-Agent": f"spack-cache-db/{version('spack-cache-db')}",
                # One KB of gzip expands to at most 1 MB, but one of zstd to gigabytes.
                "Accept-Encoding": "gzip",
            },
            timeout=limits.timeout,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=limits.jobs),
            follow_redirects=True,
            max_redirects=_MOST_REDIRECTS,
            event_hooks={"request": [_require_safe, _without_login]},
            mounts={"file://": _FileTransport(limits.max_size)},
        )

    async def __aenter__(self) -> Web:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.aclose()

    async def read(self, url: str, limit: int, headers: Headers = NO_HEADERS) -> Body:
        """Return a small body; `FetchFault` if it is missing or larger than `limit` bytes."""

        async def attempt() -> Body:
            data = bytearray()
            tags = await self._take(url, limit, headers, data.extend)
            return Body(None if tags is None else bytes(data), tags or Tags())

        return await self._persist(url, attempt)

    async def save(self, url: str, path: Path, headers: Headers) -> Tags | None:
        """Write a large body to a new file.

        Returns:
            The tags of the body; None if it has not changed since the tags of the request.

        Raises:
            FetchFault: it cannot be downloaded within the limits.
        """

        async def attempt() -> Tags | None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            with path.open("xb") as stream:
                return await self._take(url, self.limits.max_size, headers, stream.write)

        return await self._persist(url, attempt)

    async def _take(
        self, url: str, limit: int, headers: Headers, take: Callable[[bytes], object]
    ) -> Tags | None:
        """Pass a decoded body to `take`; return its tags, None if it has not changed."""
        async with self._opened(url, headers) as response:
            if response.status_code == 304:
                return None
            length = response.headers.get("Content-Length", "")
            remaining, counted, size = (
                int(length) if re.fullmatch(r"[0-9]{1,19}", length) else 0,
                0,
                0,
            )
            require_size(url, remaining, limit)
            self._expected += remaining
            try:
                async for data in response.aiter_bytes():
                    came, counted = (
                        response.num_bytes_downloaded - counted,
                        response.num_bytes_downloaded,
                    )
                    remaining -= came
                    self._count(url, came)
                    size += len(data)
                    require_size(url, size, limit)
                    take(data)
            finally:
                # After an error, the remaining bytes are no longer expected.
                self._expected -= remaining
                self._count(url, 0)
        return tags_of(response)

    async def _persist(self, url: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of an attempt, with retries after temporary errors.

        Raises:
            FetchFault: an attempt raised it, the last attempt failed, or the attempts together
                took too long.
        """
        limits = self.limits
        try:
            async with asyncio.timeout(limits.deadline):
                for turn in range(limits.retries + 1):
                    try:
                        return await attempt()
                    except PassingTrouble as trouble:
                        pause = max(limits.pause * 2**turn, trouble.pause or 0)
                        message = str(trouble)
                    if pause > LONGEST_PAUSE:
                        message = f"{message}, requests a pause of {pause:,.0f} s: try later"
                        raise SilenceFault(url, message)
                    if turn < limits.retries:
                        await asyncio.sleep(pause)
        except TimeoutError:
            message = f"takes more than {limits.deadline:,.0f} s (--deadline)"
            raise SilenceFault(url, message) from None
        tries = limits.retries + 1
        raise SilenceFault(url, f"{message}; tried {tries} time{'s' if tries > 1 else ''}")

    @asynccontextmanager
    async def _opened(self, url: str, headers: Headers) -> AsyncIterator[httpx.Response]:
        """Open a response with the status 200 or 304.

        Raises:
            FetchFault: the server refuses the request.
            PassingTrouble: a temporary error, also while the body is read.
        """
        try:
            address, signature = self.access.request(url)
            request = self._client.build_request("GET", address, headers=headers)
            request.extensions |= {"asked": url, "first": request.url}
            async with asyncio.timeout(3 * self.limits.timeout):
                auth = signature or httpx.USE_CLIENT_DEFAULT
                response = await self._client.send(request, stream=True, auth=auth)
            try:
                _require_good(url, response, headers)
                yield response
            finally:
                await response.aclose()
        except httpx.TooManyRedirects:
            message = f"has too many redirects (more than {_MOST_REDIRECTS})"
            raise FetchFault(url, message) from None
        except httpx.DecodingError as error:
            raise PassingTrouble(f"sends broken gzip: {reason(error)}") from None
        except httpx.TransportError as error:
            raise PassingTrouble(f"cannot be read: {_transport_message(error)}") from None
        except (httpx.InvalidURL, UnicodeError) as error:
            # The package idna raises UnicodeError for names that httpx does not check.
            raise FetchFault(url, f"is or leads to no URL: {reason(error)}") from None
        except TimeoutError:
            raise PassingTrouble("does not answer in time") from None

    def _count(self, url: str, size: int) -> None:
        self.received += size
        if self._progress is not None:
            self._progress(self.received, max(self._expected, self.received))
        if size and self.received > self.limits.max_total:
            message = f"more than {self.limits.max_total:,} bytes were sent in this run"
            raise FetchFault(url, f"{message}, expected less (--max-total)")


def tags_of(response: httpx.Response) -> Tags:
    """Return the validators of a response that a request can repeat."""
    values = (response.headers.get(name, "") for name in ("ETag", "Last-Modified"))
    return Tags(*(value if value.isascii() and value.isprintable() else "" for value in values))


def require_size(url: str, size: int, limit: int) -> None:
    """Raise `FetchFault` if there are more bytes than the limit."""
    if size > limit:
        raise FetchFault(url, f"has more than {limit:,} bytes, expected less (--max-size)")


async def _require_safe(request: httpx.Request) -> None:
    """Raise `FetchFault` for a redirect that is less safe than the requested URL."""
    url_asked, first = request.extensions["asked"], request.extensions["first"]
    url = request.url
    if url.scheme not in ("https", first.scheme):
        raise FetchFault(url_asked, f"leads to {url.scheme}://, expected {first.scheme}://")
    if url.port is not None and not 0 < url.port < 2**16:
        raise FetchFault(url_asked, f"leads to the port {url.port}, expected 1 to 65535")


async def _without_login(request: httpx.Request) -> None:
    """Remove logins from a request that was redirected to another origin.

    A signature is valid for one URL, so every redirect removes it.
    """
    first = request.extensions["first"]
    signed = [name for name in request.headers if name.startswith("x-amz-")]
    if _origin(request.url) != _origin(first) or (signed and request.url != first):
        for name in (*signed, "Authorization"):
            request.headers.pop(name, None)


def _require_good(url: str, response: httpx.Response, headers: Headers) -> None:
    """Raise unless a response has the status 200, or 304 if the request had a condition.

    Raises:
        PassingTrouble: for a temporary error.
        FetchFault: for any other status.
    """
    status = response.status_code
    if status == 401:
        first, last = map(_origin, (response.request.extensions["first"], response.url))
        if first != last:
            message = (
                f"redirects to {last}, which requires a login, but a login is sent only to the"
            )
            raise FetchFault(url, f"{message} mirror's own server")
        raise LoginFault(url, response.headers.get("WWW-Authenticate", ""))
    if status in _RETRIED:
        raise PassingTrouble(f"answers {status}", _retry_after(response))
    if status in _NOT_THERE:
        message = f"answers {status}, expected an index there"
        raise NotThereFault(url, message, is_closed=status == 403)
    has_condition = any(name.startswith("If-") for name in headers)
    if status != 200 and not (status == 304 and has_condition):
        # Amazon S3 sends it if the signature is for another region.
        region = response.headers.get("x-amz-bucket-region", "")
        advice = f" and the bucket's region, {region}, in AWS_DEFAULT_REGION" if region else ""
        raise FetchFault(url, f"answers {status}, expected 200{advice}")
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise FetchFault(url, f"sends the content encoding {encoding!r}, expected gzip or none")


def _origin(url: httpx.URL) -> str:
    """Return the scheme, host and port of a URL (RFC 6454), without a default port."""
    return str(url.copy_with(path="/", query=None, fragment=None, userinfo=b"")).rstrip("/")


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds that a server asks for (RFC 9110 section 10.2.3); None for a date."""
    text: str = response.headers.get("Retry-After", "")
    return float(text[:9]) if text.isdecimal() else None


def _transport_message(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "nothing comes for too long (--timeout)"
    text = reason(error)
    return text[:1].lower() + text[1:]


class _FileTransport(httpx.AsyncBaseTransport):
    """Returns local files as a server does, with tags."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the file of a `file://` URL; 404 if it is missing or not a regular file."""
        return await asyncio.to_thread(self._answer, request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        try:
            with open_regular(Path(request.url.path)) as stream:
                status = os.fstat(stream.fileno())
                tag = f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
                if request.headers.get("If-None-Match") == tag:
                    return httpx.Response(304)
                content = stream.read(self._max_size + 1)
        except (FileFault, FileNotFoundError, NotADirectoryError, ValueError):
            return httpx.Response(404)
        except PermissionError:
            return httpx.Response(403)
        except OSError as error:
            raise httpx.ReadError(reason(error)) from None
        return httpx.Response(200, headers={"ETag": tag}, content=content)
