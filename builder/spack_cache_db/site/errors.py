"""What a visitor reads where a request failed: a status and a sentence, as a page, JSON or text.

Datasette's own handler is taken out (`plugins/spack_cache.py`): it renders a page beside any other
handler's, and where `rich` happens to be installed it prints all variables of every frame, which
takes a second of the event loop for each bad address.
"""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from typing import Any

from datasette.utils import add_cors_headers
from datasette.utils.asgi import Response

from spack_cache_db.site.queues import RETRY_AFTER_SECONDS
from spack_cache_db.site.sql.limits import NO_MEMORY
from spack_cache_db.site.wrapper import OWN_PAGE

UNKNOWN = "Something went wrong here; the server's log says what."
NO_PAGE = "There is no such page here."
INTERRUPTED = "The query took longer than {limit:,} ms, which is all the time that one is given."


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed, in words for the visitor."""

    status: int
    title: str
    sentence: str


def failure_of(exception: Exception, time_limit_ms: int) -> Failure:
    """Return what to say of an exception.

    Datasette's own exceptions carry a status; what carries none is a bug, here or there, and its
    text may tell about the machine. Where Datasette refuses part of an address it may carry 500.
    """
    status = getattr(exception, "status", None)
    title = getattr(exception, "title", None)
    if isinstance(exception, MemoryError):
        return Failure(400, "Query refused", NO_MEMORY)
    if not isinstance(status, int):
        return Failure(500, "Error 500", UNKNOWN)
    if title == "SQL Interrupted":
        return Failure(status, "Query refused", INTERRUPTED.format(limit=time_limit_ms))
    status = 400 if status == 500 else status
    sentence = str(getattr(exception, "message", None) or exception)
    if status == 404 and sentence in ("", "404"):
        sentence = NO_PAGE
    return Failure(status, title or f"Error {status}", sentence)


async def answer(datasette: Any, request: Any, exception: Exception) -> Any:
    """Return the answer to a request that failed."""
    failure = failure_of(exception, datasette.setting("sql_time_limit_ms"))
    if failure.status == 500:
        traceback.print_exception(exception, file=sys.stderr)
    headers = dict(OWN_PAGE)
    if failure.status == 503:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if datasette.cors:
        add_cors_headers(headers)
    if request.path.endswith(".json"):
        said = {"ok": False, "error": failure.sentence, "status": failure.status}
        return Response.json(
            {**said, "title": failure.title}, status=failure.status, headers=headers
        )
    if request.path.endswith(".csv"):
        return Response.text(f"Error: {failure.sentence}\n", failure.status, headers)
    context = {
        "status": failure.status,
        "title": failure.title,
        "error": failure.sentence,
        "sql": request.args.get("sql"),
    }
    html = await datasette.render_template("error.html", context, request=request)
    return Response.html(html, status=failure.status, headers=headers)
