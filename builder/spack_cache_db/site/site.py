"""The site over one connection to its database: what the functions of pages are given.

It renders templates and makes redirects, and keeps the small tables of the database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader

from spack_cache_db.inspect_file import looked_at
from spack_cache_db.query.open.lookups import Lookups, read_lookups
from spack_cache_db.site.charts.drawings import charts_of
from spack_cache_db.site.links import link, links_to
from spack_cache_db.site.names_for_people import TEXT_FUNCTIONS
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import CONTENT_TYPES, PageResponse, data
from spack_cache_db.site.settings import SiteSettings
from spack_cache_db.site.site_facts import read_site_facts
from spack_cache_db.site.words import STABLE_ONLY


@dataclass(frozen=True)
class Site:
    """A connection to a database, with the site's settings.

    The small tables and the templates are read once, and kept.
    """

    settings: SiteSettings
    conn: sqlite3.Connection

    def page(
        self,
        request: PageRequest,
        template: str,
        status: int = 200,
        kind: str = "html",
        **context: Any,
    ) -> PageResponse:
        """Return the page that a template renders.

        Args:
            request: the request, for the template.
            template: the name of a file in the folders of templates: `package.html`.
            status: the HTTP status.
            kind: a key of `CONTENT_TYPES`.
            context: the variables of the template.
        """
        variables = {**context, "request": request, "status": status}
        text = self.environment.get_template(template).render(variables)
        return data(text, kind, status=status)

    def redirect(
        self, path: str, query: Sequence[tuple[str, str]] = (), status: int = 302
    ) -> PageResponse:
        """Return a redirect to another of our pages, given by its path and fields."""
        address = self.settings.path(path) or path
        if query:
            address += f"?{urlencode(query)}"
        headers = (("location", address), ("content-type", CONTENT_TYPES["text"]))
        return PageResponse(b"", status, headers)

    @property
    def look_day(self) -> str:
        """The day on which a build last looked at the sources; empty if it is unknown.

        Read for each page: a build that finds nothing new leaves the database as it is,
        and writes the time into its inspect file.
        """
        # A time such as 2026-01-31T03:00:00Z.
        time = looked_at(Path(self.settings.file)) or ""
        return time[: len("2026-01-31")]

    @cached_property
    def lookups(self) -> Lookups:
        """The small tables of the database."""
        return read_lookups(self.conn)

    @cached_property
    def environment(self) -> Environment:
        """The templates, with the variables that all of them use."""
        settings = self.settings
        facts = read_site_facts(self.lookups, settings.metadata)
        environment = Environment(
            autoescape=True,
            auto_reload=False,
            loader=FileSystemLoader(settings.templates),
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals |= {
            **facts.variables,
            **TEXT_FUNCTIONS,
            "asset_version": settings.styles,
            "catalogue": settings.name,
            "charts": charts_of(settings),
            "datasette_version": settings.version,
            "page_link": partial(link, settings),
            "stable_only": STABLE_ONLY,
            "links_to": links_to(settings),
            "metadata": {**facts.metadata, **settings.metadata},
            "sha256": settings.sha256,
            "size": settings.size,
            "urls": settings,
        }
        return environment
