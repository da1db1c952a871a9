"""The answer for a name that the database does not have."""

from __future__ import annotations

from typing import Any

from spack_cache_db.query.names.known import known_name
from spack_cache_db.query.names.spellings import close_names
from spack_cache_db.query.rows import Rows, csv_text, json_text
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.pages.names import load_names
from spack_cache_db.site.site import Site


def missing(site: Site, request: PageRequest, kind: str, text: str) -> PageResponse:
    """Return a page about a name that does not exist, with similar names and the
    search.
    """
    # Only packages are known by other names, such as that of their recipe.
    package = known_name(site.lookups, text) if kind == "package" else None
    if package is not None:
        close = package.others
    else:
        names = [name.name for name in load_names(site.lookups) if name.kind == kind]
        close = close_names(text, names, 0.6)
    return site.page(
        request,
        "missing.html",
        404,
        what=kind,
        text=text,
        close=close,
        known_name=package,
    )


def form_of(document: Any, rows: Rows, form: str) -> str:
    """Return a document as JSON, or its rows as CSV."""
    return json_text(document) if form == "json" else csv_text(rows)
