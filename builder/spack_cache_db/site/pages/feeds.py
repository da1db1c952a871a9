"""Feeds: what each snapshot changed of everything, of a package, of a stack or of a query's answer.

Only snapshots have a day, so only they have an entry: the day of a branch or a release is not in
the file, and the day of the build would make all entries new with each build.
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
"""A feed looks at so many snapshots, the newest: half a year of weekly ones."""
MOST_OF_STACK = 12
"""A feed of all that a stack has looks at fewer, because it reads each of them whole."""
MOST_NAMED = 10
"""So many configurations that are new in a snapshot are named, and as many that are gone."""
NO_DAY = "1970-01-01"
"""When a feed was changed that never had an entry."""


@dataclass(frozen=True, slots=True)
class Topic(AddressFields):
    """What a feed is about: a spec (`q`), or names; nothing for everything."""

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
    """What one snapshot changed; `changes` are configurations in words, `address` shows all."""

    id: str
    title: str
    date: str
    address: str
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed, the newest entry first.

    Attributes:
        id: the same whenever the file is built, as are those of the entries.
        owner: who publishes the build cache.
        updated: the day of the newest entry.
        error: why there is no feed.
    """

    id: str
    owner: str
    updated: str = NO_DAY
    entries: tuple[FeedEntry, ...] = ()
    error: str | None = None


class _Change(NamedTuple):
    """How much a snapshot added and removed, and the configurations that are new or gone."""

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
        conditions, package = _asked(lookups, topic)
    except BuilderError as error:
        return Feed(_id(seed), origin.owner, error=str(error))
    changes = [each for each in _changes(lookups, conditions) if each.added or each.removed]
    words = _words(lookups, changes)
    entries = []
    for each, lines in zip(changes, words, strict=True):
        old, new = each.previous.name, each.snapshot.name
        sides = Sides(old, new, stack=topic.stack, package=package, host=topic.host)
        amounts = f"{each.added:,} added, {each.removed:,} removed"
        entry = FeedEntry(
            id=_id(f"{seed} {new}"),
            title=f"{new}: {amounts}",
            date=str(each.snapshot.date),
            address=sides.address(),
            changes=tuple(lines),
        )
        entries.append(entry)
    updated = entries[0].date if entries else NO_DAY
    return Feed(_id(seed), origin.owner, updated, tuple(entries))


def _asked(lookups: Lookups, topic: Topic) -> tuple[Conditions, str | None]:
    """Return what a topic asks of specs, and the only package that it is about.

    Raises:
        QuerySyntaxError, UnsupportedQuery, UnknownNameError: this file cannot answer it.
    """
    scope = scope_of(lookups, package=topic.package, host=topic.host, stack=topic.stack)
    if topic.q is None:
        return scope, topic.package
    query = parse(topic.q)
    return question_of(lookups, query, scope).conditions, query.name


def _changes(lookups: Lookups, conditions: Conditions) -> Iterator[_Change]:
    """Yield what each snapshot changed, the newest first."""
    dated = (each for each in lookups.releases.values() if _is_day(each.date))
    pairs = ((each, before) for each in dated if (before := lookups.before(each)))
    is_of_stack = bool(conditions) and not without(conditions, "stack")
    most = MOST_OF_STACK if is_of_stack else MOST_SNAPSHOTS
    compared = [*islice(pairs, most)]
    if not conditions:
        counted = amounts_of_releases(lookups.conn, [each.id for each, _ in compared])
        for each, previous in compared:
            yield _Change(each, previous, *counted[each.id])
        return
    wanted = {side.id for sides in compared for side in sides}
    shown: Shown = shown_specs(lookups, conditions, wanted)
    for each, previous in compared:
        here, there = shown[each.id], shown[previous.id]
        kept = len(here.keys() & there.keys())
        new, gone = {*here.values()}, {*there.values()}
        amounts = len(here) - kept, len(there) - kept
        yield _Change(each, previous, *amounts, frozenset(new - gone), frozenset(gone - new))


def _words(lookups: Lookups, changes: Sequence[_Change]) -> Iterator[list[str]]:
    """Yield, for each change, some of the configurations that are new or gone."""
    named = [[sorted(some)[:MOST_NAMED] for some in (each.new, each.gone)] for each in changes]
    ids = sorted({key for sides in named for some in sides for key in some})
    found = {each.id: each.configuration for each in configurations_by_id(lookups, ids)}
    for each, sides in zip(changes, named, strict=True):
        lines = []
        for word, some, every in zip(("new", "gone"), sides, (each.new, each.gone), strict=True):
            for key in some:
                what = found[key]
                parts = (what.compiler, what.os, what.target, *what.variants)
                lines.append(f"{word}: {what.package}@{what.version} {' '.join(parts)}")
            if len(every) > len(some):
                lines.append(f"{word}: {len(every) - len(some):,} more")
        yield lines


def _id(seed: str) -> str:
    return uuid5(NAMESPACE_URL, seed).urn


def _is_day(text: object) -> bool:
    """Return whether a date of the database is one: somebody else may have written it."""
    try:
        date.fromisoformat(str(text))
    except ValueError:
        return False
    return True
