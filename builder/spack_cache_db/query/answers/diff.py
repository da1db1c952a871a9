"""Changes between two releases or stacks, and their reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from spack_cache_db.arguments import checked
from spack_cache_db.database_damage import stored_json
from spack_cache_db.errors import counted
from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.rebuilds import Cause, Numbering, causes_of_rebuilds
from spack_cache_db.query.conditions.conditions import Conditions, condition_value
from spack_cache_db.query.match.selection import column_ids
from spack_cache_db.query.names.scope import Scope, UnknownNameError, named_conditions
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.open.lookups import (
    Database,
    Lookups,
    has_records,
    opened,
)
from spack_cache_db.query.open.sql import IDS_AT_ONCE, select, select_in
from spack_cache_db.query.rows import NotebookTable, Rows
from spack_cache_db.query.stored.binary import IN_STACK
from spack_cache_db.query.stored.configurations import OF_IDS, configurations_by_id
from spack_cache_db.schema.changes import CHANGE_WORDS
from spack_cache_db.schema.tables import ID_COLUMNS
from spack_cache_db.spack.versions import version_key

T = TypeVar("T")

LISTED = f"""
SELECT spec_id, stack_set_id FROM listings
WHERE release_id = :release AND {IN_STACK.format("listings")}"""
"""The specs of a release, and the sets of stacks that list them there."""
_IN_ARRAYS = f"""
SELECT json_group_array(spec_id), json_group_array(stack_set_id) FROM (
{LISTED}  AND spec_id > :last ORDER BY spec_id LIMIT {IDS_AT_ONCE})
"""
"""The first of these after a spec. Arrays take half of the time that rows take."""
_OF_IDS = f"\n  AND spec_id {OF_IDS}"
_OF_PACKAGES = f"""
SELECT specs.id, specs.configuration_id
FROM configurations JOIN specs ON specs.configuration_id = configurations.id
WHERE configurations.package_id {OF_IDS}
"""
"""The specs of packages, listed or not."""
_AMOUNTS = """
SELECT id, added_count, removed_count FROM releases
WHERE previous_release_id IS NOT NULL AND id IN (SELECT value FROM json_each(:ids))
"""
_CONFIGURATION_AMOUNTS = """
SELECT
  release_id,
  sum(added > 0 AND removed = 0 AND spec_count = added),
  sum(removed > 0 AND spec_count = 0)
FROM configuration_history
WHERE (added > 0 OR removed > 0)
  AND release_id IN (SELECT value FROM json_each(:ids))
GROUP BY release_id
"""


class Delta(NamedTuple, Generic[T]):
    """Members that only the new release has, and members that only the old one has;
    sorted.
    """

    added: tuple[T, ...]
    removed: tuple[T, ...]


class Amount(NamedTuple):
    """The number of hashes in both releases, only in the new one, and only in the old
    one.
    """

    kept: int
    added: int
    removed: int


class ChangedConfiguration(NamedTuple):
    """A configuration whose hashes are not the same in both releases; `specs` counts
    them.
    """

    configuration: Configuration
    specs: Amount


@dataclass(frozen=True, slots=True)
class Diff(NotebookTable):
    """The difference between two releases, or two stacks.

    Attributes:
        old: the name of the old release, as typed (`develop` or `develop:e4s`).
        versions: pairs of package and version, in Spack's order of versions.
        configurations: the configurations that only one side has.
        grown: configurations of both sides with added hashes only.
        shrunk: configurations of both sides with removed hashes only.
        rebuilt: configurations with removed and added hashes.
        specs: all hashes, counted.
        causes: why configurations were rebuilt, as far as dependencies are recorded;
            None if there were too many to compare.
        place: the word before a side that exists beside the other, `on` for
            installations and `in` for stacks; empty if `new` follows `old`, so that
            something was removed and added.
    """

    old: str
    new: str
    packages: Delta[str]
    versions: Delta[tuple[str, str]]
    configurations: Delta[ChangedConfiguration]
    grown: tuple[ChangedConfiguration, ...]
    shrunk: tuple[ChangedConfiguration, ...]
    rebuilt: tuple[ChangedConfiguration, ...]
    stacks: Delta[str]
    specs: Amount
    causes: tuple[Cause, ...] | None
    place: str = ""

    @property
    def words(self) -> dict[str, str]:
        """The words for people for each change: `removed`, or `only on derecho`."""
        if not self.place:
            return {change: change for change in CHANGE_WORDS}
        return {
            "removed": f"only {self.place} {self.old}",
            "added": f"only {self.place} {self.new}",
            "grown": f"with more {self.place} {self.new}",
            "shrunk": f"with fewer {self.place} {self.new}",
            "rebuilt": "with other hashes",
        }

    @property
    def is_empty(self) -> bool:
        """Whether both sides have the same hashes, configurations and stacks."""
        return not any((*self.stacks, *self.by_change.values()))

    @property
    def by_change(self) -> dict[str, tuple[ChangedConfiguration, ...]]:
        """The changed configurations, by the word for their change
        (`schema.CHANGE_WORDS`).
        """
        added, removed = self.configurations
        both = {"grown": self.grown, "shrunk": self.shrunk, "rebuilt": self.rebuilt}
        return {"removed": removed, "added": added, **both}

    @property
    def sentence(self) -> str:
        """The totals as one sentence."""
        kept, added, removed = self.specs
        if self.is_empty:
            return f"{self.new} has the same {kept:,} binaries as {self.old}."
        removed_count = counted(removed, "binary", "binaries")
        grown = len(self.grown)
        shrunk = len(self.shrunk)
        rebuilt = len(self.rebuilt)
        if self.place:
            both = f"{self.place} both"
            words = self.words
            return (
                f"{removed_count} {words['removed']}, {added:,} {words['added']}, "
                f"{kept:,} {both}; of the configurations {both}, "
                f"{grown:,} {words['grown']}, {shrunk:,} {words['shrunk']} and "
                f"{rebuilt:,} {words['rebuilt']}."
            )
        was = "was" if removed == 1 else "were"
        return (
            f"From {self.old} to {self.new}, {removed_count} {was} removed, "
            f"{added:,} added and {kept:,} kept; of the configurations in both, "
            f"{grown:,} grown, {shrunk:,} shrunk and {rebuilt:,} rebuilt."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `diff --json` prints."""
        configurations = {}
        for change, members in self.by_change.items():
            configurations[change] = [_words(change, member) for member in members]
        causes = None
        if self.causes is not None:
            causes = [cause._asdict() for cause in self.causes]
        return {
            "old": self.old,
            "new": self.new,
            "packages": self.packages._asdict(),
            "versions": self.versions._asdict(),
            "configurations": configurations,
            "stacks": self.stacks._asdict(),
            "specs": self.specs._asdict(),
            "causes": causes,
        }

    @property
    def rows(self) -> Rows:
        """A row for each changed configuration, as `diff --csv` prints it."""
        records = []
        for change, configurations in self.by_change.items():
            for changed in configurations:
                record = {"change": change}
                record |= changed.configuration._asdict()
                record |= changed.specs._asdict()
                records.append(record)
        return Rows(("change", *Configuration._fields, *Amount._fields), records)


def _words(change: str, changed: ChangedConfiguration) -> dict[str, Any]:
    """Return a configuration for JSON, with one count if only one side has it."""
    specs = changed.specs
    counts = specs._asdict()
    if change in Delta._fields:
        counts = {"specs": specs.added + specs.removed}
    return changed.configuration._asdict() | counts


@checked
def diff(
    db: Database,
    old: str,
    new: str,
    *,
    stack: str | None = None,
    package: str | None = None,
    target: str | None = None,
    host: str | None = None,
) -> Diff:
    """Compare two releases of a database, or two stacks.

    `stack` and `host` narrow both sides: see `Scope`.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        old: the name of a release, or of a release and a stack: `develop:e4s`.
        new: the name of the release, or release and stack, that is compared with `old`.
        package: only this package.
        target: only specs built for this CPU target.

    Returns:
        The difference: "added" is in `new` only, "removed" is in `old` only.

    Raises:
        ArgumentError: an argument has a wrong type.
        UnknownNameError: the database has no such release, stack, package or target.
        DatabaseError: the database was not made by this builder.
    """
    narrowing = {"stack": stack, "package": package, "target": target, "host": host}
    with opened(db) as lookups:
        return compare(lookups, old, new, **narrowing).in_words()


def amounts_of_releases(
    lookups: Lookups, releases: Sequence[int]
) -> Mapping[int, tuple[int, int]]:
    """Return how many binaries each release added and removed, compared with the one
    before.
    """

    def read() -> dict[int, tuple[int, int]]:
        rows = select_in(lookups.conn, _AMOUNTS, releases)
        return {release: (added, removed) for release, added, removed in rows}

    return lookups.once((_AMOUNTS, *releases), read)


def configuration_amounts_of_releases(
    lookups: Lookups, releases: Sequence[int]
) -> Mapping[int, tuple[int, int]]:
    """Return how many configurations each release added and removed, compared with the
    one before. Other hashes of the same configurations do not count.
    """

    def read() -> dict[int, tuple[int, int]]:
        rows = select_in(lookups.conn, _CONFIGURATION_AMOUNTS, releases)
        return {release: (added, removed) for release, added, removed in rows}

    return lookups.once((_CONFIGURATION_AMOUNTS, *releases), read)


def _side(lookups: Lookups, text: str, stack: str | None) -> Conditions:
    """Return the side that a text names: a release, or a release and a stack
    (`develop:e4s`).
    """
    text = read_spellings(lookups).canonical("side", text)
    release, colon, stack_name = text.rpartition(":")
    if not colon or lookups.release(text):
        release, stack_name = text, ""
    if stack_name and stack:
        raise UnknownNameError(
            f"{text!r} names a stack, and so does {stack!r}; give one of them"
        )
    scope = Scope(release=release, stack=stack_name or stack)
    return scope.conditions(lookups)


@dataclass(frozen=True, slots=True)
class Side:
    """The specs that one side of a comparison lists, by their numbers (see
    `Numbering`).

    Attributes:
        stack_sets: the id of the set of stacks that list each spec.
        configuration_of: the configuration of each spec, listed or not.
        stack_names: the names in each set of stacks, by its id.
    """

    stack_sets: Mapping[int, int]
    configuration_of: Mapping[int, int] | Sequence[int]
    stack_names: Mapping[int, tuple[str, ...]]

    def configurations(self, specs: Iterable[int]) -> list[int]:
        """Return the configuration of each of some specs."""
        configuration_of = self.configuration_of
        return [configuration_of[spec] for spec in specs]


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


def compare(
    lookups: Lookups,
    old: str,
    new: str,
    stack: str | None = None,
    **narrowing: str | None,
) -> Changes:
    """Return the changes from one side to the other; the arguments are those of `diff`.

    Raises:
        UnknownNameError: a name does not exist, or a side and `stack` name two stacks.
    """
    old_side = _side(lookups, old, stack)
    new_side = _side(lookups, new, stack)
    conditions = named_conditions(lookups, **narrowing)
    before = listed_in(lookups, old_side, conditions)
    after = listed_in(lookups, new_side, conditions)
    names = [_name_of_side(side) for side in (old_side, new_side)]
    changes = changes_of(Numbering(lookups), names, before, after)
    return replace(changes, place=_place(lookups, names))


def _name_of_side(side: Conditions) -> str:
    """Return a side as the database writes it: `develop` or `develop:e4s`."""
    return ":".join(condition.text for condition in side)


def _place(lookups: Lookups, sides: Sequence[str]) -> str:
    """Return the word before sides that exist beside each other; empty for an older and
    a newer.

    Nothing is removed between two machines, or between two stacks of one release.
    """
    kinds = {release.name: release.kind for release in lookups.releases.values()}
    old, new = sides
    old_release = old if old in kinds else old.rpartition(":")[0]
    new_release = new if new in kinds else new.rpartition(":")[0]
    if old_release == new_release:
        return "" if old == new else "in"
    kinds_of_sides = (kinds.get(old_release), kinds.get(new_release))
    if "installed" not in kinds_of_sides:
        return ""
    # One side may be a mirror, which is not a machine.
    are_machines = kinds_of_sides == ("installed", "installed")
    return "on" if are_machines else "in"


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
    # Count pairs of sets of stacks, of which there are few. The id 0, which no set
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


def listed_in(lookups: Lookups, side: Conditions, narrowing: Conditions) -> Side:
    """Return the specs of a side that satisfy conditions on their configurations."""
    conn = lookups.conn
    columns = column_ids(lookups, narrowing)
    packages = columns.pop("package", None)
    place: dict[str, int | None] = {}
    for kind in ("release", "stack"):
        place[kind] = condition_value((*side, *narrowing), kind)

    # A package has few of all specs: these are looked up.
    configuration_of: Mapping[int, int] | Sequence[int]
    if packages is None:
        configuration_of = lookups.column("specs", "configuration_id")
        stack_sets = _listed(lookups, place)
    else:
        configuration_of = dict(select_in(conn, _OF_PACKAGES, packages))
        rows = select_in(conn, LISTED + _OF_IDS, configuration_of, **place)
        stack_sets = dict(rows)

    # Then compare the other columns.
    for column, ids in columns.items():
        word_of = lookups.column("configurations", ID_COLUMNS[column])
        stack_sets = {
            spec: stack_set
            for spec, stack_set in stack_sets.items()
            if word_of[configuration_of[spec]] in ids
        }
    return Side(stack_sets, configuration_of, lookups.stack_sets())


def _listed(lookups: Lookups, place: Mapping[str, int | None]) -> dict[int, int]:
    """Return the set of stacks of each spec that a release, or a stack of it, lists."""
    stack_sets: dict[int, int] = {}
    last = 0
    while True:
        ((specs_text, sets_text),) = select(
            lookups.conn, _IN_ARRAYS, last=last, **place
        )
        specs = stored_json(specs_text)
        stack_sets.update(zip(specs, stored_json(sets_text), strict=True))
        if len(specs) < IDS_AT_ONCE:
            return stack_sets
        last = specs[-1]


def delta_of(
    old: Set[Any], new: Set[Any], *, order: Callable[[Any], Any] | None = None
) -> Delta[Any]:
    """Return what only the new side has, and what only the old side has, both
    sorted.
    """
    added = sorted(new - old, key=order)
    removed = sorted(old - new, key=order)
    return Delta(tuple(added), tuple(removed))
