"""Answers of our own pages: a template, data, a redirect, or that there is no such thing."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from datasette.utils.asgi import Response

from spack_cache_db.site.pages import charts
from spack_cache_db.site.pages.filters import HIDEABLE, LABELS
from spack_cache_db.site.wrapper import OWN_PAGE

_KINDS = {"json": "application/json; charset=utf-8", "csv": "text/csv; charset=utf-8"}


async def render(
    datasette: Any, request: Any, template: str, context: dict[str, Any], status: int = 200
) -> Any:
    """Render one of our templates, with the headers of our own pages."""
    words = {"labels": LABELS, "hideable": HIDEABLE}
    context = {"charts": charts, "links": None, **words, **context}
    html = await datasette.render_template(template, context, request=request)
    return Response.html(html, status=status, headers=dict(OWN_PAGE))


def data(body: str, kind: str, headers: dict[str, str] | None = None) -> Any:
    """Return rows as data; `kind` is `json` or `csv`."""
    return Response(body, headers={**OWN_PAGE, **(headers or {})}, content_type=_KINDS[kind])


def refused(sentence: str, kind: str) -> Any:
    """Return why there are no rows, in the form that was asked for."""
    if kind == "json":
        said = {"ok": False, "error": sentence, "status": 400}
        return Response.json(said, status=400, headers=dict(OWN_PAGE))
    return Response.text(f"Error: {sentence}\n", 400, dict(OWN_PAGE))


async def missing(datasette: Any, request: Any, what: str, text: str) -> Any:
    """Say that there is no such thing, and offer the search."""
    return await render(datasette, request, "missing.html", {"what": what, "text": text}, 404)


def redirect(datasette: Any, path: str, query: dict[str, str] | None = None) -> Any:
    """Lead to another of our pages."""
    address = datasette.urls.path(path) + (f"?{urlencode(query)}" if query else "")
    return Response.redirect(address)


def pairs_of(request: Any) -> list[tuple[str, str]]:
    """Return the pairs of a request's query string, in order."""
    return parse_qsl(request.query_string, keep_blank_values=True, max_num_fields=200)
