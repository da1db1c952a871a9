"""Feeds of changes, as Atom."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from feedgenerator import Atom1Feed
from markupsafe import escape

from spack_cache_db.errors import printable
from spack_cache_db.site.pages.feeds import Feed, Topic


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
