"""Links from names to our pages, for templates and for cells of Datasette's tables.

For example, the name `hdf5` of a package becomes `<a href="/package/hdf5">hdf5</a>`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

LINKED_KINDS = ("package", "release", "stack")
"""The kinds of names that templates link."""


def links_to(urls: Any) -> dict[str, Callable[..., Markup]]:
    """Return a function for each of `LINKED_KINDS`, which links a name of that kind.

    `urls` has the method `path`, which adds the site's base to a path: it is
    Datasette's, or `SiteSettings`.
    """
    return {kind: partial(link_to, urls, kind) for kind in LINKED_KINDS}


def link_to(urls: Any, kind: str, name: str, query: str = "") -> Markup:
    """Return a link to the page of a package, a release, a stack or a spec.

    Args:
        urls: as for `links_to`.
        kind: the first part of the page's path, such as `package` or `spec`.
        name: the name, or the hash of a spec, which is also the text of the link.
        query: the query string of the page, with its `?`.
    """
    return link(urls, f"/{kind}/{quote(name)}{query}", name)


def link(urls: Any, path: str, text: str, other: str = "") -> Markup:
    """Return a text as a link to one of our pages; without a link if there is no such
    page, and no other one.

    Args:
        urls: as for `links_to`.
        path: the path of the page, with its query string.
        text: the text.
        other: the path of a page about the same, for a site without the first.
    """
    address = urls.path(path)
    if address is None and other:
        address = urls.path(other)
    if address is None:
        return escape(text)
    # Datasette's addresses are not plain texts, and take five times as long to escape.
    return Markup(f'<a href="{escape(str(address))}">{escape(text)}</a>')
