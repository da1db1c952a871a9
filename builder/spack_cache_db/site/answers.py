"""Requests for our own pages and their responses.

A page is a function of a site and a request: `package(site, request)` returns a
`PageResponse` with
the bytes to send. This module does not use Datasette, which only passes both on;
Datasette's own classes are called `Request` and `Response`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

from spack_cache_db.database_file import looked_at
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.site.filters import LABELS
from spack_cache_db.site.site_facts import read_site_facts

CONTENT_TYPES = {
    "atom": "application/atom+xml; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json; charset=utf-8",
    "opensearch": "application/opensearchdescription+xml; charset=utf-8",
    "svg": "image/svg+xml; charset=utf-8",
    "text": "text/plain; charset=utf-8",
    "xml": "application/xml; charset=utf-8",
}
STRICT = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
"""The content security policy of our own pages, which have neither scripts nor styles
inside.
"""


NO_PAGE = "There is no such page here."


class BadAddress(Exception):
    """The site does not answer an address: it has an unknown field, column or name."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class PageResponse(NamedTuple):
    """The answer to a request, and the number of the next row if more rows of a stream
    follow.
    """

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    following: int | None = None

    @property
    def start(self) -> dict[str, Any]:
        """The first message of the answer to an ASGI server."""
        headers = [
            (name.encode("latin-1"), text.encode("latin-1"))
            for name, text in self.headers
        ]
        return {
            "type": "http.response.start",
            "status": self.status,
            "headers": headers,
        }

    async def asgi_send(
        self, send: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        """Send the answer, as a response of Datasette does."""
        await send(self.start)
        more = self.following is not None
        await send({"type": "http.response.body", "body": self.body, "more_body": more})


class Link(NamedTuple):
    """A link that Datasette or a plugin adds to a page."""

    href: str
    label: str


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page.

    Attributes:
        path: the path below the base of the site, as it was sent.
        origin: scheme and host of the site, as the visitor sees them.
        form: the body of a form, as a query string.
        menu: entries that plugins add to Datasette's menu for this visitor.
        databases: other databases that this visitor may see.
        first: the number of the first row of a part of a stream.
    """

    path: str
    query: str = ""
    origin: str = "http://localhost"
    form: str | None = None
    menu: tuple[Link, ...] = ()
    databases: tuple[Link, ...] = ()
    first: int = 0

    @property
    def is_data(self) -> bool:
        """Whether a program reads the answer: JSON, CSV or a feed."""
        return self.path.endswith((".json", ".csv", ".atom"))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of the query string, in order."""
        return parse_qsl(self.query, keep_blank_values=True)

    @property
    def args(self) -> dict[str, str]:
        """The first value of each field."""
        return dict(reversed(self.pairs))


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """What pages need besides the database; templates call it `urls` for its methods.

    Attributes:
        name: the name of the database.
        route: the name of the database, encoded for addresses.
        templates: folders of templates, those of the owner first.
        metadata: the texts of the whole site's metadata, such as title, license and
            source.
        styles: a text that changes with our style sheets and scripts.
        file: the path of the database, beside which its inspect file lies.
    """

    name: str = "spack-cache"
    route: str = "spack-cache"
    base_url: str = "/"
    templates: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    sha256: str | None = None
    version: str = ""
    styles: str = ""
    file: str = ""

    def path(self, path: str) -> str:
        """Return the address of a path, with the site's base."""
        return self.base_url + path.removeprefix("/")

    def database(self, _: str) -> str:
        """Return the address of the database that our pages read."""
        return self.path(self.route)


@dataclass(frozen=True)
class Site:
    """A connection to a database, with the site's settings; what it has read is
    kept.
    """

    settings: SiteSettings
    conn: sqlite3.Connection

    @property
    def look_day(self) -> str:
        """The day on which a build last looked at the sources; empty if it is unknown.

        Read for each page, because a build that finds nothing new leaves the database.
        """
        return (looked_at(Path(self.settings.file)) or "")[:10]

    @cached_property
    def lookups(self) -> Lookups:
        """The small tables of the database."""
        return read_lookups(self.conn)

    @cached_property
    def environment(self) -> Environment:
        """The templates, with the variables that all of them use."""
        settings, facts = (
            self.settings,
            read_site_facts(self.lookups, self.settings.metadata),
        )
        loader = FileSystemLoader(settings.templates)
        environment = Environment(
            autoescape=True,
            auto_reload=False,
            loader=loader,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals |= {
            **facts.words,
            "asset_version": settings.styles,
            "catalogue": settings.name,
            "datasette_version": settings.version,
            "labels": LABELS,
            "links_to": links_to(settings),
            "metadata": {**facts.described, **settings.metadata},
            "sha256": settings.sha256,
            "size": settings.size,
            "urls": settings,
        }
        return environment

    def page(
        self,
        request: PageRequest,
        template: str,
        status: int = 200,
        kind: str = "html",
        **context: Any,
    ) -> PageResponse:
        """Return the page that a template renders; `kind` is a key of
        `CONTENT_TYPES`.
        """
        context |= {"request": request, "status": status}
        return data(
            self.environment.get_template(template).render(context), kind, status=status
        )

    def redirect(
        self, path: str, query: Sequence[tuple[str, str]] = (), status: int = 302
    ) -> PageResponse:
        """Return a redirect to another of our pages."""
        address = self.settings.path(path) + (f"?{urlencode(query)}" if query else "")
        return PageResponse(
            b"",
            status,
            (("location", address), ("content-type", CONTENT_TYPES["text"])),
        )


def link_to(urls: Any, kind: str, name: str, query: str = "") -> Markup:
    """Return a link to the page of a package, a release, a stack or a spec."""
    address = escape(f"{urls.path(f'/{kind}/{quote(name)}')}{query}")
    return Markup(f'<a href="{address}">{escape(name)}</a>')


def links_to(urls: Any) -> dict[str, Callable[..., Markup]]:
    """Return functions that link a name, by the kind of the page."""
    return {
        kind: partial(link_to, urls, kind) for kind in ("package", "release", "stack")
    }


def data(
    body: str | bytes, kind: str, following: int | None = None, status: int = 200
) -> PageResponse:
    """Return an answer; `kind` is a key of `CONTENT_TYPES`."""
    encoded = body.encode() if isinstance(body, str) else body
    headers = (
        ("content-type", CONTENT_TYPES[kind]),
        ("content-security-policy", STRICT),
    )
    return PageResponse(encoded, status, headers, following)


def refused(
    sentence: str, form: str | None, status: int = 400, title: str | None = None
) -> PageResponse:
    """Return an error as JSON if `form` is `json`, else as plain text."""
    if form != "json":
        return data(f"Error: {sentence}\n", "text", status=status)
    document = {"ok": False, "error": sentence, "status": status}
    document["title"] = title or f"Error {status}"
    return data(json.dumps(document), "json", status=status)
