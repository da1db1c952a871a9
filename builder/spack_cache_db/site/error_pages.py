"""Error responses: the status and sentence of each failure, as page, JSON or text.

`plugin` unregisters Datasette's own handler. That one renders a second page beside ours and, if
`rich` is installed, prints all variables of every frame: a second of the event loop for each error.
"""

from __future__ import annotations

import errno
import sqlite3
import sys
import traceback
from dataclasses import dataclass
from typing import Any

from datasette.utils.asgi import Request, Response

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.site.answers import BadAddress
from spack_cache_db.site.middleware import (
    NO_PAGE,
    OWN_PAGE,
    App,
    Message,
    Receive,
    Scope,
    Send,
    path_of,
    send_text,
)
from spack_cache_db.site.own_pages import is_own_page
from spack_cache_db.site.sandbox.statements import PAGE_CELLS, RESULT_CELLS, TOO_MUCH
from spack_cache_db.site.table_addresses import Moved, better_reason, check_query
from spack_cache_db.site.workers.execute import PAGE_SECONDS, refusal
from spack_cache_db.site.workers.worker import NO_MEMORY

PIECE = 64 * 1024
"""Bytes of rows that are sent at once."""
RETRY_AFTER_SECONDS = 5
"""When to try again, as programs are told."""
UNKNOWN = "An unexpected error occurred; the server's log says what."
NO_ROWS = "The rows cannot be shown: the same address without .csv says why."
UNREADABLE = (
    "This URL cannot be read: a parameter after the ?, the key of a row or the format is not what"
    " is expected there."
)
NO_SEARCH = (
    "This search cannot be read: leave out quotation marks and operators, or use the search of this"
    " site, /find?q=, which takes any text."
)
_OURS = tuple(TOO_MUCH.format(cells=cells) for cells in (RESULT_CELLS, PAGE_CELLS))
_STATEMENTS = {"sql", "_where"}
"""Fields that are SQL of the visitor."""
SLOW = (
    "This page was stopped after {limit:,} ms, the time limit of a page. Ask for less, or try again"
    " later."
)
INTERRUPTED = (
    "The query was stopped after {limit:,} ms, the time limit of a query. Name a package or a"
    " release in WHERE, count with facet_counts or the columns that end in _count, or download the"
    " file and run the query there."
)


_ROW_END = b"\r\n"
_CSV = (b"text/plain", b"text/csv")
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
        return Failure(400, "Query refused", NO_MEMORY.message)
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
        return Failure(503, "Error 503", SLOW.format(limit=int(PAGE_SECONDS * 1000)))
    if not is_own and isinstance(exception, _OF_STATEMENTS):
        return Failure(400, "Query refused", str(exception))
    if not is_own and isinstance(exception, _OF_VALUES):
        return Failure(400, "Error 400", UNREADABLE)
    return Failure(500, "Error 500", UNKNOWN)


def _without_sqlite(failure: Failure, request: Any) -> Failure:
    """Return a failure in our words: those of SQLite help only if the visitor wrote SQL."""
    if failure.sentence in _OURS or not _STATEMENTS.isdisjoint(request.args):
        return failure
    is_search = any(name.startswith("_search") for name in request.args)
    return Failure(failure.status, "Error 400", NO_SEARCH if is_search else UNREADABLE)


async def answer_error(datasette: Any, request: Any, exception: Exception) -> Any:
    """Return the answer to a request that failed, or leads elsewhere."""
    path = path_of(request.scope)
    if not is_own_page(path):
        exception = await better_reason(datasette, request, exception)
    if isinstance(exception, Moved):
        return Response.redirect(exception.address, status=301)
    limit = datasette.setting("sql_time_limit_ms")
    failure = failure_of(exception, limit, is_own=is_own_page(path))
    is_of_sqlite = getattr(exception, "title", None) == "Invalid SQL"
    is_of_sqlite = is_of_sqlite or isinstance(exception, _OF_STATEMENTS)
    if is_of_sqlite and not is_own_page(path):
        failure = _without_sqlite(failure, request)
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
        "path": request.path,
    }
    html = await datasette.render_template("error.html", context, request=request)
    return Response.html(html, status=failure.status, headers=headers)


def check_queries(app: App, datasette: Any) -> App:
    """Return the application, which refuses what a canned query cannot be asked."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                await check_query(datasette, scope)
            except (BadAddress, Moved) as error:
                # Datasette's templates need a token for forms; this page has no form.
                request = Request({**scope, "csrftoken": str}, receive)
                answer = await answer_error(datasette, request, error)
                await answer.asgi_send(send)
                return
        await app(scope, receive, send)

    return checked


def guard_csv(app: App) -> App:
    """Return the application, none of whose CSV is an error with status 200; our pages know better.

    Datasette writes why a stream broke off into the stream, as if it were a row, and where a query
    is refused 0.65 answers 200 with an empty line; both would be kept by caches. Here an error is a
    status where nothing was sent yet, and a broken connection where something was.
    """

    def is_csv(scope: Scope) -> bool:
        is_named = scope["type"] == "http" and str(scope["path"]).endswith(".csv")
        return is_named and not is_own_page(path_of(scope))

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, _Csv(send).send if is_csv(scope) else send)

    return guarded


class _Csv:
    """Passes an answer on as long as it is rows; its status waits for the first of them.

    A row ends with CR LF, what Datasette writes of an error does not. Datasette sends each row by
    itself; here they are sent in pieces, since every message costs more than its row.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._is_rows = self._is_broken = False
        self._waiting = bytearray()

    async def send(self, message: Message) -> None:
        if self._is_broken:
            return
        if message["type"] == "http.response.start":
            kind = {key.lower(): value for key, value in message["headers"]}.get(b"content-type")
            self._is_rows = message["status"] == 200 and (kind or b"").startswith(_CSV)
            if self._is_rows:
                self._start = message
                return
        elif self._is_rows:
            await self._send_rows(message)
            return
        await self._send(message)

    async def _send_rows(self, message: Message) -> None:
        """Send what is waiting, with the status before the first row, once it is enough."""
        body = message.get("body", b"")
        is_text = bool(body) and not body.endswith(_ROW_END)
        start, self._start = self._start, None
        if start is not None:
            if is_text or (refusal() and body in (b"", _ROW_END)):
                await self._refuse()
                return
            await self._send(start)
        self._is_broken = is_text
        self._waiting += b"" if is_text else body
        # Where an error broke off the rows, no last message follows.
        is_more = is_text or message.get("more_body", False)
        if is_text or len(self._waiting) >= PIECE or not is_more:
            piece, self._waiting = bytes(self._waiting), bytearray()
            await self._send({**message, "body": piece, "more_body": is_more})

    async def _refuse(self) -> None:
        self._is_broken = True
        await send_text(self._send, 400, refusal() or NO_ROWS)
