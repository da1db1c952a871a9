"""Feeds of the changes in each snapshot: of everything, a package, a stack or a spec.

Only snapshots have an entry, because branches and releases have no date in the database. The date
of the build would make all entries new with every build.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from spack_cache_db.query.answers import shown_specs
from spack_cache_db.query.changes import amounts_of_releases
from spack_cache_db.query.conditions import Conditions, without
from spack_cache_db.query.configurations import configurations_by_id
from spack_cache_db.query.database import Lookups, Release
from spack_cache_db.query.installation import read_origin
from spack_cache_db.query.names import scope_of
from spack_cache_db.query.records import question_of
from spack_cache_db.records import Configuration
from spack_cache_db.site.pages.changes import Sides
from spack_cache_db.site.pages.filters import AddressFields
from spack_cache_db.site.sandbox.sql_functions import parse

MOST_SNAPSHOTS = 26
"""The number of the newest snapshots that a feed compares: half a year of weekly ones."""
MOST_OF_STACK = 12
"""The same for a whole stack, which takes longer because all its specs are read."""
MOST_NAMED = 10
"""Limit of the new and of the removed configurations that an entry names."""
NO_DAY = "1970-01-01"
"""The date of a feed without entries."""


@dataclass(frozen=True, slots=True)
class Topic(AddressFields):
    """The topic of a feed: a spec (`q`) or names; everything without fields."""

    q: str | None = None
    package: str | None = None
    stack: str | None = None
    host: str | None = None

    def __str__(self) -> str:
        """Return the topic in words."""
        words = [self.q or self.package or "all packages"]
        words += [f"in {self.stack}"] if self.stack else []
        words += [f"on {self.host}"] if self.host else []
        return " ".join(words)

    @property
    def page(self) -> str:
        """The address of the page that the feed is about."""
        if self.q or self.host:
            query = self.query_string(q=self.q or self.package or "*", package=None)
            return f"/find?{query}"
        if self.package:
            return f"/package/{quote(self.package, safe='')}"
        return f"/stack/{quote(self.stack, safe='')}" if self.stack else "/releases"

    @property
    def feed(self) -> str:
        """The address of the feed."""
        query = self.query_string()
        return f"/{'find' if self.q else 'feed'}.atom{query and f'?{query}'}"


class FeedEntry(NamedTuple):
    """The changes in one snapshot; `changes` names some, `address` is the whole comparison."""

    id: str
    title: str
    date: str
    address: str
    changes: tuple[str, ...]


class Feed(NamedTuple):
    """A feed, the newest entry first; its ids do not depend on the build."""

    id: str
    owner: str
    updated: str
    entries: tuple[FeedEntry, ...]


class _Change(NamedTuple):
    """The numbers of specs that a snapshot added and removed, and the changed configurations."""

    snapshot: Release
    previous: Release
    added: int
    removed: int
    new: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()

    @property
    def named(self) -> list[tuple[str, list[int], int]]:
        """The labels of both sides, with the first configurations, and the number of others."""
        sides = (("new", self.new), ("gone", self.gone))
        return [
            (label, sorted(side)[:MOST_NAMED], max(0, len(side) - MOST_NAMED))
            for label, side in sides
        ]


def load_feed(lookups: Lookups, topic: Topic) -> Feed:
    """Return the feed about a topic.

    Raises:
        BuilderError: the spec or one of the names is not valid.
    """
    origin = read_origin(lookups.conn)
    seed = f"{origin.url or origin.owner} {topic.feed}"
    conditions = scope_of(lookups, package=topic.package, host=topic.host, stack=topic.stack)
    package = topic.package
    if topic.q is not None:
        query = parse(topic.q)
        conditions = question_of(lookups, query, conditions).conditions
        package = query.name
    changes = [item for item in _changes(lookups, conditions) if item.added or item.removed]
    ids = {key for change in changes for _, keys, _ in change.named for key in keys}
    words = {row.id: row.configuration for row in configurations_by_id(lookups, sorted(ids))}

    def entry(change: _Change) -> FeedEntry:
        new = change.snapshot.name
        sides = Sides(
            change.previous.name, new, stack=topic.stack, package=package, host=topic.host
        )
        lines = []
        for label, keys, more in change.named:
            lines += [f"{label}: {_line(words[key])}" for key in keys]
            lines += [f"{label}: {more:,} more"] if more else []
        return FeedEntry(
            id=_id(f"{seed} {new}"),
            title=f"{new}: {change.added:,} added, {change.removed:,} removed",
            date=str(_day(change.snapshot.date)),
            address=sides.address(),
            changes=tuple(lines),
        )

    entries = tuple(map(entry, changes))
    return Feed(_id(seed), origin.owner, entries[0].date if entries else NO_DAY, entries)


def _changes(lookups: Lookups, conditions: Conditions) -> Iterator[_Change]:
    """Yield the changes in each snapshot, the newest first."""
    dated = (release for release in lookups.releases.values() if _day(release.date))
    pairs = ((snapshot, before) for snapshot in dated if (before := lookups.before(snapshot)))
    is_of_stack = bool(conditions) and not without(conditions, "stack")
    compared = [*islice(pairs, MOST_OF_STACK if is_of_stack else MOST_SNAPSHOTS)]
    if not conditions:
        amounts = amounts_of_releases(lookups.conn, [snapshot.id for snapshot, _ in compared])
        for snapshot, previous in compared:
            yield _Change(snapshot, previous, *amounts[snapshot.id])
        return
    specs = shown_specs(lookups, conditions, {side.id for pair in compared for side in pair})
    for snapshot, previous in compared:
        new_specs, old_specs = specs[snapshot.id], specs[previous.id]
        new, old = frozenset(new_specs.values()), frozenset(old_specs.values())
        added = len(new_specs.keys() - old_specs.keys())
        removed = len(old_specs.keys() - new_specs.keys())
        yield _Change(snapshot, previous, added, removed, new - old, old - new)


def _line(row: Configuration) -> str:
    words = (row.compiler, row.os, row.target, *row.variants)
    return f"{row.package}@{row.version} {' '.join(words)}"


def _id(seed: str) -> str:
    return uuid5(NAMESPACE_URL, seed).urn


def _day(text: object) -> date | None:
    """Return a date; None for any other text, which another program may have written."""
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        return None
