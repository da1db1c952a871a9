"""Error responses: the status and message of each failure, as page, JSON or text.

`plugin` unregisters Datasette's own handler. That handler renders a second page besides ours and,
if `rich` is installed, prints the variables of every frame: a second of the event loop per error.
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
from spack_cache_db.site.sandbox.statements import TOO_MUCH
from spack_cache_db.site.table_addresses import Moved, better_reason, check_query
from spack_cache_db.site.workers.execute import PAGE_SECONDS, refusal
from spack_cache_db.site.workers.worker import NO_MEMORY

PIECE_BYTES = 64 * 1024
"""Amount of CSV that is sent at once."""
RETRY_AFTER_SECONDS = 5
UNKNOWN = "An unexpected error occurred; the server's log has the details."
NO_ROWS = "The rows cannot be shown: open the same address without .csv to see the reason."
UNREADABLE = (
    "This address is not valid: check the parameters after the ?, the key of the row and the"
    " format."
)
NO_SEARCH = (
    "This search is not valid: leave out quotation marks and operators, or use the search of this"
    " site, /find?q=, which takes any text."
)
SLOW = (
    "This page was stopped after {limit:,} ms, the time limit of a page. Ask for less, or try again"
    " later."
)
INTERRUPTED = (
    "The query was stopped after {limit:,} ms, the time limit of a query. Name a package or a"
    " release in WHERE, count with facet_counts or the columns that end in _count, or download the"
    " file and run the query there."
)

_SQL_FIELDS = {"sql", "_where"}
_ROW_END = b"\r\n"
_CSV = (b"text/plain", b"text/csv")
# Raised when a visitor's value is not the number, JSON or name that the code expects.
_VALUE_ERRORS = (ValueError, TypeError, LookupError, RecursionError, AssertionError)
_SQL_ERRORS = (sqlite3.OperationalError, sqlite3.ProgrammingError)
_NO_FILE = (errno.ENAMETOOLONG, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class Failure:
    """The status, title and message that a visitor gets for a failed request."""

    status: int
    title: str
    sentence: str


def failure_of(exception: Exception, time_limit_ms: int, *, is_own: bool = False) -> Failure:
    """Return the failure to report for an exception.

    Datasette's exceptions have a status; others may reveal details of the machine in their text.
    Datasette uses 500 for some invalid addresses and does not check others: on its pages, these
    exceptions count as faults of the address.

    Args:
        time_limit_ms: the time limit of one statement.
        is_own: whether the page is one of ours, where an exception without a status is a bug.
    """
    status = getattr(exception, "status", None)
    title = getattr(exception, "title", None)
    if isinstance(exception, MemoryError):
        return Failure(400, "Query refused", NO_MEMORY[1])
    if not isinstance(status, int):
        return _without_status(exception, is_own=is_own)
    if title == "SQL Interrupted":
        return Failure(status, "Query refused", INTERRUPTED.format(limit=time_limit_ms))
    status = 400 if status == 500 else status
    sentence = str(getattr(exception, "message", None) or exception)
    # Datasette takes the first part of every address for the name of a database.
    if status == 404 and (sentence in ("", "404") or sentence.startswith("Database not found")):
        sentence = NO_PAGE
    return Failure(status, title or f"Error {status}", sentence)


def _without_status(exception: Exception, *, is_own: bool) -> Failure:
    if isinstance(exception, OSError) and exception.errno in _NO_FILE:
        return Failure(404, "Error 404", NO_PAGE)
    if is_own and is_interrupted(exception):
        return Failure(503, "Error 503", SLOW.format(limit=int(PAGE_SECONDS * 1000)))
    if not is_own and isinstance(exception, _SQL_ERRORS):
        return Failure(400, "Query refused", str(exception))
    if not is_own and isinstance(exception, _VALUE_ERRORS):
        return Failure(400, "Error 400", UNREADABLE)
    return Failure(500, "Error 500", UNKNOWN)


def _without_sqlite(failure: Failure, fields: Any) -> Failure:
    """Return a failure without SQLite's message, unless the visitor wrote SQL."""
    if failure.sentence == TOO_MUCH or not _SQL_FIELDS.isdisjoint(fields):
        return failure
    is_search = any(name.startswith("_search") for name in fields)
    return Failure(failure.status, "Error 400", NO_SEARCH if is_search else UNREADABLE)


async def answer_error(datasette: Any, request: Any, exception: Exception) -> Any:
    """Return the response to a request that failed, or whose address has moved."""
    path = path_of(request.scope)
    is_own = is_own_page(path)
    if not is_own:
        exception = await better_reason(datasette, request, exception)
    if isinstance(exception, Moved):
        return Response.redirect(exception.address, status=301)
    failure = failure_of(exception, datasette.setting("sql_time_limit_ms"), is_own=is_own)
    is_invalid_sql = getattr(exception, "title", None) == "Invalid SQL"
    if not is_own and (is_invalid_sql or isinstance(exception, _SQL_ERRORS)):
        failure = _without_sqlite(failure, request.args)
    if failure.status == 500:
        traceback.print_exception(exception, file=sys.stderr)
    elif failure.sentence == UNREADABLE:
        # In case it is a bug of Datasette's after all.
        print(f"{path[:200]!r}: {exception!r:.500}", file=sys.stderr)
    headers = dict(OWN_PAGE)
    if failure.status == 503:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if request.path.endswith(".csv"):
        return Response.text(f"Error: {failure.sentence}\n", failure.status, headers)
    context = {"error": failure.sentence, "status": failure.status, "title": failure.title}
    if request.path.endswith(".json"):
        return Response.json({"ok": False, **context}, status=failure.status, headers=headers)
    context |= {"sql": request.args.get("sql"), "path": request.path}
    html = await datasette.render_template("error.html", context, request=request)
    return Response.html(html, status=failure.status, headers=headers)


def check_queries(app: App, datasette: Any) -> App:
    """Wrap an application: it refuses unknown parameters and names of canned queries."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await check_query(datasette, scope)
        except (BadAddress, Moved) as error:
            # Datasette's templates need a token for forms; this page has no form.
            request = Request({**scope, "csrftoken": str}, receive)
            answer = await answer_error(datasette, request, error)
            await answer.asgi_send(send)
        else:
            await app(scope, receive, send)

    return checked


def guard_csv(app: App) -> App:
    """Wrap an application: it never sends an error as CSV with status 200.

    If a stream fails, Datasette writes the reason into it like a row; if a query is refused, 0.65
    sends 200 with an empty line. Caches would keep both. With this wrapper, an error before the
    first row has an error status, and an error after it closes the connection.
    """

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        is_csv = str(scope["path"]).endswith(".csv") and not is_own_page(path_of(scope))
        await app(scope, receive, _CsvGuard(send).send if is_csv else send)

    return guarded


class _CsvGuard:
    """Passes rows on, and holds the status back until the first row.

    Rows end with CR LF, Datasette's error messages do not. Datasette sends every row by itself;
    they are joined, because sending a message costs more than making its row.
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
        """Send the waiting rows once they are `PIECE_BYTES`, after the status."""
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
        # After an error, no last message follows: the server closes the connection.
        is_more = is_text or message.get("more_body", False)
        if is_text or len(self._waiting) >= PIECE_BYTES or not is_more:
            piece, self._waiting = bytes(self._waiting), bytearray()
            await self._send({**message, "body": piece, "more_body": is_more})

    async def _refuse(self) -> None:
        self._is_broken = True
        await send_text(self._send, 400, refusal() or NO_ROWS)
