"""Feeds of the changes in each snapshot: of everything, a package, a stack or a spec.

Only snapshots have an entry, because branches and releases have no date in the
database. The date of the build would make all entries new with every build.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from spack_cache_db.errors import printable
from spack_cache_db.query.answers.diff import amounts_of_releases
from spack_cache_db.query.answers.history import shown_specs
from spack_cache_db.query.conditions.conditions import without
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.names.scope import named_conditions
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.configurations import (
    configurations_by_id,
)
from spack_cache_db.query.stored.origin import read_origin
from spack_cache_db.site.filters import (
    AddressFields,
)
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.pages.sides import Sides
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site
from spack_cache_db.site.sql.functions import parse

MOST_SNAPSHOTS = 26
"""The number of the newest snapshots that a feed compares: half a year of weekly
ones.
"""
MOST_OF_STACK = 12
"""The same for a whole stack, which takes longer because all its specs are read."""
MOST_NAMED = 10
"""Limit of the new and of the removed configurations that an entry names."""


@dataclass(frozen=True, slots=True)
class Topic(AddressFields):
    """The topic of a feed: a spec (`q`) or names; everything without fields."""

    q: str | None = None
    package: str | None = None
    stack: str | None = None
    host: str | None = None

    @property
    def page(self) -> str:
        """The address of the page that the feed is about."""
        if self.q or self.host:
            return f"/find{self.query(q=self.q or self.package or '*', package=None)}"
        if self.package:
            return f"/package/{quote(self.package, safe='')}"
        return f"/stack/{quote(self.stack, safe='')}" if self.stack else "/releases"

    @property
    def feed(self) -> str:
        """The address of the feed."""
        return f"/{'find' if self.q else 'feed'}.atom{self.query()}"


class Entry(NamedTuple):
    """The changes in one snapshot; `lines` are the first changed configurations, in
    words.
    """

    id: str
    day: date
    sides: Sides
    added: int
    removed: int
    lines: tuple[str, ...]


def load_feed(lookups: Lookups, topic: Topic) -> dict[str, Any]:
    """Return the variables of a feed: its entries, the newest first, with ids that
    never change.

    Raises:
        BuilderError: the spec or one of the names is not valid.
    """
    origin, package = read_origin(lookups.conn), topic.package
    conditions = named_conditions(
        lookups, package=package, host=topic.host, stack=topic.stack
    )
    if topic.q is not None:
        query = parse(topic.q)
        conditions, package = (
            Question(lookups, query, conditions).conditions,
            query.name,
        )
    snapshots = [
        (day, release, before)
        for release in lookups.releases.values()
        if (day := date_of(release.date)) and (before := lookups.before(release))
    ]
    is_of_stack = bool(conditions) and not without(conditions, "stack")
    compared = snapshots[: MOST_OF_STACK if is_of_stack else MOST_SNAPSHOTS]
    ids = {release.id for _, *pair in compared for release in pair}
    specs = shown_specs(lookups, conditions, ids) if conditions else {}
    amounts = {} if conditions else amounts_of_releases(lookups, sorted(ids))
    seed, entries = f"{origin.url or origin.owner} {topic.feed}", []
    for day, release, before in compared:
        lines: tuple[str, ...] = ()
        if conditions:
            new, old = specs[release.id], specs[before.id]
            added, removed = len(new.keys() - old.keys()), len(old.keys() - new.keys())
            now, then = {*new.values()}, {*old.values()}
            lines = (
                *_lines(lookups, "new", now - then),
                *_lines(lookups, "gone", then - now),
            )
        else:
            added, removed = amounts[release.id]
        if added or removed:
            sides = Sides(
                before.name, release.name, topic.stack, package, host=topic.host
            )
            entry_id = uuid5(NAMESPACE_URL, f"{seed} {release.name}").urn
            entries.append(Entry(entry_id, day, sides, added, removed, lines))
    return {
        "id": uuid5(NAMESPACE_URL, seed).urn,
        "owner": origin.owner,
        "entries": entries,
    }


def _lines(lookups: Lookups, label: str, ids: Collection[int]) -> Iterator[str]:
    """Yield the first configurations, and the number of others."""
    for row in configurations_by_id(lookups, sorted(ids)[:MOST_NAMED]):
        yield " ".join(
            (f"{label}: {row.configuration.summary}", *row.configuration.variants)
        )
    if len(ids) > MOST_NAMED:
        yield f"{label}: {len(ids) - MOST_NAMED:,} more"


def date_of(text: object) -> date | None:
    """Return a date; None for any other text, which another program may have
    written.
    """
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        return None


def changes_feed(site: Site, request: PageRequest, of: str) -> PageResponse:
    """Return `/feed.atom` (of everything, a package or a stack) or `/find.atom?q=`."""
    topic = Topic.parse(request.pairs)
    if (of == "find") != (topic.q is not None):
        return refused("the feed of a spec is /find.atom?q=SPEC", None)
    feed = load_feed(site.lookups, topic)
    return site.page(
        request, "feed.xml", page=feed, topic=topic, printable=printable, kind="atom"
    )
