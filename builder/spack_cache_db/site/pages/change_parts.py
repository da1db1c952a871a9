"""The parts of a comparison's page that list changed configurations, by package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from spack_cache_db.query.answers.changes import Changes
from spack_cache_db.query.answers.diff_result import ChangedConfiguration
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.rows import grouped
from spack_cache_db.site.change_words import ChangeWords, PartWords, package_on_one_side
from spack_cache_db.site.pages.excerpts import Excerpt, Excerpts
from spack_cache_db.site.pages.sides import Sides

MOST_ROWS = 150
"""Limit of configurations that are listed; beyond it, packages link to their own
comparison.
"""


class ChangedPackage(NamedTuple):
    """A package in a part of a comparison.

    Attributes:
        name: the package.
        extent: what changed and how much, such as `2.0 (12)`.
        path: the comparison of this package.
        rows: the configurations that are listed.
        others: the number of configurations that are not.
    """

    name: str
    extent: str
    path: str
    rows: tuple[ChangedConfiguration, ...]
    others: int


@dataclass(frozen=True, slots=True)
class Part:
    """The configurations with one kind of change, by package.

    Attributes:
        change: the word for the change (`schema.CHANGE_WORDS`).
        words: its heading.
        configuration_count: the number of configurations.
        packages: the packages with such configurations.
        stacks: the stacks that only one side has.
        has_rows: whether configurations are listed; otherwise packages are links.
        is_open: whether the part is unfolded, because it was asked for.
    """

    change: str
    words: PartWords
    configuration_count: int
    packages: Excerpt[ChangedPackage]
    stacks: tuple[str, ...]
    has_rows: bool
    is_open: bool

    @property
    def is_on_one_side(self) -> bool:
        """Whether only one side has these configurations."""
        return self.change in ("added", "removed")


def parts_of(
    lookups: Lookups, changes: Changes, excerpts: Excerpts, words: ChangeWords
) -> tuple[Part, ...]:
    """Return the kinds of changes that there are, in the order of their headings.

    Configurations are listed for one package or for few changes.
    """
    sides = excerpts.sides
    has_rows = bool(sides.package) or changes.configuration_count <= MOST_ROWS
    rows: Mapping[str, tuple[ChangedConfiguration, ...]] = {}
    if has_rows:
        rows = changes.configurations()
    parts = []
    for change, part_words in words.parts.items():
        if change not in changes.by_change:
            continue
        counts = _counts_by_package(lookups, changes.by_change[change])
        stacks = getattr(changes.stacks, change, ())
        if not counts and not stacks:
            continue
        names = excerpts.of(change, sorted(counts))
        shown_rows = rows.get(change, ())[:MOST_ROWS]
        shown = [(name, counts[name]) for name in names.shown]
        packages = _packages(changes, sides, change, shown, shown_rows)
        part = Part(
            change,
            part_words,
            configuration_count=len(changes.by_change[change]),
            packages=names.with_rows(packages),
            stacks=stacks,
            has_rows=has_rows,
            is_open=bool(sides.package) or excerpts.whole == change,
        )
        parts.append(part)
    return tuple(parts)


def _counts_by_package(lookups: Lookups, configurations: Set[int]) -> dict[str, int]:
    """Return the number of configurations of each package, by its name."""
    package_of = lookups.column("configurations", "package_id")
    counts = Counter([package_of[key] for key in configurations])
    names = lookups.words["package"]
    return {names[package]: count for package, count in counts.items()}


def _packages(
    changes: Changes,
    sides: Sides,
    change: str,
    counts: Sequence[tuple[str, int]],
    rows: Sequence[ChangedConfiguration],
) -> tuple[ChangedPackage, ...]:
    """Return packages of one kind of change, given their numbers of configurations.

    One address is made for all packages: a call for each of a thousand would take too
    long.
    """
    start, end = sides.address(package="PACKAGE").split("PACKAGE")
    rows_of = grouped((row.configuration.package, row) for row in rows)
    versions = grouped(getattr(changes.versions, change, ()))
    on_one_side = set(getattr(changes.packages, change, ()))
    packages = []
    for name, count in counts:
        words = ""
        if name in on_one_side:
            words = package_on_one_side(change, changes.place) + " "
        elif name in versions:
            words = ", ".join(versions[name]) + " "
        shown = rows_of.get(name, ())
        package = ChangedPackage(
            name,
            extent=f"{words}({count:,})",
            path=f"{start}{quote(name, safe='')}{end}#{change}",
            rows=shown,
            others=count - len(shown),
        )
        packages.append(package)
    return tuple(packages)
