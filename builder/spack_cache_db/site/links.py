"""Links from names to our pages, for templates and for cells of Datasette's tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

LINKED_KINDS = ("package", "release", "stack")
"""The kinds of names that templates link."""


def links_to(urls: Any) -> dict[str, Callable[..., Markup]]:
    """Return functions that link a name, by the kind of the page.

    `urls` has the method `path`: it is Datasette's, or `SiteSettings`.
    """
    return {kind: partial(link_to, urls, kind) for kind in LINKED_KINDS}


def link_to(urls: Any, kind: str, name: str, query: str = "") -> Markup:
    """Return a link to the page of a package, a release, a stack or a spec."""
    path = urls.path(f"/{kind}/{quote(name)}")
    address = escape(f"{path}{query}")
    return Markup(f'<a href="{address}">{escape(name)}</a>')
