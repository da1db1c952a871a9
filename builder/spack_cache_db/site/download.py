"""Sends a database, or the part of it that a request asks for."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from spack_cache_db.site.middleware import Scope, Send

CHUNK = 64 * 1024
"""What a visitor who stops reading holds in memory, beside the server's buffer of the same size."""

_states: dict[Path, tuple[int, int]] = {}
_NOT_PLAIN = re.compile(r"[^\w.+ -]", re.ASCII)
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True, slots=True)
class Part:
    """What to send: a status, and which bytes. `length` is 0 where no body is due."""

    status: int
    start: int
    length: int
    headers: tuple[tuple[str, str], ...]


def note_state(path: Path) -> None:
    """Remember the size and time of a file, from which `is_as_it_was` knows whether it changed."""
    _states[path] = _state(path)


def is_as_it_was(path: Path) -> bool:
    """Return whether a file has not been written to since the server started.

    A database that is built anew has another path. One that was overwritten in its place has other
    bytes under the same entity tag, and a download that is resumed would mix both.
    """
    return _states.setdefault(path, _state(path)) == _state(path)


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def disposition(name: str) -> str:
    """Return the header that names a download, whatever characters its name has (RFC 6266, 5)."""
    plain = _NOT_PLAIN.sub("_", name)
    others = "" if plain == name else f"; filename*=UTF-8''{quote(os.fsencode(name), safe='')}"
    return f'attachment; filename="{plain}"{others}'


async def send_file(scope: Scope, send: Send, path: Path, etag: str) -> None:
    """Answer a request with a file that does not change, or with the part that it asks for."""
    headers = {
        key.decode("latin1"): value.decode("latin1") for key, value in scope.get("headers") or ()
    }
    part = choose_part(path.stat().st_size, etag, headers)
    described = (
        *part.headers,
        ("content-type", "application/octet-stream"),
        ("content-disposition", disposition(path.name)),
    )
    start = {
        "type": "http.response.start",
        "status": part.status,
        "headers": [(key.encode("latin1"), value.encode("latin1")) for key, value in described],
    }
    await send(start)
    await _send_part(send, path, part, is_head=scope["method"] == "HEAD")


async def _send_part(send: Send, path: Path, part: Part, *, is_head: bool) -> None:
    left = 0 if is_head else part.length
    with path.open("rb") as file:
        file.seek(part.start)
        while left > 0:
            chunk = await asyncio.to_thread(file.read, min(CHUNK, left))
            if not chunk:
                break
            left -= len(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def choose_part(size: int, etag: str, headers: dict[str, str]) -> Part:
    """Decide which part of a file answers a request with these (lower-case) headers."""
    common = (("etag", etag), ("accept-ranges", "bytes"))
    known = [
        each.strip().removeprefix("W/") for each in headers.get("if-none-match", "").split(",")
    ]
    if etag in known or "*" in known:
        return Part(304, 0, 0, common)
    wanted = headers.get("range", "")
    if wanted and headers.get("if-range", etag) == etag:
        span = _span(wanted, size)
        if span == (0, 0):
            refused = ("content-range", f"bytes */{size}")
            return Part(416, 0, 0, (*common, refused, ("content-length", "0")))
        if span is not None:
            start, end = span
            described = ("content-range", f"bytes {start}-{end - 1}/{size}")
            length = ("content-length", str(end - start))
            return Part(206, start, end - start, (*common, described, length))
    return Part(200, 0, size, (*common, ("content-length", str(size))))


def _span(wanted: str, size: int) -> tuple[int, int] | None:
    """Return start and end of one range; (0, 0) when there is nothing there.

    `None` stands for a header that is not one plain range, which may be answered with it all.
    """
    match = _RANGE.fullmatch(wanted.strip())
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
