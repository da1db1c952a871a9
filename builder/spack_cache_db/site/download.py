"""Sends a database file, or the part of it that a request asks for."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from datasette.utils import tilde_decode
from datasette.utils.asgi import Forbidden, NotFound

from spack_cache_db.site.answers import Answer
from spack_cache_db.site.catalogues import ensure
from spack_cache_db.site.middleware import Send, start_of

DOWNLOAD = r"^/(?P<database>[^/]+)\.db$"
CHUNK = 64 * 1024
"""Memory that a client which stops reading can occupy, besides the server's own buffer."""
NO_FILE = "This server has no such file."

_NOT_PLAIN = re.compile(r"[^\w.+ -]", re.ASCII)
_RANGE = re.compile(r"bytes=(?=.*\d)(\d{0,18})-(\d{0,18})")


async def download(datasette: Any, request: Any, send: Send) -> None:
    """Send `/<database>.db`, with length, entity tag and ranges."""
    try:
        database = datasette.get_database(route=tilde_decode(request.url_vars["database"]))
    except KeyError:
        raise NotFound(NO_FILE) from None
    await ensure(datasette, request.actor, "view-database", database.name)
    if not database.path or database.is_mutable:
        raise NotFound(NO_FILE)
    if not datasette.setting("allow_download"):
        raise Forbidden("This server does not offer downloads.")
    await ensure(datasette, request.actor, "view-database-download", database.name)
    path = Path(database.path)
    answer, part = choose_part(path.stat().st_size, f'"{database.hash}"', request.headers)
    kind = ("content-type", "application/octet-stream")
    name = ("content-disposition", disposition(path.name))
    await send(start_of(answer._replace(headers=(*answer.headers, kind, name))))
    missing = 0 if request.method == "HEAD" else len(part)
    with path.open("rb") as file:
        file.seek(part.start)
        while missing > 0 and (chunk := await asyncio.to_thread(file.read, min(CHUNK, missing))):
            missing -= len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def disposition(name: str) -> str:
    """Return the header that names a download, for any characters in the name (RFC 6266, 5)."""
    plain = _NOT_PLAIN.sub("_", name)
    encoded = "" if plain == name else f"; filename*=UTF-8''{quote(os.fsencode(name), safe='')}"
    return f'attachment; filename="{plain}"{encoded}'


def choose_part(size: int, etag: str, headers: dict[str, str]) -> tuple[Answer, range]:
    """Return status and headers of a download, and the bytes to send.

    A request whose range is not a single plain one gets the whole file.

    Args:
        headers: those of the request, with lower-case names.
    """
    common = (("etag", etag), ("accept-ranges", "bytes"))
    cached = headers.get("if-none-match", "").split(",")
    if not {etag, "*"}.isdisjoint(tag.strip().removeprefix("W/") for tag in cached):
        return Answer(b"", 304, common), range(0)
    match = _RANGE.fullmatch(headers.get("range", "").strip())
    first, last = match.groups() if match else ("", "")
    is_reversed = first and last and int(last) < int(first)
    if match is None or is_reversed or headers.get("if-range", etag) != etag:
        return Answer(b"", 200, (*common, ("content-length", str(size)))), range(size)
    start = int(first) if first else max(size - int(last), 0)
    part = range(start, min(int(last) + 1, size) if first and last else size)
    span = f"{start}-{part.stop - 1}" if part else "*"
    headers_of_part = (
        ("content-range", f"bytes {span}/{size}"),
        ("content-length", str(len(part))),
    )
    return Answer(b"", 206 if part else 416, (*common, *headers_of_part)), part
