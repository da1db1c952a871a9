"""Error responses: the status and message of each failure, as page, JSON or text.

`plugin` unregisters Datasette's own handler. That handler renders a second page besides ours and,
if `rich` is installed, prints the variables of every frame: a second of the event loop per error.
"""

from __future__ import annotations

import errno
import sqlite3
import sys
import traceback
from typing import Any, NamedTuple

from datasette.utils.asgi import Response

from spack_cache_db.database_file import is_interrupted
from spack_cache_db.site.answers import STRICT, refused
from spack_cache_db.site.middleware import (
    NO_PAGE,
    App,
    Message,
    Receive,
    Scope,
    Send,
    path_of,
    send_answer,
)
from spack_cache_db.site.own_pages import is_own_page, response_of
from spack_cache_db.site.sandbox.statements import TOO_MUCH
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


class Failure(NamedTuple):
    """The status, title and message that a visitor gets for a failed request."""

    status: int
    title: str
    sentence: str


def failure_of(exception: Exception, time_limit_ms: int, *, is_own: bool = False) -> Failure:
    """Return the failure to report for an exception.

    Datasette's exceptions have a status; others may reveal details of the machine in their text.
    Datasette uses 500 for some invalid addresses and does not check others: on its pages, these
    exceptions count as faults of the address, while on our own pages they are bugs.
    """
    status, title = getattr(exception, "status", None), getattr(exception, "title", None)
    sentence = str(getattr(exception, "message", None) or exception)
    if isinstance(exception, MemoryError):
        status, title, sentence = 400, "Query refused", NO_MEMORY[1]
    elif title == "SQL Interrupted":
        title, sentence = "Query refused", INTERRUPTED.format(limit=time_limit_ms)
    elif isinstance(status, int):
        status = 400 if status == 500 else status
        # Datasette takes the first part of every address for the name of a database.
        if status == 404 and (sentence in ("", "404") or sentence.startswith("Database not found")):
            sentence = NO_PAGE
    elif isinstance(exception, OSError) and exception.errno in _NO_FILE:
        status, sentence = 404, NO_PAGE
    elif is_own and is_interrupted(exception):
        status, sentence = 503, SLOW.format(limit=int(PAGE_SECONDS * 1000))
    elif not is_own and isinstance(exception, _SQL_ERRORS):
        status, title = 400, "Query refused"
    elif not is_own and isinstance(exception, _VALUE_ERRORS):
        status, sentence = 400, UNREADABLE
    else:
        status, sentence = 500, UNKNOWN
    return Failure(status or 500, title or f"Error {status}", sentence)


async def answer_error(datasette: Any, request: Any, exception: Exception) -> Any:
    """Return the response to a request that failed."""
    path = path_of(request.scope)
    is_own = is_own_page(path)
    status, title, sentence = failure_of(
        exception, datasette.setting("sql_time_limit_ms"), is_own=is_own
    )
    is_sql = isinstance(exception, _SQL_ERRORS) or (
        getattr(exception, "title", None) == "Invalid SQL"
    )
    # SQLite's message helps only a visitor who wrote SQL.
    if not is_own and is_sql and sentence != TOO_MUCH and _SQL_FIELDS.isdisjoint(request.args):
        is_search = any(name.startswith("_search") for name in request.args)
        title, sentence = "Error 400", NO_SEARCH if is_search else UNREADABLE
    if status == 500:
        traceback.print_exception(exception, file=sys.stderr)
    elif sentence == UNREADABLE:
        # In case it is a bug of Datasette's after all.
        print(f"{path[:200]!r}: {exception!r:.500}", file=sys.stderr)
    form = request.path.rpartition(".")[2]
    if form in ("csv", "json"):
        response = response_of(refused(sentence, form, status, title))
    else:
        context = {"error": sentence, "status": status, "title": title, "path": request.path}
        context["sql"] = request.args.get("sql")
        html = await datasette.render_template("error.html", context, request=request)
        response = Response.html(html, status, {"content-security-policy": STRICT})
    if status == 503:
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


async def guard_csv(_: Any, app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass a request on, and never send an error as CSV with status 200.

    If a stream fails, Datasette writes the reason into it like a row; if a query is refused, 0.65
    sends 200 with an empty line. Caches would keep both. With this wrapper, an error before the
    first row has an error status, and an error after it closes the connection.
    """
    is_csv = str(scope["path"]).endswith(".csv") and not is_own_page(path_of(scope))
    await app(scope, receive, _CsvGuard(send).send if is_csv else send)


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
        if message["type"] == "http.response.start":
            kind = {key.lower(): value for key, value in message["headers"]}.get(b"content-type")
            self._is_rows = message["status"] == 200 and (kind or b"").startswith(_CSV)
            self._start = message
        if not self._is_rows:
            await self._send(message)
        elif message["type"] == "http.response.body" and not self._is_broken:
            await self._send_rows(message)

    async def _send_rows(self, message: Message) -> None:
        """Send the waiting rows once they are `PIECE_BYTES`, after the status."""
        body = message.get("body", b"")
        self._is_broken = bool(body) and not body.endswith(_ROW_END)
        start, self._start = self._start, None
        if start is not None:
            if self._is_broken or (refusal() and body in (b"", _ROW_END)):
                self._is_broken = True
                await send_answer(self._send, refused(refusal() or NO_ROWS, "csv"))
                return
            await self._send(start)
        self._waiting += b"" if self._is_broken else body
        # After an error, no last message follows: the server closes the connection.
        is_more = self._is_broken or message.get("more_body", False)
        if self._is_broken or len(self._waiting) >= PIECE_BYTES or not is_more:
            piece, self._waiting = bytes(self._waiting), bytearray()
            await self._send({**message, "body": piece, "more_body": is_more})
