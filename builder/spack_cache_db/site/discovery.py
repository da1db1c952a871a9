"""Pages for crawlers, browsers and feed readers: `/sitemap.xml`, `/opensearch.xml`, feeds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from datasette.utils.asgi import Response
from feedgenerator import Atom1Feed
from markupsafe import escape

from spack_cache_db.errors import printable
from spack_cache_db.site.catalogues import data_path
from spack_cache_db.site.identity import identity_of
from spack_cache_db.site.loaders import sitemap_of
from spack_cache_db.site.middleware import OWN_PAGE
from spack_cache_db.site.pages.feeds import Feed, Topic
from spack_cache_db.site.sandbox.database import read_once

SEARCH = """<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
<ShortName>{name}</ShortName>
<Description>Search Spack packages: {title}</Description>
<InputEncoding>UTF-8</InputEncoding>
<Url type="text/html" template="{find}?q={{searchTerms}}"/>
</OpenSearchDescription>
"""
MOST_OF_NAME = 16
"""Characters of a short name (OpenSearch 1.1)."""


async def robots(datasette: Any, request: Any) -> Any:
    """`/robots.txt`: our pages may be read by crawlers; tables, SQL and filters are endless."""
    base = datasette.urls.path("/")
    closed = [f"/{data_path(datasette)}", "/find", "/cover", "/diff", "/-/", "/*?"]
    lines = ["User-agent: *", *(f"Disallow: {base}{each.lstrip('/')}" for each in closed)]
    sitemap = datasette.absolute_url(request, datasette.urls.path("/sitemap.xml"))
    return Response.text("\n".join([*lines, f"Sitemap: {sitemap}"]) + "\n")


async def sitemap(datasette: Any, request: Any) -> Any:
    """`/sitemap.xml`: the lists, and every package, release and stack."""
    site = datasette.absolute_url(request, datasette.urls.path("/"))
    return _xml(await read_once(datasette, sitemap_of, site), "application/xml")


async def opensearch(datasette: Any, request: Any) -> Any:
    """`/opensearch.xml`: lets a browser search this site from its address bar."""
    title = identity_of(datasette).origin.title
    name = title if len(title) <= MOST_OF_NAME else "Spack packages"
    find = datasette.absolute_url(request, datasette.urls.path("/find"))
    text = SEARCH.format(name=escape(name), title=escape(title), find=escape(find))
    return _xml(text, "application/opensearchdescription+xml")


def _xml(body: str | bytes, content_type: str) -> Any:
    return Response(body, headers=dict(OWN_PAGE), content_type=f"{content_type}; charset=utf-8")


class _DatedFeed(Atom1Feed):  # type: ignore[misc]
    """A feed that has its day also where it has no entries: not that of the request."""

    def latest_post_date(self) -> datetime:
        """Return when the feed was changed."""
        return _day(self.feed["updated"])


def atom(feed: Feed, topic: Topic, absolute: Callable[[str], str]) -> str:
    """Return a feed as XML.

    Args:
        feed: what it has.
        topic: what it is about.
        absolute: gives the whole address of a page here.
    """
    made = _DatedFeed(
        title=printable(f"Changes of {topic}"),
        link=absolute(topic.page),
        description=None,
        feed_url=absolute(topic.feed),
        feed_guid=feed.id,
        author_name=printable(feed.owner),
        updated=feed.updated,
    )
    for each in feed.entries:
        lines = "".join(f"<li>{escape(printable(line))}</li>" for line in each.changes)
        made.add_item(
            title=printable(each.title),
            link=absolute(each.address),
            description=f"<ul>{lines}</ul>" if lines else escape(printable(each.title)),
            unique_id=each.id,
            updateddate=_day(each.date),
        )
    return str(made.writeString("utf-8"))


def _day(date: str) -> datetime:
    return datetime.fromisoformat(date).replace(tzinfo=UTC)
