"""The page `/diff/<old>...<new>`: what changed between two releases or stacks."""

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
    causes_in_words,
    compare,
    configurations_in_words,
    named,
    side_of,
)
from spack_cache_db.query.comparison import Cause
from spack_cache_db.query.database import Lookups
from spack_cache_db.query.names import UnknownNameError, scope_of
from spack_cache_db.site.pages.filters import AddressFields

MOST_EXPLAINED = 5_000
"""Of so many added and removed hashes the causes are looked for; of more it takes seconds."""
MOST_LISTED = 15_000
"""So many configurations are given as JSON or CSV; 15,000 take some 60 MB."""
MOST_ROWS = 150
"""So many configurations are shown one by one; of more, each package leads to its own."""


@dataclass(frozen=True, slots=True)
class Sides(AddressFields):
    """What an address compares: two releases or stacks, and what narrows them, by name."""

    old: str = ""
    new: str = ""
    stack: str | None = None
    package: str | None = None
    target: str | None = None
    host: str | None = None

    @property
    def topic(self) -> str:
        """What is compared of the two sides, in words; empty for everything."""
        words = [self.package or "", self.stack or "", self.target or ""]
        return ", ".join(filter(None, [*words, self.host and f"on {self.host}"]))

    @property
    def narrowing(self) -> list[tuple[str, str]]:
        """The names that narrow the comparison, by what they are of."""
        return [(name, value) for name, value in self.pairs if name not in ("old", "new")]

    def address(self, form: str = "", **changes: str | None) -> str:
        """Return the address that compares the same but for `changes`; as a page, or as data."""
        asked = replace(self, **changes)  # type: ignore[arg-type]
        old, new = (quote(side, safe=":") for side in (asked.old, asked.new))
        query = urlencode(asked.narrowing)
        return f"/diff/{old}...{new}{form and f'.{form}'}{query and f'?{query}'}"


class TooManyChanges(BuilderError):
    """Two releases differ in more configurations than are listed."""


class PackageChanges(NamedTuple):
    """The configurations of one package that changed in one way.

    Attributes:
        rows: those that are shown.
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
    """Everything that changed in one way: packages, and stacks that only one side has."""

    packages: tuple[PackageChanges, ...]
    stacks: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many configurations it has."""
        return sum(each.configurations for each in self.packages)


class Upgrade(NamedTuple):
    """The versions of a package that only one side has, oldest first."""

    package: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


NO_SPECS = Amount(0, 0, 0)


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """Everything the page shows.

    Attributes:
        specs: how many binaries were kept, added and removed.
        parts: those that are not empty, by the words of `schema.CHANGE_WORDS`.
        causes: None where too much changed to look for them.
        error: why there is no comparison.
    """

    specs: Amount = NO_SPECS
    parts: Mapping[str, Part] = field(default_factory=dict)
    upgrades: tuple[Upgrade, ...] = ()
    causes: tuple[Cause, ...] | None = ()
    error: str | None = None


def load_changes(lookups: Lookups, sides: Sides) -> ChangesPage:
    """Return the page; without a comparison where there is no such release, stack or package."""
    try:
        found = _changes_of(lookups, sides)
    except UnknownNameError as error:
        return ChangesPage(error=str(error))
    added, removed = (
        dict(_by_package(some)) for some in (found.versions.added, found.versions.removed)
    )
    upgraded = sorted(added.keys() & removed.keys())
    versions = {"added": added, "removed": removed}

    def part_of(change: str, packages: Iterable[PackageChanges]) -> Part:
        own, names = versions.get(change, {}), getattr(found.packages, change, ())
        marked = (
            each._replace(versions=own.get(each.package, ()), is_whole=each.package in names)
            for each in packages
        )
        return Part(tuple(marked), getattr(found.stacks, change, ()))

    parts = {
        change: part_of(change, some) for change, some in _folded(lookups, found, sides.package)
    }
    return ChangesPage(
        found.specs,
        {change: part for change, part in parts.items() if part.packages or part.stacks},
        tuple(Upgrade(key, removed[key], added[key]) for key in upgraded),
        causes_in_words(lookups, found, MOST_EXPLAINED),
    )


def difference_of(lookups: Lookups, sides: Sides) -> Diff:
    """Return the difference that an address asks for.

    Raises:
        UnknownNameError: there is no such release, stack, package, target or host.
        TooManyChanges: they differ in more than `MOST_LISTED` configurations.
    """
    found = _changes_of(lookups, sides)
    if (count := len(found.amounts)) > MOST_LISTED:
        raise TooManyChanges(
            f"{count:,} configurations differ, and at most {MOST_LISTED:,} are listed here:"
            " add package, stack, target or host, or use the command diff on the downloaded file"
        )
    return named(lookups, found, MOST_EXPLAINED)


def with_defaults(lookups: Lookups, sides: Sides) -> Sides:
    """Return sides with the two newest snapshots, or the first releases, where one is missing."""
    releases = [*lookups.releases.values()]
    snapshots = [each.name for each in releases if each.kind == "snapshot"]
    names = snapshots if len(snapshots) > 1 else [each.name for each in releases]
    new, old, *_ = [*names[:2], "", ""]
    return replace(sides, old=sides.old or old, new=sides.new or new)


def latest_changes(lookups: Lookups, **narrowed: str) -> tuple[Sides, ...]:
    """Return how the first release of each kind is compared with the one before it."""
    first: dict[str, Sides] = {}
    for each in lookups.releases.values():
        if before := lookups.before(each):
            first.setdefault(each.kind, Sides(before.name, each.name, **narrowed))
    return tuple(first.values())


def _by_package(
    versions: Iterable[tuple[str, str]],
) -> Iterable[tuple[str, tuple[str, ...]]]:
    for package, some in groupby(versions, key=lambda each: each[0]):
        yield package, tuple(version for _, version in some)


def _changes_of(lookups: Lookups, sides: Sides) -> Changes:
    old, new = (side_of(lookups, name, sides.stack) for name in (sides.old, sides.new))
    narrowing = scope_of(lookups, package=sides.package, target=sides.target, host=sides.host)
    return compare(lookups, old, new, narrowing)


def _folded(
    lookups: Lookups, found: Changes, package: str | None
) -> Iterator[tuple[str, tuple[PackageChanges, ...]]]:
    """Yield each change with its packages, and with rows if the page shows them.

    Rows are read only if they are shown: two snapshots differ in thousands of configurations.
    """
    if len(found.amounts) > MOST_ROWS and not package:
        names = lookups.words["package"]
        package_of = lookups.column("configurations", "package")
        for change, keys in found.by_change.items():
            counts = Counter(names[package_of[key]] for key in keys)
            yield (
                change,
                tuple(PackageChanges(name, count) for name, count in sorted(counts.items())),
            )
        return
    for change, rows in configurations_in_words(lookups, found).items():
        of_packages = groupby(rows, key=lambda each: each.configuration.package)
        every = ((name, [*some]) for name, some in of_packages)
        yield (
            change,
            tuple(PackageChanges(name, len(some), tuple(some[:MOST_ROWS])) for name, some in every),
        )
