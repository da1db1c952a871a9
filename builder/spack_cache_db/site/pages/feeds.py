"""`/feed.atom` and `/find.atom`: feeds of the changes in each snapshot.

A feed is of everything, a package, a stack or a spec. Only snapshots have an entry,
because branches and releases have no date in the database. The date of the build would
make all entries new with every build.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from spack_cache_db.errors import printable
from spack_cache_db.query.answers.history import shown_specs
from spack_cache_db.query.answers.release_amounts import (
    configuration_amounts_of_releases,
)
from spack_cache_db.query.answers.spec_functions import parse
from spack_cache_db.query.conditions.conditions import Conditions, without
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.names.scope import named_conditions
from spack_cache_db.query.open.lookups import Lookups, Release
from spack_cache_db.query.stored.configurations import configurations_by_id
from spack_cache_db.query.stored.origin import read_origin
from spack_cache_db.query.stored.recipe_facts import RECIPE_KINDS
from spack_cache_db.schema.tables import ID_COLUMNS
from spack_cache_db.site.change_words import News, numbers_title
from spack_cache_db.site.filters import AddressFields
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.pages.sides import Sides
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site
from spack_cache_db.spack.processors import processor_name

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
    """The topic of a feed: a spec (`q`) or names; everything without fields.

    The packages of a maintainer, a license or a tag are a topic, too.
    """

    q: str | None = None
    package: str | None = None
    stack: str | None = None
    host: str | None = None
    maintainer: str | None = None
    license: str | None = None
    tag: str | None = None

    @property
    def page(self) -> str:
        """The address of the page that the feed is about."""
        if self.recipe_names:
            return f"/packages{self.query(q=None, package=None)}"
        if self.q or self.host:
            spec = self.q or self.package or "*"
            return f"/find{self.query(q=spec, package=None)}"
        if self.package:
            return f"/package/{quote(self.package, safe='')}"
        if self.stack:
            return f"/stack/{quote(self.stack, safe='')}"
        return "/releases"

    @property
    def recipe_names(self) -> dict[str, str]:
        """The names of package data, by their kinds."""
        names = {}
        for kind in RECIPE_KINDS:
            name = getattr(self, kind)
            if name:
                names[kind] = name
        return names

    @property
    def feed(self) -> str:
        """The address of the feed."""
        name = "find" if self.q else "feed"
        return f"/{name}.atom{self.query()}"


class Entry(NamedTuple):
    """The changes in one snapshot.

    Attributes:
        added: the number of binaries that it added; of configurations in a feed of
            everything.
        removed: the same for those that it removed.
        title: what a reader wants to know.
        lines: the first changed configurations, in words.
    """

    id: str
    day: date
    sides: Sides
    added: int
    removed: int
    title: str
    lines: tuple[str, ...]


def changes_feed(site: Site, request: PageRequest, of: str) -> PageResponse:
    """Return `/feed.atom` (of everything, a package or a stack) or `/find.atom?q=`."""
    topic = Topic.parse(request.pairs)
    has_spec = topic.q is not None
    if (of == "find") != has_spec:
        return refused("the feed of a spec is /find.atom?q=SPEC", None)
    if topic.recipe_names and (topic.q or topic.package):
        fields = " and ".join(topic.recipe_names)
        return refused(f"a feed of a package or a spec takes no {fields}", None)
    feed = load_feed(site.lookups, topic)
    return site.page(
        request, "feed.xml", page=feed, topic=topic, printable=printable, kind="atom"
    )


class _Snapshot(NamedTuple):
    """A dated release, and the release before it."""

    day: date
    release: Release
    before: Release


class _Changes(NamedTuple):
    """What a snapshot changed, as in `Entry`."""

    added: int
    removed: int
    title: str
    lines: tuple[str, ...] = ()


def load_feed(lookups: Lookups, topic: Topic) -> dict[str, Any]:
    """Return the variables of a feed: its entries, the newest first, with ids that
    never change.

    Raises:
        BuilderError: the spec or one of the names is not valid.
    """
    # What the feed is about.
    package = topic.package
    conditions = named_conditions(
        lookups,
        package=package,
        host=topic.host,
        stack=topic.stack,
        **topic.recipe_names,
    )
    if topic.q is not None:
        query = parse(topic.q)
        conditions = Question(lookups, query, conditions).conditions
        package = query.name

    # Compare the newest snapshots, each with the one before it.
    is_whole_stack = bool(conditions) and not without(conditions, "stack")
    most = MOST_OF_STACK if is_whole_stack else MOST_SNAPSHOTS
    snapshots = _snapshots(lookups)[:most]
    if conditions:
        changes = _changes_of_specs(lookups, snapshots, conditions, package)
    else:
        changes = _changes_of_everything(lookups, snapshots)

    # Snapshots without a change have no entry, nor have those with rebuilds only.
    origin = read_origin(lookups.conn)
    seed = f"{origin.url or origin.owner} {topic.feed}"
    entries = []
    for day, release, before in snapshots:
        change = changes.get(release.id)
        if change is None:
            continue
        entry = Entry(
            id=uuid5(NAMESPACE_URL, f"{seed} {release.name}").urn,
            day=day,
            sides=Sides(
                before.name, release.name, topic.stack, package, host=topic.host
            ),
            added=change.added,
            removed=change.removed,
            title=change.title,
            lines=change.lines,
        )
        entries.append(entry)
    return {
        "id": uuid5(NAMESPACE_URL, seed).urn,
        "owner": origin.owner,
        "entries": entries,
    }


def _snapshots(lookups: Lookups) -> list[_Snapshot]:
    """Return the releases with a date and a release before them, the newest first."""
    snapshots = []
    for release in lookups.releases.values():
        day = date_of(release.date)
        before = lookups.before(release)
        if day is not None and before is not None:
            snapshots.append(_Snapshot(day, release, before))
    return snapshots


def date_of(text: object) -> date | None:
    """Return a date; None for any other text, which another program may have
    written.
    """
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        return None


def _changes_of_everything(
    lookups: Lookups, snapshots: Collection[_Snapshot]
) -> Mapping[int, _Changes]:
    """Return the numbers of changed configurations by the ids of snapshots.

    Other hashes of the same configurations are no change.
    """
    ids = sorted(_ids_of(snapshots))
    amounts = configuration_amounts_of_releases(lookups, ids)
    changes = {}
    for day, release, _ in snapshots:
        added, removed = amounts.get(release.id, (0, 0))
        if added or removed:
            title = numbers_title(day, added, removed)
            changes[release.id] = _Changes(added, removed, title)
    return changes


def _changes_of_specs(
    lookups: Lookups,
    snapshots: Collection[_Snapshot],
    conditions: Conditions,
    package: str | None,
) -> Mapping[int, _Changes]:
    """Return the changes of the specs that satisfy conditions, by ids of snapshots.

    Other hashes of the same configurations are no change.
    """
    specs = shown_specs(lookups, conditions, _ids_of(snapshots))
    configurations = {release: set(found.values()) for release, found in specs.items()}
    changes = {}
    for _, release, before in snapshots:
        new = configurations[release.id]
        old = configurations[before.id]
        appeared = new - old
        disappeared = old - new
        if not appeared and not disappeared:
            continue
        news = News(
            package=package,
            new=_versions(lookups, appeared, old),
            gone=_versions(lookups, disappeared, new),
            appeared=len(appeared),
            disappeared=len(disappeared),
        )
        changes[release.id] = _Changes(
            added=len(specs[release.id].keys() - specs[before.id].keys()),
            removed=len(specs[before.id].keys() - specs[release.id].keys()),
            title=news.title,
            lines=(
                *_lines(lookups, "new", appeared),
                *_lines(lookups, "gone", disappeared),
            ),
        )
    return changes


def _versions(
    lookups: Lookups, ids: Collection[int], others: Collection[int]
) -> dict[str, tuple[str, ...]]:
    """Return the versions of configurations that other configurations do not have, each
    with its processors: `{"hdf5 2.1.0": ("aarch64",)}`.
    """
    version_of = lookups.column("configurations", "version_id")
    package_of = lookups.column("configurations", "package_id")
    platform_of = lookups.column("configurations", ID_COLUMNS["platform"])
    target_of = lookups.column("configurations", ID_COLUMNS["target"])

    # Each package has its own versions.
    known = {version_of[key] for key in others}
    configurations = [key for key in sorted(ids) if version_of[key] not in known]
    lookups.learn({version_of[key] for key in configurations}, set())
    words = lookups.words
    processors: dict[str, list[str]] = defaultdict(list)
    for key in configurations:
        package = words["package"][package_of[key]]
        version = words["version"][version_of[key]]
        platform = words["platform"][platform_of[key]]
        target = words["target"][target_of[key]]
        names = processors[f"{package} {version}"]
        name = processor_name(platform, target)
        if name not in names:
            names.append(name)
    return {name: tuple(processors[name]) for name in sorted(processors)}


def _ids_of(snapshots: Collection[_Snapshot]) -> set[int]:
    """Return the ids of snapshots and of the releases before them."""
    ids = set()
    for snapshot in snapshots:
        ids.add(snapshot.release.id)
        ids.add(snapshot.before.id)
    return ids


def _lines(lookups: Lookups, label: str, ids: Collection[int]) -> Iterator[str]:
    """Yield the first configurations, and the number of others."""
    for row in configurations_by_id(lookups, sorted(ids)[:MOST_NAMED]):
        summary = f"{label}: {row.configuration.summary}"
        yield " ".join((summary, *row.configuration.variants))
    others = len(ids) - MOST_NAMED
    if others > 0:
        yield f"{label}: {others:,} more"
