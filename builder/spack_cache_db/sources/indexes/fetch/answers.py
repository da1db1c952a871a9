"""What a response says before its body: is it good, how long, in which encoding and state."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from spack_cache_db.sources.indexes.fetch.encodings import ENCODINGS
from spack_cache_db.sources.indexes.fetch.faults import (
    FetchFault,
    LoginFault,
    NotThereFault,
    Passing,
)
from spack_cache_db.sources.indexes.fetch.records import Tags

_PASSING = (408, 425, 429, 500, 502, 503, 504)
_NOT_THERE = (403, 404, 410)


def tags_of(response: httpx.Response) -> Tags:
    """Return what a response calls the state of its file."""
    headers = response.headers
    return Tags(headers.get("ETag", ""), headers.get("Last-Modified", ""))


def encoding_of(url: str, response: httpx.Response) -> str:
    """Return a response's content encoding, empty for none; `FetchFault` if it is not known."""
    encoding: str = response.headers.get("Content-Encoding", "").strip().lower()
    encoding = {"identity": "", "x-gzip": "gzip"}.get(encoding, encoding)
    if encoding and encoding not in ENCODINGS:
        known = ", ".join(ENCODINGS)
        raise FetchFault(url, f"sends the content encoding {encoding!r}, expected {known} or none")
    return encoding


def require_size(url: str, size: int, limit: int) -> None:
    """Raise `FetchFault` if there are more bytes than the limit."""
    if size > limit:
        raise too_large(url, limit)


def too_large(url: str, limit: int) -> FetchFault:
    """Return the fault of a body that is larger than the limit."""
    return FetchFault(url, f"has more than {limit:,} bytes, expected less (--max-size)")


def require_good(url: str, response: httpx.Response) -> None:
    """Raise unless a response is worth reading: its status is 200, 206, 304 or 416.

    Raises:
        Passing: it says that the trouble may pass.
        FetchFault: it says anything else.
    """
    status = response.status_code
    if status in (200, 206, 304, 416):
        return
    if status == 401:
        raise LoginFault(url, response.headers.get("WWW-Authenticate", ""))
    if status in _PASSING:
        raise Passing(f"answers {status}", _retry_after(response))
    if status in _NOT_THERE:
        raise NotThereFault(url, f"answers {status}, expected an index there")
    raise FetchFault(url, f"answers {status}, expected 200")


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds that a server asks for (RFC 9110 section 10.2.3)."""
    text: str = response.headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, (_date(text) - datetime.now(UTC)).total_seconds())
    except ValueError:
        return None


def _date(text: str) -> datetime:
    date = parsedate_to_datetime(text)
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def length_of(response: httpx.Response) -> int | None:
    """Return the bytes that a response says it sends; None if it does not."""
    text: str = response.headers.get("Content-Length", "")
    return int(text) if text.isdecimal() and len(text) < 20 else None
