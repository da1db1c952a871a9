"""Where and as whom an address is asked: object stores with signatures, files of this machine.

Amazon S3's "Virtual hosting of general purpose buckets" and "Signature Version 4"; the variables of
the environment are those of Amazon's own tools and, for the endpoint, of Spack.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from io import FileIO
from pathlib import Path
from urllib.parse import quote

import httpx

from spack_cache_db.bounded_files import FileFault, open_regular
from spack_cache_db.errors import reason
from spack_cache_db.sources.indexes.fetch.mirror_config import ConfiguredMirror, Login

_PIECE = 2**20


class Access:
    """What is configured of addresses: of several above one, the longest counts."""

    def __init__(
        self, mirrors: Iterable[ConfiguredMirror] = (), variables: Mapping[str, str] | None = None
    ) -> None:
        """Take what mirrors say of themselves, and what the environment says of all others.

        Args:
            mirrors: configured ones, with the addresses that are asked.
            variables: `AWS_ACCESS_KEY_ID` and the like.
        """
        known = variables or {}
        self._mirrors = sorted(mirrors, key=lambda each: len(each.url), reverse=True)
        self._endpoint = known.get("S3_ENDPOINT_URL")
        self._region = known.get("AWS_DEFAULT_REGION") or known.get("AWS_REGION") or "us-east-1"
        user, secret = known.get("AWS_ACCESS_KEY_ID"), known.get("AWS_SECRET_ACCESS_KEY")
        session = known.get("AWS_SESSION_TOKEN")
        self._login = Login(user, secret, session) if user and secret else None

    def login(self, url: str) -> Login | None:
        """Return who asks a URL; None for anybody."""
        mirror = self._mirror(url)
        return mirror.login if mirror is not None else None

    def request(self, url: str) -> tuple[str, httpx.Auth | None]:
        """Return the address behind a URL, and what signs a request for it."""
        if not url.startswith("s3://"):
            # httpx takes a URL without a host for a relative one.
            return url.replace("file:///", "file://localhost/", 1), None
        mirror = self._mirror(url)
        endpoint = (mirror.endpoint if mirror is not None else None) or self._endpoint
        login = (mirror.login if mirror is not None else None) or self._login
        return _object_url(url, endpoint), None if login is None else self._signature(login)

    def _mirror(self, url: str) -> ConfiguredMirror | None:
        above = (each for each in self._mirrors if f"{url}/".startswith(f"{each.url}/"))
        return next(above, None)

    def _signature(self, login: Login) -> httpx.Auth:
        # It loads ways to log in that nothing else here needs.
        from httpx_auth import AWS4Auth

        auth: httpx.Auth = AWS4Auth(
            login.user, login.secret, self._region, "s3", security_token=login.session
        )
        return auth


def _object_url(url: str, endpoint: str | None) -> str:
    """Return where an object store has what an `s3://` URL names.

    Its path is a name as it is, in which `%` and `+` mean nothing else. No certificate of Amazon
    is for a host with a dot more.
    """
    bucket, _, key = url.removeprefix("s3://").partition("/")
    path = quote(key, safe="/-_.~")
    if endpoint is not None:
        return f"{endpoint.rstrip('/')}/{bucket}/{path}"
    if "." in bucket:
        return f"https://s3.amazonaws.com/{bucket}/{path}"
    return f"https://{bucket}.s3.amazonaws.com/{path}"


async def without_signature(request: httpx.Request) -> None:
    """Take from a request what was signed for another, from which a redirect led here."""
    signed = [each for each in request.headers if each.startswith("x-amz-")]
    if signed and request.url != request.extensions["first"]:
        for name in (*signed, "Authorization"):
            request.headers.pop(name, None)


class FileTransport(httpx.AsyncBaseTransport):
    """Answers for the files of this machine as a server does, with tags."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the file that a `file://` URL names; 404 where there is none to read."""
        try:
            stream = await asyncio.to_thread(open_regular, Path(request.url.path))
        except (FileFault, FileNotFoundError, NotADirectoryError, ValueError):
            return httpx.Response(404)
        except PermissionError:
            return httpx.Response(403)
        except OSError as error:
            raise httpx.ReadError(reason(error)) from None
        about = os.fstat(stream.fileno())
        headers = {"ETag": f'"{about.st_mtime_ns:x}-{about.st_size:x}"'}
        if request.headers.get("If-None-Match") == headers["ETag"]:
            stream.close()
            return httpx.Response(304, headers=headers)
        headers["Content-Length"] = str(about.st_size)
        return httpx.Response(200, headers=headers, stream=_FileStream(stream))


class _FileStream(httpx.AsyncByteStream):
    def __init__(self, stream: FileIO) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while data := await asyncio.to_thread(self._stream.read, _PIECE):
                yield data
        except OSError as error:
            raise httpx.ReadError(reason(error)) from None

    async def aclose(self) -> None:
        self._stream.close()
