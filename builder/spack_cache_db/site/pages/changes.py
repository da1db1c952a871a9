"""The page `/diff/<old>...<new>`: the changes between two releases or stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple
from urllib.parse import quote, urlencode

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.changes import (
    Amount,
    ChangedConfiguration,
    Changes,
    Diff,
    compare,
    side_of,
)
from spack_cache_db.query.comparison import Cause
from spack_cache_db.query.database import Lookups
from spack_cache_db.query.names import scope_of
from spack_cache_db.site.pages.filters import AddressFields, Pairs

MOST_EXPLAINED = 5_000
"""Limit of added and removed hashes up to which causes are searched; more would take seconds."""
MOST_LISTED = 15_000
"""Limit of configurations in JSON or CSV; 15,000 take some 60 MB."""
MOST_ROWS = 150
"""Limit of configurations that are listed; beyond it, packages link to their own comparison."""


@dataclass(frozen=True, slots=True)
class Sides(AddressFields):
    """The names in the address of a comparison: two releases, and names that narrow it."""

    old: str = ""
    new: str = ""
    stack: str | None = None
    package: str | None = None
    target: str | None = None
    host: str | None = None

    @property
    def topic(self) -> str:
        """The names that narrow the comparison, in words; empty without any."""
        words = (self.package, self.stack, self.target, self.host and f"on {self.host}")
        return ", ".join(filter(None, words))

    @property
    def narrowing(self) -> Pairs:
        """The names that narrow the comparison, with their fields."""
        return [(name, value) for name, value in self.pairs if name not in ("old", "new")]

    def address(self, form: str = "", **changes: str | None) -> str:
        """Return the address of the comparison after some changes, as a page or in a form."""
        sides = replace(self, **changes)  # type: ignore[arg-type]
        old, new = (quote(side, safe=":") for side in (sides.old, sides.new))
        query = urlencode(sides.narrowing)
        return f"/diff/{old}...{new}{form and f'.{form}'}{query and f'?{query}'}"


class PackageChanges(NamedTuple):
    """The configurations of one package with one kind of change, and those that are listed.

    Attributes:
        versions: the versions that only one side has, the oldest first.
        is_whole: whether only one side has the package.
    """

    package: str
    configurations: int
    rows: tuple[ChangedConfiguration, ...]
    versions: tuple[str, ...]
    is_whole: bool


class Part(NamedTuple):
    """All changes of one kind: packages, and stacks that only one side has."""

    packages: tuple[PackageChanges, ...]
    stacks: tuple[str, ...]


class Upgrade(NamedTuple):
    """The versions of a package that only one side has, oldest first."""

    package: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


class ChangesPage(NamedTuple):
    """The content of the page: parts that are not empty, by the words of `schema.CHANGE_WORDS`.

    There are no causes beyond `MOST_EXPLAINED`.
    """

    specs: Amount
    parts: Mapping[str, Part]
    upgrades: tuple[Upgrade, ...]
    causes: tuple[Cause, ...] | None


def load_changes(lookups: Lookups, sides: Sides) -> ChangesPage:
    """Return the page.

    Raises:
        UnknownNameError: a release, stack, package, target or host does not exist.
    """
    changes = _changes_of(lookups, sides)
    added, removed = map(_by_package, (changes.versions.added, changes.versions.removed))
    versions = {"added": added, "removed": removed}
    parts = {}
    for change, packages in _by_change(lookups, changes, sides.package):
        one_sided, own_versions = getattr(changes.packages, change, ()), versions.get(change, {})
        part = Part(
            tuple(
                PackageChanges(name, count, rows, own_versions.get(name, ()), name in one_sided)
                for name, count, rows in packages
            ),
            getattr(changes.stacks, change, ()),
        )
        if any(part):
            parts[change] = part
    upgrades = (
        Upgrade(package, removed[package], added[package])
        for package in sorted(added.keys() & removed.keys())
    )
    return ChangesPage(changes.specs, parts, tuple(upgrades), changes.causes(MOST_EXPLAINED))


def difference_of(lookups: Lookups, sides: Sides) -> Diff:
    """Return the difference for an address, as the command `diff` prints it.

    Raises:
        UnknownNameError: a release, stack, package, target or host does not exist.
        BuilderError: the sides differ in more than `MOST_LISTED` configurations.
    """
    changes = _changes_of(lookups, sides)
    if (count := len(changes.amounts)) > MOST_LISTED:
        raise BuilderError(
            f"{count:,} configurations differ, but this site lists at most {MOST_LISTED:,}:"
            " add package, stack, target or host, or use the command diff on the downloaded file"
        )
    return changes.in_words(MOST_EXPLAINED)


def with_defaults(lookups: Lookups, sides: Sides) -> Sides:
    """Return sides completed with the two newest snapshots, or the first two releases."""
    releases = [*lookups.releases.values()]
    snapshots = [release.name for release in releases if release.kind == "snapshot"]
    names = snapshots if len(snapshots) > 1 else [release.name for release in releases]
    new, old, *_ = [*names[:2], "", ""]
    return replace(sides, old=sides.old or old, new=sides.new or new)


def latest_changes(lookups: Lookups, **narrowed: str) -> tuple[Sides, ...]:
    """Return the comparison of the newest release of each kind with the one before it."""
    first: dict[str, Sides] = {}
    for release in lookups.releases.values():
        if before := lookups.before(release):
            first.setdefault(release.kind, Sides(before.name, release.name, **narrowed))
    return tuple(first.values())


def _by_package(versions: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    for package, version in versions:
        groups[package] = (*groups.get(package, ()), version)
    return groups


def _changes_of(lookups: Lookups, sides: Sides) -> Changes:
    old, new = (side_of(lookups, name, sides.stack) for name in (sides.old, sides.new))
    narrowing = scope_of(lookups, package=sides.package, target=sides.target, host=sides.host)
    return compare(lookups, old, new, narrowing)


def _by_change(
    lookups: Lookups, changes: Changes, package: str | None
) -> Iterator[tuple[str, list[tuple[str, int, tuple[ChangedConfiguration, ...]]]]]:
    """Yield the packages with each kind of change; with rows only if the page lists them.

    Two snapshots may differ in thousands of configurations.
    """
    if len(changes.amounts) > MOST_ROWS and not package:
        names = lookups.words["package"]
        package_of = lookups.column("configurations", "package")
        for change, keys in changes.by_change.items():
            counts = Counter(names[package_of[key]] for key in keys)
            yield change, [(name, count, ()) for name, count in sorted(counts.items())]
        return
    for change, rows in changes.configurations().items():
        groups = groupby(rows, key=lambda row: row.configuration.package)
        every = [(name, tuple(group)) for name, group in groups]
        yield change, [(name, len(group), group[:MOST_ROWS]) for name, group in every]
