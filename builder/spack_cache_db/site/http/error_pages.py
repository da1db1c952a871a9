"""Error responses: the status and message of each failure, as page, JSON or text."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from spack_cache_db.database_damage import damage_of
from spack_cache_db.site.catalogue import published
from spack_cache_db.site.http.own_pages import PAGE_SECONDS, is_own_page
from spack_cache_db.site.http.slow_queries import (
    GENERAL_ADVICE,
    advice_on,
    canned_query,
    is_slow_query,
)
from spack_cache_db.site.log import LONGEST, log, log_error
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.plugin_routes import is_in_plugin, is_of_plugin
from spack_cache_db.site.refusals import NO_PAGE, heading_of, refused
from spack_cache_db.site.sql.running import TOO_MUCH
from spack_cache_db.sqlite_connection import is_interrupted

RETRY_AFTER_SECONDS = 5
"""Time after which a client may try again, in responses with status 503."""

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
    "The query was stopped after {limit:,} ms, the time limit of a query. {advice} Or download the"
    " file and run the query there."
)

_SQL_FIELDS = {"sql", "_where"}
"""Fields of an address that contain SQL of the visitor."""
_VALUE_ERRORS = (ValueError, TypeError, LookupError, RecursionError, AssertionError)
"""Raised for a value of a visitor that is not the number, JSON or name expected."""
_SQL_ERRORS = (
    sqlite3.OperationalError,
    sqlite3.ProgrammingError,
    sqlite3.IntegrityError,
)
_NO_FILE = (errno.ENAMETOOLONG, errno.ENOTDIR)
"""Errors of the system for a path that cannot be that of a file."""


class Failure(NamedTuple):
    """What a visitor reads about a request that failed."""

    status: int
    title: str
    sentence: str


async def answer_error(
    datasette: Any, request: Any, exception: Exception
) -> PageResponse:
    """Return the response to a request that failed."""
    is_own = (
        is_own_page(request.path)
        or is_of_plugin(datasette, request.path)
        or is_in_plugin(exception)
    )
    advice = GENERAL_ADVICE
    if is_slow_query(exception):
        advice = await advice_on(datasette, request)
    limit = datasette.setting("sql_time_limit_ms")
    failure = failure_of(
        exception, limit, list(request.args), is_own=is_own, advice=advice
    )

    # Log what the operator should know; a damaged database is the cause of all else.
    damage = None
    if failure.status == 500:
        path = published(datasette).path
        damage = await asyncio.to_thread(_damage, path, exception)
    if damage is not None:
        failure = _failure(503, DAMAGED)
        log(damage)
    elif failure.status == 500:
        log_error(request.full_path, exception)
    elif isinstance(exception, _VALUE_ERRORS):
        # In case it is a bug of Datasette's after all.
        shown_path = repr(request.full_path[:LONGEST])
        shown_error = repr(exception)[:LONGEST]
        log(f"{shown_path}: {shown_error}")

    response = await _response(datasette, request, failure)
    if failure.status != 503:
        return response
    retry_after = ("retry-after", str(RETRY_AFTER_SECONDS))
    return response._replace(headers=(*response.headers, retry_after))


def failure_of(
    exception: Exception,
    time_limit_ms: int,
    fields: Collection[str] = (),
    *,
    is_own: bool = False,
    advice: str = GENERAL_ADVICE,
) -> Failure:
    """Return the status, title and sentence for an exception.

    Datasette's exceptions have a status; others may reveal details of the machine in
    their text. Datasette uses 500 for some invalid addresses and does not check others.

    Args:
        exception: the exception.
        time_limit_ms: the time limit of a query.
        fields: the names of the fields in the address.
        is_own: whether it was raised by one of our own pages or the code of a plugin.
            There, an error of a value is a bug; on Datasette's pages, it is a fault of
            the address.
        advice: what a visitor can do whose query took too long.
    """
    # Statements that need too much memory or time.
    title = getattr(exception, "title", None)
    if isinstance(exception, MemoryError):
        return _failure(400, NO_MEMORY, "Query refused")
    if is_slow_query(exception):
        sentence = INTERRUPTED.format(limit=time_limit_ms, advice=advice)
        return _failure(400, sentence, "Query refused")

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
    """Return a failure, by default with its status as title."""
    return Failure(status, title or heading_of(status), sentence)


def _damage(path: str | None, exception: Exception) -> str | None:
    """Return why a database is damaged, if that is the cause of an exception."""
    if path is None:
        return None
    damage = damage_of(Path(path), exception)
    return None if damage is None else str(damage)


async def _response(datasette: Any, request: Any, failure: Failure) -> PageResponse:
    """Return a failure in the form that the request asked for."""
    status, title, sentence = failure
    _, _, extension = request.path.rpartition(".")
    if extension in ("csv", "json"):
        return refused(sentence, extension, status, title)

    # The page shows the visitor's SQL, or the fields of a canned query, to be changed.
    canned = canned_query(datasette, request) or {}
    names = canned.get("params") or ()
    context = {
        "error": sentence,
        "status": status,
        "title": title,
        "path": request.path,
        "sql": request.args.get("sql"),
        "query_fields": [(name, request.args.get(name) or "") for name in names],
    }
    html = await datasette.render_template("error.html", context, request=request)
    return data(html, "html", status=status)
