"""Checks the addresses of tables and canned queries before Datasette reads them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from datasette.utils import tilde_decode

from spack_cache_db.site.addresses import KINDS, NAMES, Pairs, answer_query, near, respelled
from spack_cache_db.site.answers import PAGES, BadAddress, Request
from spack_cache_db.site.catalogues import is_own_query, metadata_of, name_of
from spack_cache_db.site.middleware import App, Receive, Scope, Send, path_of, send_answer
from spack_cache_db.site.workers.execute import ask
from spack_cache_db.site.workers.pool import BusyError

OPERATORS = (
    *("exact", "not", "contains", "notcontains", "endswith", "startswith", "like", "notlike"),
    *("gt", "gte", "lt", "lte", "glob", "in", "notin", "arraycontains", "arraynotcontains"),
    *("date", "isnull", "notnull", "isblank", "notblank"),
)
"""Suffixes of a column after `__` (Datasette's documentation, "Column filter arguments")."""
_QUERY = re.compile(r"/([^/]+)/([^/.]+)(?:\.\w+)?")
_NUMERIC = ("gt", "gte", "lt", "lte")
_MOST_DIGITS = 18
"""SQLite's integers have 64 bits."""
_COLUMN_FIELDS = ("_sort", "_sort_desc", "_col", "_nocol", "_label")
_FACETS = ("_facet", "_facet_date", "_facet_array")


class Moved(Exception):
    """An address spells a name differently; `address` has the usual spelling."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


async def check_queries(
    datasette: Any, app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Refuse unknown fields and names of canned queries, and redirect other spellings."""
    path, query = path_of(scope), scope.get("query_string", b"").decode("latin-1")
    match = _QUERY.fullmatch(path) if query else None
    database, name = map(tilde_decode, match.groups() if match else ("", ""))
    parameters = metadata_of(datasette, database, "queries", name).get("params")
    if parameters is not None:
        is_ours = database == name_of(datasette) and is_own_query(datasette, database, name)
        # Without a worker, Datasette cannot answer either, and says why.
        with suppress(BusyError, sqlite3.Error):
            request = Request(path, query)
            answer = await ask(datasette, PAGES, answer_query, request, parameters, is_ours)
            if answer.status != 200:
                await send_answer(send, answer)
                return
    await app(scope, receive, send)


async def check_table(datasette: Any, request: Any, database: str, table: str) -> None:
    """Check the address of a table or view.

    Raises:
        BadAddress: a column, filter or search does not exist.
        Moved: a name is spelled differently.
    """
    source, pairs = datasette.get_database(database), Request("", request.query_string).pairs
    columns = await source.table_columns(table)
    if not columns:
        return
    is_view = await source.get_view_definition(table) is not None
    if ("_shape", "object") in pairs and not await source.primary_keys(table):
        raise BadAddress(f"{table} has no primary key for _shape=object; use _shape=array")
    for column in _columns_in(pairs):
        if column not in columns and (is_view or column != "rowid"):
            raise BadAddress(f"{table} has no column {column!r}; {near(column, columns)}")
    for name, value in pairs:
        column, _, operator = name.rpartition("__")
        if column and operator not in OPERATORS:
            raise BadAddress(f"no filter is called {operator!r}; {near(operator, OPERATORS)}")
        if operator in _NUMERIC and value.isdigit() and len(value.lstrip("0")) > _MOST_DIGITS:
            raise BadAddress(f"{name}: a number has at most {_MOST_DIGITS} digits")
    await _check_search(source, table, pairs)
    kinds = {**KINDS, "name": (NAMES[table],)} if table in NAMES else KINDS
    fields = {name.removesuffix("__exact") for name, _ in pairs}
    if database == name_of(datasette) and not kinds.keys().isdisjoint(fields):
        path = path_of(request.scope)
        answer = await ask(datasette, PAGES, respelled, path, {}, pairs, kinds)
        if address := dict(answer.headers).get("location"):
            raise Moved(address)


async def _check_search(source: Any, table: str, pairs: Pairs) -> None:
    """Check the full-text search in a table's address."""
    searches = [name for name, _ in pairs if name.startswith("_search") and name != "_searchmode"]
    if not searches or "_fts_table" in dict(pairs):
        return
    search = await source.fts_table(table)
    if search is None:
        raise BadAddress(f"{table} has no full-text search; filter by a column, as in ?name=value")
    columns = {*await source.table_columns(search)} - {search, "rank"}
    fields = ["_search", *(f"_search_{column}" for column in sorted(columns))]
    for name in searches:
        if name not in fields:
            raise BadAddress(f"{table} has no field {name!r}; {near(name, fields)}")


def _columns_in(pairs: Pairs) -> Iterator[str]:
    """Yield the columns that the fields of a table's address name."""
    for name, value in pairs:
        column, _, _ = name.rpartition("__")
        if column or not name.startswith("_"):
            yield column or name
        elif name in _COLUMN_FIELDS and value:
            yield value
        elif name in _FACETS:
            with suppress(ValueError, KeyError, AttributeError):
                config = json.loads(value) if value.startswith("{") else {"column": value}
                yield str(config.get("column") or config["simple"])


def wheres(datasette: Any, request: Any) -> list[dict[str, str]]:
    """Return the SQL conditions of a table's address, each with the address without it."""
    pairs, path = (
        Request("", request.query_string).pairs,
        datasette.urls.path(path_of(request.scope)),
    )
    return [
        {"text": pair[1], "remove_url": f"{path}?{urlencode([*filter(pair.__ne__, pairs)])}"}
        for pair in pairs
        if pair[0] == "_where"
    ]


async def better_reason(datasette: Any, request: Any, exception: Exception) -> Exception:
    """Return the error of `check_table` for a table's address that Datasette refused.

    Datasette refuses some addresses before it calls plugins, and does not suggest a similar name.
    """
    names = request.url_vars
    is_table = names.keys() - {"format"} == {"database", "table"}
    if is_table and getattr(exception, "status", None) in (400, 500):
        route, table = (tilde_decode(names[name]) for name in ("database", "table"))
        try:
            await check_table(datasette, request, datasette.get_database(route=route).name, table)
        except (BadAddress, Moved) as error:
            return error
    return exception
