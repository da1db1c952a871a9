"""How `/cover` answers: a page, JSON or CSV; a form that is short leads to its address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from datasette.utils.asgi import Response

from spack_cache_db.environments.environment import UnreadableEnvironment
from spack_cache_db.query.answers import UnknownNameError
from spack_cache_db.query.coverage_output import cover_csv, cover_json
from spack_cache_db.site.pages.cover import PastedText, covered, load_cover, pasted_of
from spack_cache_db.site.reading import read
from spack_cache_db.site.rendering import data, refused, render

MOST_BYTES = 4_000_000
"""Bytes of a form; a lockfile of a thousand specs has two million."""

LONGEST_LINK = 6_000
"""Characters of an address to which a pasted text leads; most servers take eight thousand."""

MOST_FIELDS = 20
_WRITTEN = {"json": cover_json, "csv": cover_csv}


class TooLargeError(Exception):
    """More was sent than is read."""


async def answer_cover(datasette: Any, request: Any) -> Any:
    """`/cover`: an environment in the address or in a form; as a page, `.json` or `.csv`."""
    is_form = request.method == "POST"
    try:
        query = await form_of(request.receive) if is_form else request.query_string
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except (TooLargeError, ValueError) as error:
        return Response.text(f"Error: {error}\n", status=413)
    pasted = pasted_of(pairs)
    if (form := request.url_vars["form"]) is not None:
        return await _data(datasette, pasted, form)
    is_short = len(pasted.query) <= LONGEST_LINK
    if is_form and is_short:
        return Response.redirect(f"{datasette.urls.path('/cover')}?{pasted.query}", status=303)
    page = await read(datasette, lambda conn, lookups: load_cover(conn, lookups, pasted))
    context = {"page": page, "pasted": pasted, "is_short": is_short}
    return await render(datasette, request, "cover.html", context)


async def form_of(receive: Callable[[], Awaitable[dict[str, Any]]]) -> str:
    """Return the fields of a form that is sent, as a query string.

    Raises:
        TooLargeError: it has more than `MOST_BYTES`.
    """
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > MOST_BYTES:
            raise TooLargeError(f"the form has more than {MOST_BYTES:,} bytes")
    return b"".join(parts).decode("latin-1")


async def _data(datasette: Any, pasted: PastedText, form: str) -> Any:
    """Return what the command prints."""
    try:
        found = await read(datasette, lambda conn, lookups: covered(conn, lookups, pasted))
    except (UnreadableEnvironment, UnknownNameError) as error:
        return refused(str(error), form)
    return data(_WRITTEN[form](found), form)
