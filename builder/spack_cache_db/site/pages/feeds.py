"""Feeds of the changes in each snapshot: of everything, a package, a stack or a spec.

Only snapshots have an entry, because branches and releases have no date in the database. The date
of the build would make all entries new with every build.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.answers import Shown, shown_specs
from spack_cache_db.query.changes import amounts_of_releases
from spack_cache_db.query.conditions import Conditions, without
from spack_cache_db.query.configurations import configurations_by_id
from spack_cache_db.query.database import Lookups, Release
from spack_cache_db.query.installation import read_origin
from spack_cache_db.query.names import scope_of
from spack_cache_db.query.records import question_of
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


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed, the newest entry first.

    Attributes:
        id: an identifier that does not depend on the build, like those of the entries.
        owner: the publisher of the build cache.
        updated: the date of the newest entry.
        error: the reason why there is no feed.
    """

    id: str
    owner: str
    updated: str = NO_DAY
    entries: tuple[FeedEntry, ...] = ()
    error: str | None = None


class _Change(NamedTuple):
    """The numbers of specs that a snapshot added and removed, and the changed configurations."""

    snapshot: Release
    previous: Release
    added: int
    removed: int
    new: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()


def load_feed(lookups: Lookups, topic: Topic) -> Feed:
    """Return the feed about a topic."""
    origin = read_origin(lookups.conn)
    seed = f"{origin.url or origin.owner} {topic.feed}"
    try:
        conditions = scope_of(lookups, package=topic.package, host=topic.host, stack=topic.stack)
        package = topic.package
        if topic.q is not None:
            query = parse(topic.q)
            conditions = question_of(lookups, query, conditions).conditions
            package = query.name
    except BuilderError as error:
        return Feed(_id(seed), origin.owner, error=str(error))
    changes = [item for item in _changes(lookups, conditions) if item.added or item.removed]
    entries = []
    for change, lines in zip(changes, _lines(lookups, changes), strict=True):
        old, new = change.previous.name, change.snapshot.name
        sides = Sides(old, new, stack=topic.stack, package=package, host=topic.host)
        entry = FeedEntry(
            id=_id(f"{seed} {new}"),
            title=f"{new}: {change.added:,} added, {change.removed:,} removed",
            date=str(change.snapshot.date),
            address=sides.address(),
            changes=tuple(lines),
        )
        entries.append(entry)
    updated = entries[0].date if entries else NO_DAY
    return Feed(_id(seed), origin.owner, updated, tuple(entries))


def _changes(lookups: Lookups, conditions: Conditions) -> Iterator[_Change]:
    """Yield the changes in each snapshot, the newest first."""
    dated = (release for release in lookups.releases.values() if _is_day(release.date))
    pairs = ((snapshot, before) for snapshot in dated if (before := lookups.before(snapshot)))
    is_of_stack = bool(conditions) and not without(conditions, "stack")
    compared = [*islice(pairs, MOST_OF_STACK if is_of_stack else MOST_SNAPSHOTS)]
    if not conditions:
        amounts = amounts_of_releases(lookups.conn, [snapshot.id for snapshot, _ in compared])
        for snapshot, previous in compared:
            yield _Change(snapshot, previous, *amounts[snapshot.id])
        return
    specs: Shown = shown_specs(lookups, conditions, {side.id for pair in compared for side in pair})
    for snapshot, previous in compared:
        new_specs, old_specs = specs[snapshot.id], specs[previous.id]
        new, old = frozenset(new_specs.values()), frozenset(old_specs.values())
        added = len(new_specs.keys() - old_specs.keys())
        removed = len(old_specs.keys() - new_specs.keys())
        yield _Change(snapshot, previous, added, removed, new - old, old - new)


def _lines(lookups: Lookups, changes: Sequence[_Change]) -> Iterator[list[str]]:
    """Yield lines about some of the new and removed configurations of each change."""
    ids = {
        key
        for change in changes
        for side in (change.new, change.gone)
        for key in sorted(side)[:MOST_NAMED]
    }
    words = {row.id: row.configuration for row in configurations_by_id(lookups, sorted(ids))}
    for change in changes:
        lines = []
        for label, side in (("new", change.new), ("gone", change.gone)):
            for key in sorted(side)[:MOST_NAMED]:
                row = words[key]
                parts = (row.compiler, row.os, row.target, *row.variants)
                lines.append(f"{label}: {row.package}@{row.version} {' '.join(parts)}")
            if len(side) > MOST_NAMED:
                lines.append(f"{label}: {len(side) - MOST_NAMED:,} more")
        yield lines


def _id(seed: str) -> str:
    return uuid5(NAMESPACE_URL, seed).urn


def _is_day(text: object) -> bool:
    """Return whether a text is a date: other programs may have written the database."""
    try:
        date.fromisoformat(str(text))
    except ValueError:
        return False
    return True
