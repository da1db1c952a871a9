"""Changes by package and by stack: what a reader of a comparison asks first.

Packages that lost their last binary come first, then upgrades, new packages and
stacks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlencode

from spack_cache_db.query.answers.changes import Changes
from spack_cache_db.query.answers.diff_result import Amount
from spack_cache_db.query.answers.release_amounts import amounts_of_releases
from spack_cache_db.query.open.lookups import Lookups, Release
from spack_cache_db.query.open.sql import select_in
from spack_cache_db.query.rows import grouped
from spack_cache_db.query.stored.mirrors import mirrored_release
from spack_cache_db.schema.tables import ID_COLUMNS
from spack_cache_db.site.charts.records import Change, Step
from spack_cache_db.site.names_for_people import names_of_processors, newest_and_others
from spack_cache_db.site.pages.feeds import date_of
from spack_cache_db.site.pages.sides import Sides
from spack_cache_db.site.pages.snapshots import branch_of, snapshots_of
from spack_cache_db.spack.processors import PROCESSORS, processor_name
from spack_cache_db.spack.versions import newest_version, version_key

MOST_STEPS = 52
"""Columns of the chart: a year of weekly snapshots. More are too narrow to press."""
MOST_PLACES = 2
"""Releases that are named because they still have a package: the newest."""
_RELEASES_WITH = """
SELECT packages.name, release_packages.release_id
FROM release_packages JOIN packages ON packages.id = release_packages.package_id
WHERE release_packages.spec_count > 0
  AND packages.id IN (SELECT value FROM json_each(:ids))
"""


class Place(NamedTuple):
    """A release that has a package, and the package's page for that release."""

    name: str
    path: str


class PackageOnOneSide(NamedTuple):
    """A package that only one side has.

    Attributes:
        name: the package.
        path: the comparison of this package.
        versions: its versions for people, such as `3.11.4 and 2 more`.
        processors: what its binaries run on, such as `x86-64-v3, aarch64`.
        places: the releases that still have it.
    """

    name: str
    path: str
    versions: str
    processors: str
    places: tuple[Place, ...] = ()


class Upgrade(NamedTuple):
    """A package with other versions than before.

    `path` is the comparison of this package; versions are the newest of those that only
    one side has.
    """

    name: str
    path: str
    old: str
    new: str

    @property
    def is_older(self) -> bool:
        """Whether the newest version of the new side is older."""
        return version_key(self.new) < version_key(self.old)

    @property
    def is_major(self) -> bool:
        """Whether the first number of the version is larger: `1.9` to `2.0`."""
        old_segments = version_key(self.old)[0]
        new_segments = version_key(self.new)[0]
        return new_segments[:1] > old_segments[:1]


def packages_on_one_side(
    lookups: Lookups,
    changes: Changes,
    sides: Sides,
    change: str,
    names: Sequence[str],
) -> tuple[PackageOnOneSide, ...]:
    """Return some of the packages that only one side has: `change` is `added` or
    `removed`.
    """
    versions = grouped(getattr(changes.versions, change))
    processors = _processors(lookups, changes, names, change)
    places: Mapping[str, tuple[Place, ...]] = {}
    if change == "removed" and not changes.place:
        places = _places(lookups, names, sides.new)
    return tuple(
        PackageOnOneSide(
            name=name,
            path=sides.address(package=name),
            versions=newest_and_others(versions[name]),
            processors=names_of_processors(processors[name]),
            places=places.get(name, ()),
        )
        for name in names
    )


def _processors(
    lookups: Lookups, changes: Changes, names: Sequence[str], change: str
) -> Mapping[str, Sequence[str]]:
    """Return what the binaries of packages run on, in the order of columns.

    A target without a column, such as `zen3`, follows with its own name.
    """
    package_of = lookups.column("configurations", "package_id")
    platform_of = lookups.column("configurations", ID_COLUMNS["platform"])
    target_of = lookups.column("configurations", ID_COLUMNS["target"])
    wanted = {lookups.packages[name]: name for name in names}
    found: dict[str, set[str]] = defaultdict(set)
    for key in changes.by_change[change]:
        name = wanted.get(package_of[key])
        if name is None:
            continue
        target = lookups.words["target"][target_of[key]]
        platform = lookups.words["platform"][platform_of[key]]
        found[name].add(processor_name(platform, target))
    columns = [processor.name for processor in PROCESSORS]

    def order(processor: str) -> tuple[int, str]:
        place = columns.index(processor) if processor in columns else len(columns)
        return place, processor

    return {name: sorted(found[name], key=order) for name in names}


def _places(
    lookups: Lookups, names: Sequence[str], new: str
) -> Mapping[str, tuple[Place, ...]]:
    """Return the releases that still have packages.

    Old snapshots are many, and have the same; one is named if nothing else has it.
    Copies of a mirror have no binaries of their own. The new release may have a package
    that a filter leaves out.
    """
    ids = sorted(lookups.packages[name] for name in names)
    releases_with: dict[str, set[int]] = defaultdict(set)
    for name, release in select_in(lookups.conn, _RELEASES_WITH, ids):
        releases_with[name].add(release)
    places = {}
    for name in names:
        having = [
            release
            for release in lookups.releases.values()
            if release.id in releases_with[name]
            and mirrored_release(lookups, release) == release.name
        ]
        lasting = [
            release
            for release in having
            if release.kind != "snapshot" or release.name == new
        ]
        chosen = lasting or having[:1]
        places[name] = tuple(
            _place(name, release.name) for release in chosen[:MOST_PLACES]
        )
    return places


def _place(package: str, release: str) -> Place:
    query = urlencode({"release": release})
    return Place(release, f"/package/{quote(package, safe='')}?{query}")


def upgrades_of(changes: Changes, sides: Sides) -> tuple[Upgrade, ...]:
    """Return the packages with other versions than before; major upgrades first."""
    old = grouped(changes.versions.removed)
    new = grouped(changes.versions.added)
    upgrades = []
    for name in sorted(old.keys() & new.keys()):
        upgrade = Upgrade(
            name=name,
            path=sides.address(package=name),
            old=_newest(old[name]),
            new=_newest(new[name]),
        )
        upgrades.append(upgrade)
    return tuple(sorted(upgrades, key=lambda upgrade: not upgrade.is_major))


def _newest(versions: Iterable[str]) -> str:
    newest = newest_version(versions)
    assert newest is not None
    return newest


def stacks_of(amounts: Mapping[str, Amount], sides: Sides) -> tuple[Change, ...]:
    """Return the stacks with what they gained and lost, those with most changes
    first.
    """
    stacks = []
    for name, amount in amounts.items():
        change = Change(
            name,
            count=amount.kept + amount.added,
            gained=amount.added,
            lost=amount.removed,
            path=sides.address(stack=name),
        )
        stacks.append(change)
    return tuple(
        sorted(stacks, key=lambda stack: (-stack.gained - stack.lost, stack.name))
    )


def steps_of(lookups: Lookups, sides: Sides) -> tuple[Step, ...]:
    """Return a step for each snapshot of the new side's branch, the oldest first.

    Those after the old side, up to the new one, stand out. A step leads to the
    comparison with the snapshot before; filters stay. Without snapshots of that branch,
    the newest snapshots are taken.
    """
    charted = _charted(lookups, sides)
    if charted is None:
        return ()
    # The chart ends with the newest snapshot, unless the new side is older than a year.
    snapshots = snapshots_of(lookups, branch_of(charted))
    shown = snapshots[-MOST_STEPS:]
    if charted not in shown:
        shown = snapshots[: snapshots.index(charted) + 1][-MOST_STEPS:]
    amounts = amounts_of_releases(lookups, sorted(release.id for release in shown))
    old = lookups.release(sides.old)
    new = lookups.release(sides.new)
    steps = []
    for release in shown:
        before = lookups.before(release)
        day = date_of(release.date)
        if before is None or day is None or release.id not in amounts:
            continue
        gained, lost = amounts[release.id]
        step = Step(
            day,
            gained=gained,
            lost=lost,
            path=sides.address(old=before.name, new=release.name),
            is_chosen=_is_between(release, old, new),
        )
        steps.append(step)
    return tuple(steps)


def _charted(lookups: Lookups, sides: Sides) -> Release | None:
    """Return the snapshot whose branch has a chart: the new side, or the newest."""
    new = lookups.release(sides.new)
    if new is not None and date_of(new.date) is not None:
        return new
    for release in lookups.releases.values():
        if release.kind == "snapshot" and date_of(release.date) is not None:
            return release
    return None


def _is_between(release: Release, old: Release | None, new: Release | None) -> bool:
    """Return whether a snapshot is one of the steps from the old to the new side."""
    if old is None or new is None or not (old.date and new.date and release.date):
        return False
    return old.date < release.date <= new.date
