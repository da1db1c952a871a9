"""Error responses: the status and message of each failure, as page, JSON or text."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from datasette.database import QueryInterrupted

from spack_cache_db.database_damage import damage_of
from spack_cache_db.site.catalogue import published
from spack_cache_db.site.http.own_pages import PAGE_SECONDS, is_own_page
from spack_cache_db.site.log import LONGEST, log, log_error
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.plugin_routes import is_in_plugin, is_of_plugin
from spack_cache_db.site.refusals import NO_PAGE, refused
from spack_cache_db.site.sql.running import TOO_MUCH
from spack_cache_db.sqlite_connection import is_interrupted

RETRY_AFTER_SECONDS = 5
NO_MEMORY = "the query needs more memory than this server gives to one"
UNKNOWN = "An unexpected error occurred; the server's log has the details."
DAMAGED = (
    "The database of this site is damaged: its operator has to restore a copy of it."
)
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
    " release in WHERE, count with the view release_counts or the columns that end in _count, or"
    " download the file and run the query there."
)

_SQL_FIELDS = {"sql", "_where"}
# Raised when a visitor's value is not the number, JSON or name that the code expects.
_VALUE_ERRORS = (ValueError, TypeError, LookupError, RecursionError, AssertionError)
_SQL_ERRORS = (
    sqlite3.OperationalError,
    sqlite3.ProgrammingError,
    sqlite3.IntegrityError,
)
_NO_FILE = (errno.ENAMETOOLONG, errno.ENOTDIR)


class Failure(NamedTuple):
    """What a visitor is told about a request that failed."""

    status: int
    title: str
    sentence: str


async def answer_error(
    datasette: Any, request: Any, exception: Exception
) -> PageResponse:
    """Return the answer to a request that failed."""
    is_own = (
        is_own_page(request.path)
        or is_of_plugin(datasette, request.path)
        or is_in_plugin(exception)
    )
    limit = datasette.setting("sql_time_limit_ms")
    failure = failure_of(exception, limit, list(request.args), is_own=is_own)

    # Log what the operator should know; a damaged database is the cause of all else.
    damage = None
    if failure.status == 500:
        damage = await asyncio.to_thread(_damage, published(datasette).path, exception)
    if damage is not None:
        failure = _failure(503, DAMAGED)
        log(damage)
    elif failure.status == 500:
        log_error(request.full_path, exception)
    elif isinstance(exception, _VALUE_ERRORS):
        # In case it is a bug of Datasette's after all.
        log(f"{request.full_path[:LONGEST]!r}: {exception!r:.500}")

    answer = await _answer(datasette, request, failure)
    if failure.status != 503:
        return answer
    retry_after = ("retry-after", str(RETRY_AFTER_SECONDS))
    return answer._replace(headers=(*answer.headers, retry_after))


def failure_of(
    exception: Exception,
    time_limit_ms: int,
    fields: Collection[str] = (),
    *,
    is_own: bool = False,
) -> Failure:
    """Return the status, title and sentence for an exception and the fields of an
    address.

    Datasette's exceptions have a status; others may reveal details of the machine in
    their text. Datasette uses 500 for some invalid addresses and does not check others:
    on its pages, these exceptions count as faults of the address, while on our own
    pages and in the code of plugins (`is_own`) they are bugs.
    """
    # Statements that need too much memory or time.
    title = getattr(exception, "title", None)
    if isinstance(exception, MemoryError):
        return _failure(400, NO_MEMORY, "Query refused")
    if title == "SQL Interrupted" or isinstance(exception, QueryInterrupted):
        return _failure(400, INTERRUPTED.format(limit=time_limit_ms), "Query refused")

    # Statements that SQLite refused.
    message = str(getattr(exception, "message", None) or exception)
    is_sql = isinstance(exception, _SQL_ERRORS) or title == "Invalid SQL"
    if is_sql and not is_own:
        has_sql = not _SQL_FIELDS.isdisjoint(fields)
        if has_sql or message == TOO_MUCH:
            return _failure(400, message, title or "Query refused")
        # SQLite's message helps only a visitor who wrote SQL.
        is_search = any(name.startswith("_search") for name in fields)
        return _failure(400, NO_SEARCH if is_search else UNREADABLE)

    # Exceptions of Datasette, with a status.
    status = getattr(exception, "status", None)
    if isinstance(status, int):
        if status == 500:
            status = 400
        # Datasette takes the first part of every address for the name of a database.
        is_unknown = message in ("", "404") or message.startswith("Database not found")
        if status == 404 and is_unknown:
            message = NO_PAGE
        return _failure(status, message, title)

    # All other exceptions.
    if isinstance(exception, OSError) and exception.errno in _NO_FILE:
        return _failure(404, NO_PAGE, title)
    if is_own and is_interrupted(exception):
        return _failure(503, SLOW.format(limit=int(PAGE_SECONDS * 1000)), title)
    if not is_own and isinstance(exception, _VALUE_ERRORS):
        return _failure(400, UNREADABLE, title)
    return _failure(500, UNKNOWN, title)


def _failure(status: int, sentence: str, title: str | None = None) -> Failure:
    return Failure(status, title or f"Error {status}", sentence)


def _damage(path: str | None, exception: Exception) -> str | None:
    """Return why a database is damaged, if that is the cause of an exception."""
    if path is None:
        return None
    damage = damage_of(Path(path), exception)
    return None if damage is None else str(damage)


async def _answer(datasette: Any, request: Any, failure: Failure) -> PageResponse:
    """Return a failure in the form that the request asked for."""
    status, title, sentence = failure
    extension = request.path.rpartition(".")[2]
    if extension in ("csv", "json"):
        return refused(sentence, extension, status, title)
    context = {
        "error": sentence,
        "status": status,
        "title": title,
        "path": request.path,
        "sql": request.args.get("sql"),
    }
    html = await datasette.render_template("error.html", context, request=request)
    return data(html, "html", status=status)
