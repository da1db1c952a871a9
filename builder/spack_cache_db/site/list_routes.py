"""Routes of the lists, of what the site says of itself, and of what it finds as data."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from datasette.utils.asgi import Response

from spack_cache_db.query.answers import (
    Found,
    UnknownNameError,
    found_csv,
    found_json,
    found_part,
    matching,
)
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.questions import question_of
from spack_cache_db.query.refusals import UnsupportedQuery
from spack_cache_db.site.pages.filters import Narrowing, page_number
from spack_cache_db.site.pages.find import Name, load_names, suggested
from spack_cache_db.site.pages.home import load_about
from spack_cache_db.site.pages.lists import (
    ListFilters,
    ListPage,
    classes,
    list_rows,
    load_packages,
    load_releases,
    load_stacks,
)
from spack_cache_db.site.reading import read, read_once
from spack_cache_db.site.rendering import data, pairs_of, refused, render
from spack_cache_db.site.spec_functions import parse
from spack_cache_db.spack.lexer import QuerySyntaxError

MOST_FOUND = 1_000
"""Configurations in one answer of JSON or CSV; its `Link` header leads to the next."""


async def packages(datasette: Any, request: Any) -> Any:
    """`/packages`."""
    asked = ListFilters.parse(pairs_of(request))
    page = await read(datasette, lambda conn, lookups: load_packages(conn, lookups, asked))
    return await _list(datasette, request, page)


async def releases(datasette: Any, request: Any) -> Any:
    """`/releases`."""
    asked = ListFilters.parse(pairs_of(request))
    page = await read(datasette, lambda _, lookups: load_releases(lookups, asked))
    return await _list(datasette, request, page)


async def stacks(datasette: Any, request: Any) -> Any:
    """`/stacks`."""
    asked = ListFilters.parse(pairs_of(request))
    page = await read(datasette, lambda _, lookups: load_stacks(lookups, asked))
    return await _list(datasette, request, page)


async def _list(datasette: Any, request: Any, page: ListPage) -> Any:
    rows = list_rows(page, datasette.urls.path(f"/{page.kind.removesuffix('s')}/"))
    context = {"page": page, "asked": page.asked, "rows": rows, "classes": classes}
    return await render(datasette, request, "list.html", context)


async def about(datasette: Any, request: Any) -> Any:
    """`/about`."""
    page = await read_once(datasette, "about", load_about)
    return await render(datasette, request, "about.html", {"page": page})


async def names(datasette: Any) -> tuple[Name, ...]:
    """Return every name of the file, read once."""
    return await read_once(datasette, "names", load_names)


async def suggest(datasette: Any, request: Any) -> Any:
    """`/suggest.json?q=`: names that have the text; no statement is run for it."""
    found = suggested(await names(datasette), request.args.get("q") or "")
    return Response.json(found)


async def find_json(datasette: Any, request: Any) -> Any:
    """`/find.json?q=`: the rows of the command `find --json`."""
    return await _found(datasette, request, "json", found_json)


async def find_csv(datasette: Any, request: Any) -> Any:
    """`/find.csv?q=`: the rows of the command `find --csv`."""
    return await _found(datasette, request, "csv", found_csv)


async def _found(
    datasette: Any, request: Any, kind: str, written: Callable[[list[Found], bool], str]
) -> Any:
    text, number = request.args.get("q") or "", page_number(pairs_of(request))
    narrowing = Narrowing.parse(pairs_of(request))
    start = (number - 1) * MOST_FOUND
    part = slice(start, start + MOST_FOUND + 1)

    def load(conn: sqlite3.Connection, lookups: Lookups) -> list[Found]:
        question = question_of(conn, lookups, query).within(narrowing.scope(lookups))
        results = matching(conn, lookups, question.conditions)
        return found_part(conn, lookups, results, part, with_hashes=False)

    try:
        query = parse(text)
        found = await read(datasette, load)
    except (QuerySyntaxError, UnsupportedQuery, UnknownNameError) as error:
        return refused(str(error), kind)
    headers = {}
    if len(found) > MOST_FOUND:
        following = urlencode([("q", text), *narrowing.pairs, ("page", number + 1)])
        address = datasette.urls.path(f"/find.{kind}") + f"?{following}"
        headers["link"] = f'<{datasette.absolute_url(request, address)}>; rel="next"'
    return data(written(found[:MOST_FOUND], False), kind, headers)


ROUTES = (
    (r"^/packages$", packages),
    (r"^/releases$", releases),
    (r"^/stacks$", stacks),
    (r"^/about$", about),
    (r"^/suggest\.json$", suggest),
    (r"^/find\.json$", find_json),
    (r"^/find\.csv$", find_csv),
)
