"""The page `/diff/<old>...<new>`: what changed between two releases or stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple
from urllib.parse import quote, urlencode

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.changes import (
    ChangedConfiguration,
    Changes,
    Diff,
    causes_in_words,
    compare,
    configurations_in_words,
    named,
    sentence,
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
    """Configurations of one package; those that are shown are `rows`."""

    package: str
    configurations: int
    rows: tuple[ChangedConfiguration, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Everything that changed in one way.

    Attributes:
        name: a word of `schema.CHANGE_WORDS`.
        packages: names of packages that only one side has.
        versions: the versions that only one side has, by package, the oldest first.
        stacks: names of stacks that only one side has.
        configurations: the configurations that changed so, by package.
    """

    name: str
    packages: tuple[str, ...]
    versions: tuple[tuple[str, tuple[str, ...]], ...]
    stacks: tuple[str, ...]
    configurations: tuple[PackageChanges, ...]

    @property
    def count(self) -> int:
        """How many configurations it has."""
        return sum(each.configurations for each in self.configurations)


class Upgrade(NamedTuple):
    """The versions of a package that only one side has, oldest first."""

    package: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """Everything the page shows.

    Attributes:
        total: how much changed, as a sentence.
        causes: None where too much changed to look for them.
        error: why there is no comparison.
    """

    total: str = ""
    parts: tuple[Part, ...] = ()
    upgrades: tuple[Upgrade, ...] = ()
    causes: tuple[Cause, ...] | None = ()
    error: str | None = None


def load_changes(lookups: Lookups, sides: Sides) -> ChangesPage:
    """Return the page; without a comparison where there is no such release, stack or package."""
    try:
        found = _changes_of(lookups, sides)
    except UnknownNameError as error:
        return ChangesPage(error=str(error))
    versions = [dict(_by_package(some)) for some in (found.versions.removed, found.versions.added)]
    upgraded = versions[0].keys() & versions[1].keys()
    only_versions = {
        change: tuple(each for each in some.items() if each[0] not in upgraded)
        for change, some in zip(("removed", "added"), versions, strict=True)
    }
    return ChangesPage(
        total=sentence(found),
        parts=tuple(
            Part(
                change,
                getattr(found.packages, change, ()),
                only_versions.get(change, ()),
                getattr(found.stacks, change, ()),
                configurations,
            )
            for change, configurations in _folded(lookups, found, bool(sides.package))
        ),
        upgrades=tuple(
            Upgrade(key, versions[0][key], versions[1][key]) for key in sorted(upgraded)
        ),
        causes=causes_in_words(lookups, found, MOST_EXPLAINED),
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
    lookups: Lookups, found: Changes, one_package: bool
) -> Iterator[tuple[str, tuple[PackageChanges, ...]]]:
    """Yield each change with its packages, and with rows if the page shows them.

    Rows are read only if they are shown: two snapshots differ in thousands of configurations.
    """
    if len(found.amounts) > MOST_ROWS and not one_package:
        names = lookups.words["package"]
        package_of = lookups.column("configurations", "package")
        for change, keys in found.by_change.items():
            counts = Counter(names[package_of[key]] for key in keys)
            yield (
                change,
                tuple(PackageChanges(name, count, ()) for name, count in sorted(counts.items())),
            )
        return
    for change, rows in configurations_in_words(lookups, found).items():
        of_packages = groupby(rows, key=lambda each: each.configuration.package)
        every = ((package, [*some]) for package, some in of_packages)
        yield (
            change,
            tuple(
                PackageChanges(package, len(some), tuple(some[:MOST_ROWS]))
                for package, some in every
            ),
        )
