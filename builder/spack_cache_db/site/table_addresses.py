"""Checks addresses of Datasette's tables and canned queries before Datasette reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from datasette.utils import tilde_decode

from spack_cache_db.site.addresses import (
    KINDS,
    NAMES,
    Kinds,
    Pairs,
    near,
    respelled_query,
    respelled_table,
)
from spack_cache_db.site.answers import PAGES, Answer, BadAddress, pairs_of
from spack_cache_db.site.catalogues import is_own_query, name_of, parameters_of
from spack_cache_db.site.middleware import Scope, path_of
from spack_cache_db.site.workers.execute import ask

OPERATORS = (
    *("exact", "not", "contains", "notcontains", "endswith", "startswith", "like", "notlike"),
    *("gt", "gte", "lt", "lte", "glob", "in", "notin", "arraycontains", "arraynotcontains"),
    *("date", "isnull", "notnull", "isblank", "notblank"),
)
"""What may follow a column and `__` (Datasette's documentation, "Column filter arguments")."""
_QUERY = re.compile(r"/([^/]+)/([^/.]+)(?:\.\w+)?")
_NUMERIC = ("gt", "gte", "lt", "lte")
_MOST_DIGITS = 18
"""Of a number that SQLite can compare: its integers have 64 bits."""
_OF_COLUMNS = ("_sort", "_sort_desc", "_col", "_nocol", "_label")
_FACETS = ("_facet", "_facet_date", "_facet_array")


class Moved(Exception):
    """An address has a name in another spelling; `address` has the name itself."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


async def check_query(datasette: Any, scope: Scope) -> None:
    """Check the address of a canned query; other addresses pass.

    Raises:
        BadAddress: the query has no such parameter, or the database no such name.
        Moved: a name is spelled otherwise.
    """
    path = path_of(scope)
    found = _QUERY.fullmatch(path)
    names = [*map(tilde_decode, found.groups())] if found else ["", ""]
    known = parameters_of(datasette, *names)
    if known is None:
        return
    pairs = pairs_of(scope.get("query_string", b"").decode("latin-1"))
    for name, _ in pairs:
        if name not in known and not name.startswith("_"):
            raise BadAddress(f"this query has no field {name!r}; {near(name, known)}")
    is_ours = names[0] == name_of(datasette) and is_own_query(datasette, *names)
    if is_ours and any(value for name, value in pairs if name in known):
        await _follow(datasette, respelled_query, path, pairs)


async def check_table(datasette: Any, request: Any, database: str, table: str) -> None:
    """Check the address of a table or view.

    Raises:
        BadAddress: a column is not known, or what is asked of it.
        Moved: a name is spelled otherwise.
    """
    source, pairs = datasette.get_database(database), pairs_of(request.query_string)
    columns = await source.table_columns(table)
    if not columns:
        # A query.
        return
    is_view = await source.get_view_definition(table) is not None
    if ("_shape", "object") in pairs and not await source.primary_keys(table):
        raise BadAddress(f"{table} has no primary key for _shape=object; use _shape=array")
    for column in _columns_asked(pairs):
        if column not in columns and (is_view or column != "rowid"):
            raise BadAddress(f"{table} has no column {column!r}; {near(column, columns)}")
    for name, value in pairs:
        column, _, operator = name.rpartition("__")
        if column and operator not in OPERATORS:
            raise BadAddress(f"no filter is called {operator!r}; {near(operator, OPERATORS)}")
        if operator in _NUMERIC and value.isdigit() and len(value.lstrip("0")) > _MOST_DIGITS:
            raise BadAddress(f"{name}: a number has at most {_MOST_DIGITS} digits")
    await _check_search(source, table, pairs)
    if database == name_of(datasette):
        kinds = {**KINDS, "name": (NAMES[table],)} if table in NAMES else KINDS
        await _check_names(datasette, path_of(request.scope), pairs, kinds)


def wheres(datasette: Any, request: Any) -> list[dict[str, str]]:
    """Return each condition in SQL of a table's address, and the address without it."""
    pairs, path = pairs_of(request.query_string), datasette.urls.path(path_of(request.scope))
    return [
        {"text": pair[1], "remove_url": f"{path}?{urlencode([*filter(pair.__ne__, pairs)])}"}
        for pair in pairs
        if pair[0] == "_where"
    ]


async def better_reason(datasette: Any, request: Any, exception: Exception) -> Exception:
    """Return what `check_table` raises for the address of a table that Datasette refused.

    Datasette refuses some addresses before it asks plugins for filters, without a near name.
    """
    names = request.url_vars
    is_table = names.keys() - {"format"} == {"database", "table"}
    if is_table and getattr(exception, "status", None) in (400, 500):
        route, table = (tilde_decode(names[name]) for name in ("database", "table"))
        database = datasette.get_database(route=route).name
        try:
            await check_table(datasette, request, database, table)
        except (BadAddress, Moved) as error:
            return error
    return exception


async def _check_search(source: Any, table: str, pairs: Pairs) -> None:
    """Check that a table has the full-text search that its address asks for.

    Raises:
        BadAddress: it has none, or the search has no such column.
    """
    asked = [name for name, _ in pairs if name.startswith("_search") and name != "_searchmode"]
    if not asked or "_fts_table" in dict(pairs):
        return
    search = await source.fts_table(table)
    if search is None:
        raise BadAddress(f"{table} has no full-text search; filter by a column, as in ?name=value")
    columns = {*await source.table_columns(search)} - {search, "rank"}
    known = ["_search", *(f"_search_{each}" for each in sorted(columns))]
    for name in asked:
        if name not in known:
            raise BadAddress(f"{table} has no field {name!r}; {near(name, known)}")


def _columns_asked(pairs: Pairs) -> Iterator[str]:
    """Yield the columns that a table's address names in its fields."""
    for name, value in pairs:
        column, _, _ = name.rpartition("__")
        if column or not name.startswith("_"):
            yield column or name
        elif name in _OF_COLUMNS and value:
            yield value
        elif name in _FACETS:
            with suppress(ValueError, KeyError, AttributeError):
                config = json.loads(value) if value.startswith("{") else {"column": value}
                yield str(config.get("column") or config["simple"])


async def _check_names(datasette: Any, path: str, pairs: Pairs, kinds: Kinds) -> None:
    """Check the names in the address of a table.

    Raises:
        Moved: a name is spelled otherwise.
    """
    if not kinds.keys().isdisjoint(name.removesuffix("__exact") for name, _ in pairs):
        await _follow(datasette, respelled_table, path, pairs, kinds)


async def _follow(datasette: Any, respelled: Callable[..., Answer], *arguments: Any) -> None:
    """Ask a worker whether the names of an address are spelled otherwise.

    Raises:
        Moved: they are.
    """
    answer = await ask(datasette, PAGES, respelled, *arguments)
    if address := dict(answer.headers).get("location"):
        raise Moved(address)
