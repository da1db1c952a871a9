"""Sends requests over HTTP and for local files, with logins, retries and limits.

`Web.save` writes what a URL has into a stream. It repeats a request that failed for a
temporary reason, and raises one of the faults below for other reasons. An `s3://` URL
is that of an object store, which speaks HTTP with signed requests.
"""

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
    """The URL does not exist.

    For a missing object, object stores may also return 403 (Amazon S3, GetObject).
    """

    def __init__(self, url: str, status: int) -> None:
        super().__init__(url, f"answers {status}, expected an index there")
        self.status = status


class LoginFault(FetchFault):
    """The server of a URL requires a login; `challenge` is its header
    `WWW-Authenticate`, which says what kind.
    """

    def __init__(self, url: str, challenge: str) -> None:
        expected = "expected a public mirror, or its login in --mirrors"
        super().__init__(url, f"requires a login, {expected}")
        self.challenge = challenge


class SilenceFault(InputError):
    """The URL did not respond, despite retries.

    It is not a `FetchFault`, which callers catch to go on with the next file of the
    mirror: that would not respond either.
    """

    def __init__(self, url: str, message: str) -> None:
        super().__init__([Fault(shown(url), 0, message)])


class MismatchFault(FetchFault):
    """The data does not match the mirror's checksum or form.

    The mirror may have changed between two requests.
    """


class PassingTrouble(Exception):
    """A temporary error, after which the request is repeated.

    Attributes:
        message: what is wrong.
        pause: the seconds after which the server expects a retry.
    """

    def __init__(self, message: str, pause: float = 0) -> None:
        super().__init__(message, pause)
        self.message = message
        self.pause = pause


class Web(httpx.AsyncClient):
    """The HTTP client of a run.

    Logins and endpoints are those of the configured mirror with the longest matching
    URL, or of the environment variables of Amazon's tools and Spack.

    Args:
        limits: the limits of the run.
        progress: called after each piece of data.
        mirrors: the mirrors of Spack's configuration.

    Attributes:
        limits: the limits of the run.
        received: the number of bytes received in the run.
    """

    def __init__(
        self,
        limits: FetchLimits,
        progress: Progress | None = None,
        mirrors: Iterable[Mirror] = (),
    ) -> None:
        self.limits = limits
        self.received = 0
        # The longest URL first, so that the first match is the most exact.
        self._mirrors = sorted(
            mirrors, key=lambda mirror: len(mirror.url), reverse=True
        )
        # The bytes of all responses, as far as servers have announced them.
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
        for mirror in self._mirrors:
            if f"{url}/".startswith(f"{mirror.url}/"):
                return mirror
        return Mirror(url)

    async def read(
        self, url: str, headers: Headers = NO_HEADERS, limit: int = SMALL
    ) -> bytes:
        """Return what a URL has, of at most `limit` bytes; raises as `save`."""
        stream = BytesIO()
        await self.save(url, stream, limit, headers)
        return stream.getvalue()

    async def save(
        self, url: str, stream: BinaryIO, limit: int, headers: Headers = NO_HEADERS
    ) -> Headers | None:
        """Write what a URL has to a stream, with retries after temporary errors.

        Args:
            url: the URL.
            stream: the stream, which is emptied before each attempt.
            limit: the maximum number of bytes.
            headers: the headers of the request. Those that an earlier call returned ask
                for the data only if it has changed since.

        Returns:
            Such headers for a later call; None if the data has not changed.

        Raises:
            FetchFault: the URL has no data, too much, or needs a login.
            SilenceFault: it did not respond in time, or at all.
        """
        if url.startswith("file:"):
            await asyncio.to_thread(_copy_file, url, stream, limit)
            self._count(url, stream.tell())
            return NO_HEADERS

        limits = self.limits
        message = ""
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
        """Do what `save` does, once; raises `PassingTrouble` for a temporary error."""
        try:
            address, signature = self.address(url)
            request = self.build_request("GET", address, headers=headers)
            # For `_require_safe`: the URL of messages, and that of the first request.
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
            lowered = text[:1].lower() + text[1:]
            raise PassingTrouble(f"cannot be read: {lowered}") from None
        except (httpx.InvalidURL, UnicodeError) as error:
            # The package idna raises UnicodeError for names that httpx does not check.
            raise FetchFault(url, f"is or leads to no URL: {reason(error)}") from None
        except TimeoutError:
            raise PassingTrouble("does not answer in time") from None

    def address(self, url: str) -> tuple[str, httpx.Auth | None]:
        """Return the HTTP address of a URL, and what signs its requests.

        Only requests to object stores with a login are signed.
        """
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

    async def _copy(
        self, url: str, response: httpx.Response, stream: BinaryIO, limit: int
    ) -> None:
        """Write the decoded body of a response to a stream."""
        # The length that the server announces; 0 if it announces none.
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


_BUCKET_OF_HOST = re.compile(r"[a-z0-9-]+")
"""A bucket whose name can be the first part of a host."""


def _object_url(url: str, endpoint: str | None) -> str:
    """Return the HTTP URL of an object (Amazon S3, "Virtual hosting of general purpose
    buckets").

    `s3://bucket/a b` becomes `https://bucket.s3.amazonaws.com/a%20b`. The bucket goes
    into the path if Amazon's certificates do not cover the host, as for a bucket with
    a dot in its name, or no host can have the name, as old ones with capitals or `_`.
    """
    bucket, _, key = url.removeprefix("s3://").partition("/")
    path = quote(key, safe="/-_.~")
    if endpoint is None and _BUCKET_OF_HOST.fullmatch(bucket):
        return f"https://{bucket}.s3.amazonaws.com/{path}"
    base = endpoint or "https://s3.amazonaws.com"
    return f"{base.rstrip('/')}/{bucket}/{path}"


async def _require_safe(request: httpx.Request) -> None:
    """Check a request before it is sent: it may be a redirect.

    A signature is valid for one URL, so it is removed from a redirect. httpx removes
    other logins from redirects to another origin.

    Raises:
        FetchFault: the redirect leads to plain HTTP, to another protocol, or to a port
            that does not exist.
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
    """Raise a fault, or `PassingTrouble`, unless a response has what was asked for.

    Its status is 200, or 304 (not changed) if the headers of the request have a
    condition.
    """
    status = response.status_code
    header = response.headers.get

    # A login is required.
    if status == 401:
        origin = _origin(response.url)
        if origin != _origin(response.request.extensions["first"]):
            # A mirror could redirect to a server that collects passwords.
            rule = "but a login is sent only to the mirror's own server"
            message = f"redirects to {origin}, which requires a login, {rule}"
            raise FetchFault(url, message)
        raise LoginFault(url, header("WWW-Authenticate", ""))

    # A temporary error. The server may say when to try again, in seconds or as a date,
    # which is ignored (RFC 9110 section 10.2.3).
    if status in _RETRIED:
        after = header("Retry-After", "")
        pause = float(after[:9]) if after.isdecimal() else 0
        raise PassingTrouble(f"answers {status}", pause)

    # Any other status.
    if status in _NOT_THERE:
        raise NotThereFault(url, status)
    has_condition = any(name.startswith("If-") for name in headers)
    is_unchanged = status == 304 and has_condition
    if status != 200 and not is_unchanged:
        expected = "expected 200"
        # Amazon S3 sends it if the signature is for another region.
        region = header("x-amz-bucket-region", "")
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


def _conditions(response: httpx.Response) -> Headers:
    """Return the headers that ask for the data of a response only if it changed (RFC
    9110 section 13.1).
    """
    tag_of_condition = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
    conditions = {}
    for condition, name in tag_of_condition.items():
        tag = response.headers.get(name, "")
        if tag and tag.isascii() and tag.isprintable():
            conditions[condition] = tag
    return conditions


def require_size(url: str, size: int, limit: int) -> None:
    """Raise `FetchFault` if there are more bytes than the limit."""
    if size > limit:
        raise FetchFault(
            url, f"has more than {limit:,} bytes, expected less (--max-size)"
        )


def _copy_file(url: str, stream: BinaryIO, limit: int) -> None:
    """Copy a local file; one that is not a regular file counts as missing."""
    try:
        with open_regular(url2pathname(urlsplit(url).path)) as source:
            require_size(url, os.fstat(source.fileno()).st_size, limit)
            shutil.copyfileobj(source, stream)
    except PermissionError:
        raise NotThereFault(url, 403) from None
    # ValueError is raised for a path with a NUL.
    except (FileFault, FileNotFoundError, NotADirectoryError, ValueError):
        raise NotThereFault(url, 404) from None
    except OSError as error:
        raise FetchFault(url, f"cannot be read: {reason(error)}") from None
