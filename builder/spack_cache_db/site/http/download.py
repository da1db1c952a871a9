"""Sends a database file, or the part of it that a request asks for.

The file is opened when the server starts, so that a download never mixes two files.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
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


async def download(datasette: Any, request: Any, send: Any) -> None:
    """Send `/<database>.db`, with length, entity tag and ranges."""
    try:
        database = datasette.get_database(
            route=tilde_decode(request.url_vars["database"])
        )
    except KeyError:
        raise NotFound(NO_FILE) from None
    if not database.path or database.is_mutable:
        raise NotFound(NO_FILE)
    if not datasette.setting("allow_download"):
        raise Forbidden("This server does not offer downloads.")
    await ensure(datasette, request.actor, "view-database-download", database.name)
    if database not in _open_files:
        raise NotFound(NO_FILE)
    name = quote(os.fsencode(Path(database.path).name), safe="")
    descriptor = _open_files[database].fileno()
    size = os.fstat(descriptor).st_size
    status, part, headers = choose_part(size, f'"{database.hash}"', request.headers)
    headers |= {
        "content-type": "application/octet-stream",
        "content-disposition": f"attachment; filename*=UTF-8''{name}",
    }
    await send(PageResponse(b"", status, tuple(headers.items())).start)
    place = part.stop if request.method == "HEAD" else part.start
    while place < part.stop:
        # Processes share the descriptor, but not this place in the file.
        chunk = os.pread(descriptor, min(CHUNK, part.stop - place), place)
        if not chunk:
            break
        place += len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def open_files(datasette: Any) -> None:
    """Open the files that visitors may download, whose hash is in the entity tag."""
    for database in datasette.databases.values():
        if database.path and not database.is_mutable:
            # A file that cannot be read is reported by the pages of its database.
            with suppress(OSError):
                _open_files[database] = Path(database.path).open("rb")  # noqa: SIM115
            # Datasette reads the whole file for it, unless there are inspect data.
            _ = database.hash


def close_files(datasette: Any) -> None:
    """Close the files of a Datasette that is not used any more."""
    for database in datasette.databases.values():
        if database in _open_files:
            _open_files.pop(database).close()


def choose_part(
    size: int, etag: str, headers: dict[str, str]
) -> tuple[int, range, dict[str, str]]:
    """Return the status of a download, the bytes to send, and their headers.

    A request whose range is not a single plain one gets the whole file.
    """
    tags = {"etag": etag, "accept-ranges": "bytes"}
    cached = headers.get("if-none-match", "")
    if etag in cached or cached == "*":
        return 304, range(0), tags
    match = _RANGE.fullmatch(headers.get("range", "").strip())
    first, last = match.groups() if match else ("", "")
    is_reversed = first and last and int(last) < int(first)
    if match is None or is_reversed or headers.get("if-range", etag) != etag:
        return 200, range(size), {**tags, "content-length": str(size)}
    start = int(first) if first else max(size - int(last), 0)
    part = range(size)[start : int(last) + 1 if first and last else size]
    span = f"{start}-{part.stop - 1}" if part else "*"
    tags |= {"content-range": f"bytes {span}/{size}", "content-length": str(len(part))}
    return 206 if part else 416, part, tags
