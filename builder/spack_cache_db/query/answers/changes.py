"""Changes from one side of a comparison to the other, by the numbers of specs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from spack_cache_db.query.answers.diff_result import (
    Amount,
    ChangedConfiguration,
    Delta,
    Diff,
    delta_of,
)
from spack_cache_db.query.answers.diff_sides import Side
from spack_cache_db.query.answers.rebuilds import Cause, Numbering, causes_of_rebuilds
from spack_cache_db.query.open.lookups import has_records
from spack_cache_db.query.stored.configurations import configurations_by_id
from spack_cache_db.schema.changes import CHANGE_WORDS
from spack_cache_db.spack.versions import version_key


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes from one side to the other, by numbers; `in_words` returns them as a
    `Diff`.

    Attributes:
        sides: the names of the sides.
        removed: the specs that only the old side has.
        added: those that only the new side has.
        by_change: the changed configurations, by the word for their change
            (`schema.CHANGE_WORDS`).
        by_stack: the number of specs that each stack kept, got and lost, by its name.
            A spec that another stack lists too is gone from the stack that does not
            list it any more.
    """

    numbering: Numbering
    sides: Sequence[str]
    before: Side
    after: Side
    removed: Set[int]
    added: Set[int]
    by_change: Mapping[str, Set[int]]
    by_stack: Mapping[str, Amount]
    packages: Delta[str]
    versions: Delta[tuple[str, str]]
    place: str = ""

    @property
    def configuration_count(self) -> int:
        """The number of changed configurations."""
        return sum(map(len, self.by_change.values()))

    @property
    def specs(self) -> Amount:
        """All specs, counted."""
        removed = len(self.removed)
        kept = len(self.before.stack_sets) - removed
        return Amount(kept=kept, added=len(self.added), removed=removed)

    @property
    def stacks(self) -> Delta[str]:
        """The stacks that only one side has."""
        amounts = self.by_stack.items()
        old = {name for name, amount in amounts if amount.kept or amount.removed}
        new = {name for name, amount in amounts if amount.kept or amount.added}
        return delta_of(old, new)

    def in_words(self, most_explained: int | None = None) -> Diff:
        """Return the changes in words."""
        old, new = self.sides
        rows = self.configurations()
        return Diff(
            old,
            new,
            packages=self.packages,
            versions=self.versions,
            configurations=Delta(rows["added"], rows["removed"]),
            grown=rows["grown"],
            shrunk=rows["shrunk"],
            rebuilt=rows["rebuilt"],
            stacks=self.stacks,
            specs=self.specs,
            causes=self.causes(most_explained),
            place=self.place,
        )

    def configurations(self) -> dict[str, tuple[ChangedConfiguration, ...]]:
        """Return the configurations of each change: by package, the newest version
        first.
        """
        changes_of_number = {}
        for change, numbers in self.by_change.items():
            for number in numbers:
                changes_of_number[number] = change
        rows = []
        for lookups, sign, ids in self.numbering.parts(changes_of_number):
            for row in configurations_by_id(lookups, ids):
                rows.append((sign * row.id, row.configuration))
        # Three stable sorts: version keys cannot be part of a descending key.
        rows.sort(key=lambda row: row[1])
        rows.sort(key=lambda row: version_key(row[1].version), reverse=True)
        rows.sort(key=lambda row: row[1].package)

        before = self.before
        old_counts = Counter(before.configurations(before.stack_sets))
        removed_counts = Counter(before.configurations(self.removed))
        added_counts = Counter(self.after.configurations(self.added))
        members: dict[str, list[ChangedConfiguration]] = {
            change: [] for change in CHANGE_WORDS
        }
        for number, configuration in rows:
            removed = removed_counts[number]
            kept = old_counts[number] - removed
            specs = Amount(kept=kept, added=added_counts[number], removed=removed)
            changed = ChangedConfiguration(configuration, specs)
            members[changes_of_number[number]].append(changed)
        return {change: tuple(changed) for change, changed in members.items()}

    def causes(self, limit: int | None = None) -> tuple[Cause, ...] | None:
        """Return why configurations were rebuilt; None if they have more than `limit`
        hashes.
        """
        # Without records no dependency is known, and so no cause.
        databases = self.numbering.databases
        if not all(has_records(lookups.conn) for lookups in databases):
            return ()
        rebuilt = self.by_change["rebuilt"]
        old = _by_configuration(self.before, self.removed, rebuilt)
        new = _by_configuration(self.after, self.added, rebuilt)
        return causes_of_rebuilds(self.numbering, old, new, limit)


def _by_configuration(
    side: Side, specs: Iterable[int], configurations: Set[int]
) -> dict[int, set[int]]:
    """Return those of the specs that have one of the configurations, by it."""
    specs_of: dict[int, set[int]] = {key: set() for key in configurations}
    for spec in specs:
        configuration = side.configuration_of[spec]
        if configuration in specs_of:
            specs_of[configuration].add(spec)
    return specs_of


def changes_of(
    numbering: Numbering, sides: Sequence[str], before: Side, after: Side
) -> Changes:
    """Return the changes from the specs of one side to those of the other.

    `sides` are their names.
    """
    removed = before.stack_sets.keys() - after.stack_sets.keys()
    added = after.stack_sets.keys() - before.stack_sets.keys()

    # The configurations of each side, and of the specs that only one side has.
    old = set(before.configurations(before.stack_sets))
    new = set(after.configurations(after.stack_sets))
    of_removed = set(before.configurations(removed))
    of_added = set(after.configurations(added))
    by_change = {
        "removed": of_removed - new,
        "added": of_added - old,
        "grown": (of_added & old) - of_removed,
        "shrunk": (of_removed & new) - of_added,
        "rebuilt": of_removed & of_added,
    }

    # A package or a version of one side has a configuration of that side only.
    only_old = _versions(numbering, old - new)
    only_new = _versions(numbering, new - old)
    packages = {version.package for version in only_old | only_new}
    in_both = _versions(numbering, old & new, packages)
    old_versions = in_both | only_old
    new_versions = in_both | only_new
    old_packages = {version.package for version in old_versions}
    new_packages = {version.package for version in new_versions}
    return Changes(
        numbering,
        sides,
        before=before,
        after=after,
        removed=removed,
        added=added,
        by_change=by_change,
        by_stack=_by_stack(before, after, added),
        packages=delta_of(old_packages, new_packages),
        versions=delta_of(old_versions, new_versions, order=_by_package_and_age),
    )


def _by_stack(before: Side, after: Side, added: Set[int]) -> dict[str, Amount]:
    """Return the number of specs that each stack kept, got and lost, by its name."""
    # Count pairs of sets of stacks: there are few of them. The id 0, which no set
    # has, stands for a side that does not list the spec.
    old_sets = before.stack_sets
    new_sets = after.stack_sets
    new_sets_of_old = [new_sets.get(spec, 0) for spec in old_sets]
    pairs = Counter(zip(old_sets.values(), new_sets_of_old, strict=True))
    for new_set, count in Counter([new_sets[spec] for spec in added]).items():
        pairs[0, new_set] = count

    kept: Counter[str] = Counter()
    gained: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for (old_set, new_set), count in pairs.items():
        old_stacks = set(before.stack_names.get(old_set, ()))
        new_stacks = set(after.stack_names.get(new_set, ()))
        for stack in old_stacks & new_stacks:
            kept[stack] += count
        for stack in new_stacks - old_stacks:
            gained[stack] += count
        for stack in old_stacks - new_stacks:
            lost[stack] += count
    return {
        stack: Amount(kept[stack], gained[stack], lost[stack])
        for stack in sorted(kept.keys() | gained.keys() | lost.keys())
    }


class _Version(NamedTuple):
    package: str
    version: str


def _by_package_and_age(version: _Version) -> Any:
    return version.package, version_key(version.version)


def _versions(
    numbering: Numbering, numbers: Iterable[int], packages: Set[str] | None = None
) -> set[_Version]:
    """Return the packages and versions of configurations; of some packages only if
    these are given.
    """
    versions = set()
    for lookups, _, ids in numbering.parts(numbers):
        package_of = lookups.column("configurations", "package_id")
        version_of = lookups.column("configurations", "version_id")
        if packages is not None:
            wanted = {lookups.packages.get(name) for name in packages}
            ids = [key for key in ids if package_of[key] in wanted]
        # Several configurations have one version, which belongs to one package.
        packages_of_versions = {version_of[key]: package_of[key] for key in ids}
        lookups.learn(set(packages_of_versions), set())
        package_words = lookups.words["package"]
        version_words = lookups.words["version"]
        for version, package in packages_of_versions.items():
            versions.add(_Version(package_words[package], version_words[version]))
    return versions
