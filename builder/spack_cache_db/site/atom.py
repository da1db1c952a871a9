"""Writes feeds of changes as Atom."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from feedgenerator import Atom1Feed
from markupsafe import escape

from spack_cache_db.errors import printable
from spack_cache_db.site.pages.feeds import Feed, Topic


class _DatedFeed(Atom1Feed):  # type: ignore[misc]
    """A feed that has its own date even without entries; the library would use today's."""

    def latest_post_date(self) -> datetime:
        """Return when the feed was changed."""
        return _midnight(self.feed["updated"])


def atom(feed: Feed, topic: Topic, absolute: Callable[[str], str]) -> str:
    """Return a feed as XML.

    Args:
        absolute: returns the address of a page with scheme and host.
    """
    document = _DatedFeed(
        title=printable(f"Changes of {topic}"),
        link=absolute(topic.page),
        description=None,
        feed_url=absolute(topic.feed),
        feed_guid=feed.id,
        author_name=printable(feed.owner),
        updated=feed.updated,
    )
    for entry in feed.entries:
        lines = "".join(f"<li>{escape(printable(line))}</li>" for line in entry.changes)
        document.add_item(
            title=printable(entry.title),
            link=absolute(entry.address),
            description=f"<ul>{lines}</ul>" if lines else escape(printable(entry.title)),
            unique_id=entry.id,
            updateddate=_midnight(entry.date),
        )
    return str(document.writeString("utf-8"))


def _midnight(date: str) -> datetime:
    return datetime.fromisoformat(date).replace(tzinfo=UTC)
