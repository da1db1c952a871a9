"""`/<database>.db`: sends a database file, or the part of it that a request asks for.

The file is opened when the server starts, so that a download never mixes two files.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote
from weakref import WeakKeyDictionary

from datasette.utils import tilde_decode
from datasette.utils.asgi import Forbidden, NotFound

from spack_cache_db.site.catalogue import ensure
from spack_cache_db.site.page_response import PageResponse

DOWNLOAD = r"^/(?P<database>[^/]+)\.db$"
CHUNK = 64 * 1024
"""Memory that a client which stops reading can occupy, besides the server's own
buffer.
"""
NO_FILE = "This server has no such file."

_open_files: WeakKeyDictionary[Any, BinaryIO] = WeakKeyDictionary()
"""The files of Datasette's immutable databases."""

_RANGE = re.compile(r"bytes=(?=.*\d)(\d{0,18})-(\d{0,18})")
"""A single range: `bytes=0-99`, `bytes=100-` (all others) or `bytes=-100` (the last).
"""


class Part(NamedTuple):
    """The bytes of a file to send, with the status and the headers of the response."""

    status: int
    positions: range
    headers: dict[str, str]


async def download(datasette: Any, request: Any, send: Any) -> None:
    """Send `/<database>.db`, with length, entity tag and ranges.

    Raises:
        NotFound: there is no such database, or it has no file that can be read.
        Forbidden: the owner does not allow the download.
    """
    # Find the database and its open file.
    route = tilde_decode(request.url_vars["database"])
    try:
        database = datasette.get_database(route=route)
    except KeyError:
        raise NotFound(NO_FILE) from None
    if not database.path or database.is_mutable:
        raise NotFound(NO_FILE)
    if not datasette.setting("allow_download"):
        raise Forbidden("This server does not offer downloads.")
    await ensure(datasette, request.actor, "view-database-download", database.name)
    if database not in _open_files:
        raise NotFound(NO_FILE)
    descriptor = _open_files[database].fileno()

    # Send the headers.
    size = os.fstat(descriptor).st_size
    part = choose_part(size, f'"{database.hash}"', request.headers)
    name = quote(os.fsencode(Path(database.path).name), safe="")
    headers = {
        **part.headers,
        "content-type": "application/octet-stream",
        "content-disposition": f"attachment; filename*=UTF-8''{name}",
    }
    await send(PageResponse(b"", part.status, tuple(headers.items())).start)

    # Send the content, which a response to HEAD does not have.
    if request.method != "HEAD":
        await _send_bytes(descriptor, part.positions, send)
    await send({"type": "http.response.body", "body": b""})


async def _send_bytes(descriptor: int, positions: range, send: Any) -> None:
    """Send a part of a file, in chunks."""
    position = positions.start
    while position < positions.stop:
        size = min(CHUNK, positions.stop - position)
        # Processes share the descriptor, and so its own position: `pread` leaves that.
        chunk = os.pread(descriptor, size, position)
        if not chunk:
            # The file has become shorter; the client sees that bytes are missing.
            return
        position += len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": True})


def choose_part(size: int, etag: str, headers: dict[str, str]) -> Part:
    """Return the part of a file of `size` bytes that the headers of a request ask for.

    A request whose range is not a single plain one gets the whole file.
    """
    tags = {"etag": etag, "accept-ranges": "bytes"}

    # The client has the file already.
    cached = headers.get("if-none-match", "")
    if etag in cached or cached == "*":
        return Part(304, range(0), tags)

    # Without a range, or with one of another file, the whole file is sent.
    positions = _requested_range(headers.get("range", ""), size)
    is_other_file = headers.get("if-range", etag) != etag
    if positions is None or is_other_file:
        return Part(200, range(size), {**tags, "content-length": str(size)})

    # A range beyond the end of the file has no bytes.
    if positions:
        status = 206
        span = f"{positions.start}-{positions.stop - 1}"
    else:
        status = 416
        span = "*"
    part_headers = {
        **tags,
        "content-range": f"bytes {span}/{size}",
        "content-length": str(len(positions)),
    }
    return Part(status, positions, part_headers)


def _requested_range(header: str, size: int) -> range | None:
    """Return the positions that a header `Range` asks for; None if it is not plain."""
    match = _RANGE.fullmatch(header.strip())
    if match is None:
        return None
    first, last = match.groups()
    every = range(size)
    if not first:
        return every[max(size - int(last), 0) :]
    if not last:
        return every[int(first) :]
    if int(last) < int(first):
        return None
    return every[int(first) : int(last) + 1]


def open_files(datasette: Any) -> None:
    """Open the files that visitors may download, whose hash is in the entity tag."""
    for database in datasette.databases.values():
        if database.path and not database.is_mutable:
            # A file that cannot be read is reported by the pages of its database.
            with suppress(OSError):
                _open_files[database] = Path(database.path).open("rb")  # noqa: SIM115
            # Datasette computes the hash from the whole file now, not during a request,
            # unless there are inspect data.
            _ = database.hash


def close_files(datasette: Any) -> None:
    """Close the files of a Datasette that is not used any more."""
    for database in datasette.databases.values():
        if database in _open_files:
            _open_files.pop(database).close()
