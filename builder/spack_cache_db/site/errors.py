"""What a visitor reads where a request failed: a status and a sentence, as a page, JSON or text.

Datasette's own handler is taken out (`plugins/spack_cache.py`): it renders a page beside any other
handler's, and where `rich` happens to be installed it prints all variables of every frame, which
takes a second of the event loop for each bad address.
"""

from __future__ import annotations

import errno
import re
import sqlite3
import sys
import traceback
from dataclasses import dataclass
from typing import Any

from datasette.utils.asgi import Response

from spack_cache_db.query.connection import is_interrupted
from spack_cache_db.site.queues import RETRY_AFTER_SECONDS
from spack_cache_db.site.reading import TIME_LIMIT_MS
from spack_cache_db.site.routes import ROUTES
from spack_cache_db.site.sql.limits import NO_MEMORY
from spack_cache_db.site.wrapper import NO_PAGE, OWN_PAGE, path_below

UNKNOWN = "Something went wrong here; the server's log says what."
UNREADABLE = (
    "This address cannot be answered: a field behind its ?, the key of a row or the form asked"
    " for is not what is expected there."
)
SLOW = (
    "This page took longer than {limit:,} ms, which is all the time that one is given: ask for"
    " less, or again when there is less to do here."
)
INTERRUPTED = "The query took longer than {limit:,} ms, which is all the time that one is given."


# What values that a visitor makes up bring out of code that expects numbers, JSON or names.
_OF_VALUES = (ValueError, TypeError, LookupError, RecursionError, AssertionError)
_OF_STATEMENTS = (sqlite3.OperationalError, sqlite3.ProgrammingError)
_NO_FILE = (errno.ENAMETOOLONG, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed, in words for the visitor."""

    status: int
    title: str
    sentence: str


def failure_of(exception: Exception, time_limit_ms: int, *, is_own: bool = False) -> Failure:
    """Return what to say of an exception.

    Datasette's own exceptions carry a status; what carries none may tell about the machine in its
    text. Where Datasette refuses part of an address it may carry 500, and what it cannot read it
    often does not check: on its pages, such an exception is the address's fault.

    Args:
        exception: what a page raised.
        time_limit_ms: how long one statement may take.
        is_own: whether it is one of the catalogue's own pages, where it is a bug.
    """
    status = getattr(exception, "status", None)
    title = getattr(exception, "title", None)
    if isinstance(exception, MemoryError):
        return Failure(400, "Query refused", NO_MEMORY)
    if not isinstance(status, int):
        return _without_status(exception, is_own=is_own)
    if title == "SQL Interrupted":
        return Failure(status, "Query refused", INTERRUPTED.format(limit=time_limit_ms))
    status = 400 if status == 500 else status
    sentence = str(getattr(exception, "message", None) or exception)
    # To Datasette the first part of every address is a database's name.
    if status == 404 and (sentence in ("", "404") or sentence.startswith("Database not found")):
        sentence = NO_PAGE
    return Failure(status, title or f"Error {status}", sentence)


def _without_status(exception: Exception, *, is_own: bool) -> Failure:
    if isinstance(exception, OSError) and exception.errno in _NO_FILE:
        return Failure(404, "Error 404", NO_PAGE)
    if is_own and is_interrupted(exception):
        return Failure(503, "Error 503", SLOW.format(limit=TIME_LIMIT_MS))
    if not is_own and isinstance(exception, _OF_STATEMENTS):
        return Failure(400, "Query refused", str(exception))
    if not is_own and isinstance(exception, _OF_VALUES):
        return Failure(400, "Error 400", UNREADABLE)
    return Failure(500, "Error 500", UNKNOWN)


async def answer(datasette: Any, request: Any, exception: Exception) -> Any:
    """Return the answer to a request that failed."""
    path = path_below(request.path, datasette.setting("base_url"))
    is_own = any(re.match(pattern, path) for pattern, _ in ROUTES)
    failure = failure_of(exception, datasette.setting("sql_time_limit_ms"), is_own=is_own)
    if failure.status == 500:
        traceback.print_exception(exception, file=sys.stderr)
    elif failure.sentence == UNREADABLE:
        # In case it is a bug of Datasette's after all.
        print(f"{path[:200]!r}: {exception!r:.500}", file=sys.stderr)
    headers = dict(OWN_PAGE)
    if failure.status == 503:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
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
