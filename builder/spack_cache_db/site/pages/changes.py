"""The page `/diff/<old>...<new>`: the changes between two releases or stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from spack_cache_db.query.names import UnknownNameError, scope_of
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


class TooManyChanges(BuilderError):
    """Two releases differ in more than `MOST_LISTED` configurations."""


class PackageChanges(NamedTuple):
    """The configurations of one package with one kind of change.

    Attributes:
        configurations: their number.
        rows: those that are listed.
        versions: the versions that only one side has, the oldest first.
        is_whole: whether only one side has the package.
    """

    package: str
    configurations: int
    rows: tuple[ChangedConfiguration, ...] = ()
    versions: tuple[str, ...] = ()
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """All changes of one kind: packages, and stacks that only one side has."""

    packages: tuple[PackageChanges, ...]
    stacks: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of configurations."""
        return sum(package.configurations for package in self.packages)


class Upgrade(NamedTuple):
    """The versions of a package that only one side has, oldest first."""

    package: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """The content of the page.

    Attributes:
        specs: the numbers of binaries that were kept, added and removed.
        parts: the parts that are not empty, by the words of `schema.CHANGE_WORDS`.
        causes: None beyond `MOST_EXPLAINED`.
        error: the reason why there is no comparison.
    """

    specs: Amount = Amount(0, 0, 0)  # noqa: RUF009 - it is immutable
    parts: Mapping[str, Part] = field(default_factory=dict)
    upgrades: tuple[Upgrade, ...] = ()
    causes: tuple[Cause, ...] | None = ()
    error: str | None = None


def load_changes(lookups: Lookups, sides: Sides) -> ChangesPage:
    """Return the page; with an error instead of a comparison if a name is unknown."""
    try:
        changes = _changes_of(lookups, sides)
    except UnknownNameError as error:
        return ChangesPage(error=str(error))
    added, removed = map(_by_package, (changes.versions.added, changes.versions.removed))
    versions = {"added": added, "removed": removed}
    parts = {}
    for change, packages in _by_change(lookups, changes, sides.package):
        one_sided = getattr(changes.packages, change, ())
        own_versions = versions.get(change, {})
        marked = (
            item._replace(
                versions=own_versions.get(item.package, ()), is_whole=item.package in one_sided
            )
            for item in packages
        )
        part = Part(tuple(marked), getattr(changes.stacks, change, ()))
        if part.packages or part.stacks:
            parts[change] = part
    return ChangesPage(
        changes.specs,
        parts,
        tuple(
            Upgrade(package, removed[package], added[package])
            for package in sorted(added.keys() & removed.keys())
        ),
        changes.causes(MOST_EXPLAINED),
    )


def difference_of(lookups: Lookups, sides: Sides) -> Diff:
    """Return the difference for an address, as the command `diff` prints it.

    Raises:
        UnknownNameError: a release, stack, package, target or host does not exist.
        TooManyChanges: the sides differ in more than `MOST_LISTED` configurations.
    """
    changes = _changes_of(lookups, sides)
    if (count := len(changes.amounts)) > MOST_LISTED:
        raise TooManyChanges(
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
) -> Iterator[tuple[str, list[PackageChanges]]]:
    """Yield the packages with each kind of change; with rows only if the page lists them.

    Two snapshots may differ in thousands of configurations.
    """
    if len(changes.amounts) > MOST_ROWS and not package:
        names = lookups.words["package"]
        package_of = lookups.column("configurations", "package")
        for change, keys in changes.by_change.items():
            counts = Counter(names[package_of[key]] for key in keys)
            yield change, [PackageChanges(name, count) for name, count in sorted(counts.items())]
        return
    for change, rows in changes.configurations().items():
        groups = groupby(rows, key=lambda row: row.configuration.package)
        every = ((name, tuple(group)) for name, group in groups)
        yield change, [PackageChanges(name, len(group), group[:MOST_ROWS]) for name, group in every]
