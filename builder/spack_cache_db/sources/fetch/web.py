"""Sends requests over HTTP and for local files, with logins, retries and limits."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from importlib.metadata import version
from io import BytesIO
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

import httpx

from spack_cache_db.bounded_files import FileFault, open_regular
from spack_cache_db.errors import Fault, InputError, counted, reason
from spack_cache_db.sources.fetch.addresses import FetchFault, Login, Mirror, shown
from spack_cache_db.sources.fetch.options import FetchLimits, Progress

T = TypeVar("T")
Headers = Mapping[str, str]
NO_HEADERS: Headers = {}

LONGEST_PAUSE = 120.0
"""Longest pause in seconds that a server may ask for; a longer one is an error."""

SMALL = 2**24
"""Bytes of a manifest, or of one package's file; the largest known have 2 MB."""

_MOST_REDIRECTS = 10
_RETRIED = (408, 425, 429, 500, 502, 503, 504)
_NOT_THERE = (403, 404, 410)


class NotThereFault(FetchFault):
    """The URL does not exist; object stores also return 403 (Amazon S3, GetObject)."""

    def __init__(self, url: str, status: int) -> None:
        super().__init__(url, f"answers {status}, expected an index there")
        self.status = status


class LoginFault(FetchFault):
    """The server of a URL requires a login; `challenge` is its header
    `WWW-Authenticate`.
    """

    def __init__(self, url: str, challenge: str) -> None:
        expected = "expected a public mirror, or its login in --mirrors"
        super().__init__(url, f"requires a login, {expected}")
        self.challenge = challenge


class SilenceFault(InputError):
    """The URL did not respond, despite retries: nothing else is asked of its mirror."""

    def __init__(self, url: str, message: str) -> None:
        super().__init__([Fault(shown(url), 0, message)])


class MismatchFault(FetchFault):
    """The data does not match the mirror's checksum or form; the mirror may have
    changed.
    """


class PassingTrouble(Exception):
    """A temporary error.

    Attributes:
        message: what is wrong.
        pause: the seconds after which the server expects a retry.
    """

    def __init__(self, message: str, pause: float = 0) -> None:
        super().__init__(message, pause)
        self.message = message
        self.pause = pause


_HOST_OF_BUCKET = re.compile(r"[a-z0-9-]+")
"""A bucket whose name can be the first part of a host."""


def _object_url(url: str, endpoint: str | None) -> str:
    """Return the HTTP URL of an object (Amazon S3, "Virtual hosting of general purpose
    buckets").

    The path of an `s3://` URL is not percent-encoded. Amazon's certificates do not
    cover hosts of buckets with a dot in the name, and old buckets have capitals or `_`,
    which no host has.
    """
    bucket, _, key = url.removeprefix("s3://").partition("/")
    path = quote(key, safe="/-_.~")
    if endpoint is None and _HOST_OF_BUCKET.fullmatch(bucket):
        return f"https://{bucket}.s3.amazonaws.com/{path}"
    return f"{(endpoint or 'https://s3.amazonaws.com').rstrip('/')}/{bucket}/{path}"


class Web(httpx.AsyncClient):
    """The HTTP client of a run.

    Logins and endpoints are those of the configured mirror with the longest matching
    URL, or of the environment variables of Amazon's tools and Spack.
    """

    def __init__(
        self,
        limits: FetchLimits,
        progress: Progress | None = None,
        mirrors: Iterable[Mirror] = (),
    ) -> None:
        self.limits = limits
        self.received = 0
        self._mirrors = sorted(
            mirrors, key=lambda mirror: len(mirror.url), reverse=True
        )
        self._expected = 0
        self._progress = progress
        super().__init__(
            headers={
                "User-Agent": f"spack-cache-db/{version('spack-cache-db')}",
                # One KB of gzip expands to at most 1 MB, but one of zstd to gigabytes.
                "Accept-Encoding": "gzip",
            },
            timeout=limits.timeout,
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=limits.jobs
            ),
            follow_redirects=True,
            max_redirects=_MOST_REDIRECTS,
            event_hooks={"request": [_require_safe]},
        )

    def mirror(self, url: str) -> Mirror:
        """Return the configured mirror of a URL, or one without a login."""
        # The longest URL comes first.
        for mirror in self._mirrors:
            if f"{url}/".startswith(f"{mirror.url}/"):
                return mirror
        return Mirror(url)

    def address(self, url: str) -> tuple[str, httpx.Auth | None]:
        """Return the HTTP address of a URL, and the signature of its requests."""
        if not url.startswith("s3://"):
            return url, None
        mirror = self.mirror(url)
        variable = os.environ.get
        address = _object_url(url, mirror.endpoint or variable("S3_ENDPOINT_URL"))

        # The login of the mirror, or else that of Amazon's tools.
        login = mirror.login
        user = variable("AWS_ACCESS_KEY_ID")
        secret = variable("AWS_SECRET_ACCESS_KEY")
        if login is None and user and secret:
            login = Login(user, secret, variable("AWS_SESSION_TOKEN"))
        if login is None:
            return address, None

        # Imported late: it is slow to import.
        from httpx_auth import AWS4Auth

        region = variable("AWS_DEFAULT_REGION") or variable("AWS_REGION") or "us-east-1"
        signature = AWS4Auth(
            login.user, login.secret, region, "s3", security_token=login.session
        )
        return address, signature

    async def read(
        self, url: str, headers: Headers = NO_HEADERS, limit: int = SMALL
    ) -> bytes:
        """Return a small body; `FetchFault` if it is missing or larger than `limit`
        bytes.
        """
        stream = BytesIO()
        await self.save(url, stream, limit, headers)
        return stream.getvalue()

    async def save(
        self, url: str, stream: BinaryIO, limit: int, headers: Headers = NO_HEADERS
    ) -> Headers | None:
        """Write a body to a stream, with retries after temporary errors.

        Returns the headers that ask for it only if it changed; None if it has not
        changed since those of the request.
        """
        limits = self.limits
        message = ""
        if url.startswith("file:"):
            await asyncio.to_thread(_copy_file, url, stream, limit)
            self._count(url, stream.tell())
            return NO_HEADERS
        try:
            async with asyncio.timeout(limits.deadline):
                for retry in range(limits.retries + 1):
                    # Without what an earlier attempt has written.
                    stream.seek(0)
                    stream.truncate()
                    try:
                        return await self._attempt(url, stream, limit, headers)
                    except PassingTrouble as trouble:
                        message = trouble.message
                        pause = max(limits.pause * 2**retry, trouble.pause)
                    if pause > LONGEST_PAUSE:
                        message = (
                            f"{message}, requests a pause of {pause:,.0f} s: try later"
                        )
                        raise SilenceFault(url, message)
                    if retry < limits.retries:
                        await asyncio.sleep(pause)
        except TimeoutError:
            message = f"takes more than {limits.deadline:,.0f} s (--deadline)"
            raise SilenceFault(url, message) from None
        raise SilenceFault(
            url, f"{message}; tried {counted(limits.retries + 1, 'time')}"
        )

    async def _attempt(
        self, url: str, stream: BinaryIO, limit: int, headers: Headers
    ) -> Headers | None:
        """Send one request; raises `PassingTrouble` for a temporary error."""
        try:
            address, signature = self.address(url)
            request = self.build_request("GET", address, headers=headers)
            request.extensions |= {"named": url, "first": request.url}
            # Otherwise a server that sends its headers byte by byte could take hours.
            async with asyncio.timeout(3 * self.limits.timeout):
                auth = signature or httpx.USE_CLIENT_DEFAULT
                response = await self.send(request, stream=True, auth=auth)
            async with aclosing(response):
                _require_good(url, response, headers)
                if response.status_code == 304:
                    return None
                await self._copy(url, response, stream, limit)
            return _conditions(response)
        except httpx.TooManyRedirects:
            message = f"has too many redirects (more than {_MOST_REDIRECTS})"
            raise FetchFault(url, message) from None
        except httpx.TimeoutException:
            raise PassingTrouble(
                "cannot be read: nothing comes for too long (--timeout)"
            ) from None
        except httpx.DecodingError as error:
            raise PassingTrouble(f"sends broken gzip: {reason(error)}") from None
        except httpx.TransportError as error:
            text = reason(error)
            raise PassingTrouble(
                f"cannot be read: {text[:1].lower()}{text[1:]}"
            ) from None
        except (httpx.InvalidURL, UnicodeError) as error:
            # The package idna raises UnicodeError for names that httpx does not check.
            raise FetchFault(url, f"is or leads to no URL: {reason(error)}") from None
        except TimeoutError:
            raise PassingTrouble("does not answer in time") from None

    async def _copy(
        self, url: str, response: httpx.Response, stream: BinaryIO, limit: int
    ) -> None:
        """Write the decoded body of a response to a stream."""
        text = response.headers.get("Content-Length", "")
        length = int(text) if re.fullmatch(r"[0-9]{1,19}", text) else 0
        require_size(url, length, limit)
        self._expected += length
        received = 0
        try:
            async for data in response.aiter_bytes():
                self._count(url, response.num_bytes_downloaded - received)
                received = response.num_bytes_downloaded
                require_size(url, stream.tell() + len(data), limit)
                stream.write(data)
        finally:
            # After an error, the remaining bytes are no longer expected.
            self._expected += received - length
            self._count(url, 0)

    def _count(self, url: str, size: int) -> None:
        """Count bytes of a response; `FetchFault` if the run has received too many."""
        self.received += size
        if self._progress is not None:
            self._progress(self.received, max(self._expected, self.received))
        if size and self.received > self.limits.max_total:
            message = f"more than {self.limits.max_total:,} bytes were sent in this run"
            raise FetchFault(url, f"{message}, expected less (--max-total)")

    async def in_parallel(
        self, items: Iterable[T], process: Callable[[T], Coroutine[Any, Any, None]]
    ) -> None:
        """Process items, at most `jobs` at the same time; raises the first
        exception.
        """
        # Each worker takes the next item from the same iterator.
        queue = iter(items)

        async def work() -> None:
            for item in queue:
                await process(item)

        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self.limits.jobs):
                    tasks.create_task(work())
        except ExceptionGroup as group:
            raise group.exceptions[0] from None


def _conditions(response: httpx.Response) -> Headers:
    """Return the headers that ask for a file only if it changed (RFC 9110 section
    13.1).
    """
    names = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
    conditions = {}
    for name, tag_name in names.items():
        tag = response.headers.get(tag_name, "")
        if tag and tag.isascii() and tag.isprintable():
            conditions[name] = tag
    return conditions


def require_size(url: str, size: int, limit: int) -> None:
    """Raise `FetchFault` if there are more bytes than the limit."""
    if size > limit:
        raise FetchFault(
            url, f"has more than {limit:,} bytes, expected less (--max-size)"
        )


async def _require_safe(request: httpx.Request) -> None:
    """Raise `FetchFault` for an unsafe redirect, and remove the signature of any
    redirect.

    A signature is valid for one URL. httpx removes other logins from redirects to
    another origin.
    """
    # The URL that a caller named, and the address of the first request for it.
    named = request.extensions["named"]
    first = request.extensions["first"]
    url = request.url
    if url.scheme not in ("https", first.scheme):
        raise FetchFault(named, f"leads to {url.scheme}://, expected {first.scheme}://")
    if url.port is not None and not 0 < url.port < 2**16:
        raise FetchFault(named, f"leads to the port {url.port}, expected 1 to 65535")
    signed = [name for name in request.headers if name.startswith("x-amz-")]
    if url != first and signed:
        for name in (*signed, "Authorization"):
            request.headers.pop(name, None)


def _require_good(url: str, response: httpx.Response, headers: Headers) -> None:
    """Raise unless a response has the status 200, or 304 if the request had a
    condition.
    """
    status = response.status_code
    header = response.headers.get
    if status == 401:
        last = _origin(response.url)
        if last != _origin(response.request.extensions["first"]):
            # It would choose the receiver of the password.
            rule = "but a login is sent only to the mirror's own server"
            message = f"redirects to {last}, which requires a login, {rule}"
            raise FetchFault(url, message)
        raise LoginFault(url, header("WWW-Authenticate", ""))
    if status in _RETRIED:
        # RFC 9110 section 10.2.3; dates are ignored.
        after = header("Retry-After", "")
        pause = float(after[:9]) if after.isdecimal() else 0
        raise PassingTrouble(f"answers {status}", pause)
    if status in _NOT_THERE:
        raise NotThereFault(url, status)
    has_condition = any(name.startswith("If-") for name in headers)
    is_unchanged = status == 304 and has_condition
    if status != 200 and not is_unchanged:
        # Amazon S3 sends it if the signature is for another region.
        region = header("x-amz-bucket-region", "")
        expected = "expected 200"
        if region:
            expected += f" and the bucket's region, {region}, in AWS_DEFAULT_REGION"
        raise FetchFault(url, f"answers {status}, {expected}")
    encoding = header("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise FetchFault(
            url, f"sends the content encoding {encoding!r}, expected gzip or none"
        )


def _origin(url: httpx.URL) -> str:
    """Return the scheme, host and port of a URL (RFC 6454), without a default port."""
    origin = url.copy_with(path="/", query=None, fragment=None, userinfo=b"")
    return str(origin).rstrip("/")


def _copy_file(url: str, stream: BinaryIO, limit: int) -> None:
    """Copy a local file; it is missing if it is not a regular file."""
    try:
        with open_regular(url2pathname(urlsplit(url).path)) as source:
            require_size(url, os.fstat(source.fileno()).st_size, limit)
            shutil.copyfileobj(source, stream)
    except (
        FileFault,
        FileNotFoundError,
        NotADirectoryError,
        PermissionError,
        ValueError,
    ) as error:
        raise NotThereFault(
            url, 403 if isinstance(error, PermissionError) else 404
        ) from None
    except OSError as error:
        raise FetchFault(url, f"cannot be read: {reason(error)}") from None
