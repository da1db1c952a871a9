"""Sends a database file, or the part of it that a request asks for."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from spack_cache_db.site.middleware import Scope, Send

CHUNK = 64 * 1024
"""Memory that a client which stops reading can occupy, besides the server's own buffer."""

_states: dict[Path, tuple[int, int]] = {}
_NOT_PLAIN = re.compile(r"[^\w.+ -]", re.ASCII)
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True, slots=True)
class Part:
    """The status and headers of a download, and the bytes to send; `length` 0 for no body."""

    status: int
    start: int
    length: int
    headers: tuple[tuple[str, str], ...]


def note_state(path: Path) -> None:
    """Remember the size and time of a file for `is_as_it_was`."""
    _states[path] = _state(path)


def is_as_it_was(path: Path) -> bool:
    """Return whether a file is unchanged since the server started.

    A new build has another path. A file that was overwritten in place has other bytes under the
    same entity tag, and a resumed download would mix both.
    """
    return _states.setdefault(path, _state(path)) == _state(path)


def _state(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def disposition(name: str) -> str:
    """Return the header that names a download, for any characters in the name (RFC 6266, 5)."""
    plain = _NOT_PLAIN.sub("_", name)
    encoded = "" if plain == name else f"; filename*=UTF-8''{quote(os.fsencode(name), safe='')}"
    return f'attachment; filename="{plain}"{encoded}'


async def send_file(scope: Scope, send: Send, path: Path, etag: str) -> None:
    """Send a file that does not change, or the part of it that a request asks for."""
    headers = {
        key.decode("latin1"): value.decode("latin1") for key, value in scope.get("headers") or ()
    }
    part = choose_part(path.stat().st_size, etag, headers)
    response_headers = (
        *part.headers,
        ("content-type", "application/octet-stream"),
        ("content-disposition", disposition(path.name)),
    )
    encoded = [(key.encode("latin1"), value.encode("latin1")) for key, value in response_headers]
    await send({"type": "http.response.start", "status": part.status, "headers": encoded})
    missing = 0 if scope["method"] == "HEAD" else part.length
    with path.open("rb") as file:
        file.seek(part.start)
        while missing > 0:
            chunk = await asyncio.to_thread(file.read, min(CHUNK, missing))
            if not chunk:
                break
            missing -= len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def choose_part(size: int, etag: str, headers: dict[str, str]) -> Part:
    """Return the part of a file to send for a request with these (lower-case) headers."""
    common = (("etag", etag), ("accept-ranges", "bytes"))
    cached = headers.get("if-none-match", "").split(",")
    if not {etag, "*"}.isdisjoint(tag.strip().removeprefix("W/") for tag in cached):
        return Part(304, 0, 0, common)
    span = None
    if headers.get("if-range", etag) == etag:
        span = _span(headers.get("range", ""), size)
    if span is None:
        return Part(200, 0, size, (*common, ("content-length", str(size))))
    start, end = span
    if start == end:
        unsatisfied = (("content-range", f"bytes */{size}"), ("content-length", "0"))
        return Part(416, 0, 0, (*common, *unsatisfied))
    span_headers = (
        ("content-range", f"bytes {start}-{end - 1}/{size}"),
        ("content-length", str(end - start)),
    )
    return Part(206, start, end - start, (*common, *span_headers))


def _span(header: str, size: int) -> tuple[int, int] | None:
    """Return start and end of the range in a header; (0, 0) for a range without bytes.

    None for a header that is not one plain range: it may be answered with the whole file.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.group() == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    return (start, end) if start < end else (0, 0)
