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
"""The pattern of the addresses."""
CHUNK = 64 * 1024
"""Bytes that are read and sent at once: a client that stops reading occupies as much
memory, besides the server's own buffer.
"""
NO_FILE = "This server has no such file."

_open_files: WeakKeyDictionary[Any, BinaryIO] = WeakKeyDictionary()
"""The open file of each of Datasette's immutable databases."""

_RANGE = re.compile(r"bytes=(?=.*\d)(\d{0,18})-(\d{0,18})")
"""A single range: `bytes=0-99`, `bytes=100-` (all bytes from there) or `bytes=-100`
(the last hundred). At least one of the numbers is there.
"""


class Part(NamedTuple):
    """The bytes of a file to send, with the status and the headers of the response.

    Attributes:
        status: 200 for the whole file, 206 for a part, 304 if the client has it
            already, 416 for a range without bytes.
        positions: the positions of the bytes in the file.
        headers: the headers that concern length and range.
    """

    status: int
    positions: range
    headers: dict[str, str]


async def download(datasette: Any, request: Any, send: Any) -> None:
    """Send `/<database>.db`, with length, entity tag and ranges: Datasette's handler.

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

    # Send the headers. The name may have any characters (RFC 6266, `filename*`).
    size = os.fstat(descriptor).st_size
    etag = f'"{database.hash}"'
    part = choose_part(size, etag, request.headers)
    file_name = Path(database.path).name
    quoted_name = quote(os.fsencode(file_name), safe="")
    headers = {
        **part.headers,
        "content-type": "application/octet-stream",
        "content-disposition": f"attachment; filename*=UTF-8''{quoted_name}",
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
        # Processes share the descriptor, and so its current position, which `pread`
        # neither uses nor changes.
        chunk = os.pread(descriptor, size, position)
        if not chunk:
            # The file has become shorter; the client sees that bytes are missing.
            return
        position += len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": True})


def choose_part(size: int, etag: str, headers: dict[str, str]) -> Part:
    """Return the part of a file that the headers of a request ask for.

    A request whose range is not a single plain one gets the whole file.

    Args:
        size: the size of the file in bytes.
        etag: the entity tag of its content, with quotation marks.
        headers: the headers of the request, with names in lower case.
    """
    tags = {"etag": etag, "accept-ranges": "bytes"}

    # The client has the file already. It may send a list of tags.
    cached_tags = headers.get("if-none-match", "")
    if etag in cached_tags or cached_tags == "*":
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
    """Return the positions in a file that a header `Range` asks for.

    They are empty for a range beyond the end of the file, and None for a header that is
    not `_RANGE`, or has its numbers in the wrong order.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None:
        return None
    first, last = match.groups()
    # A part of it ends where the file ends.
    every_position = range(size)
    if not first:
        start = max(size - int(last), 0)
        return every_position[start:]
    if not last:
        return every_position[int(first) :]
    if int(last) < int(first):
        return None
    return every_position[int(first) : int(last) + 1]


def open_files(datasette: Any) -> None:
    """Open the files that visitors may download, when the server starts."""
    for database in datasette.databases.values():
        if database.path and not database.is_mutable:
            # A file that cannot be read is reported by the pages of its database.
            with suppress(OSError):
                _open_files[database] = Path(database.path).open("rb")  # noqa: SIM115
            # The entity tag has the hash. Without inspect data, Datasette computes it
            # from the whole file: now, and not during a request.
            _ = database.hash


def close_files(datasette: Any) -> None:
    """Close the files of a Datasette that is not used any more."""
    for database in datasette.databases.values():
        if database in _open_files:
            _open_files.pop(database).close()
