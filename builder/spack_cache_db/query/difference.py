"""What changed between two releases, or between two stacks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from spack_cache_db.arguments import checked_text, checked_texts
from spack_cache_db.query.catalogue import IN_STACK, configurations_by_id, counts_in_scope
from spack_cache_db.query.conditions import Conditions, asked
from spack_cache_db.query.connection import (
    Database,
    Lookups,
    opened,
    select,
    select_in,
)
from spack_cache_db.query.look_alikes import Cause, causes_of_rebuilds
from spack_cache_db.query.questions import UnknownNameError, scope_of
from spack_cache_db.query.selection import column_ids
from spack_cache_db.query.spellings import read_spellings
from spack_cache_db.records import Configuration
from spack_cache_db.row_forms import Rows
from spack_cache_db.schema import CHANGE_WORDS, CHANGES

T = TypeVar("T")

LISTED = f"""
FROM listings AS here
WHERE here.release = :release AND {IN_STACK.format("here")}
"""
NARROWED = f"""
FROM listings AS here
JOIN specs ON specs.id = here.spec
JOIN configurations ON configurations.id = specs.configuration
WHERE here.release = :release AND {IN_STACK.format("here")}
  AND (:package IS NULL OR configurations.package IN (SELECT value FROM json_each(:package)))
  AND (:target IS NULL OR configurations.target IN (SELECT value FROM json_each(:target)))
"""
ONLY_HERE = f"""
SELECT here.spec, configurations.id, configurations.package, configurations.version {NARROWED}
  AND NOT EXISTS (
    SELECT 1 FROM listings AS there
    WHERE there.release = :other_release AND there.spec = here.spec
      AND {IN_STACK.format("there").replace(":stack", ":other_stack")})
"""
VERSIONS = """
SELECT id, package, version FROM configurations
WHERE package IN (SELECT value FROM json_each(:ids))
  AND (:target IS NULL OR target IN (SELECT value FROM json_each(:target)))
"""


class Delta(NamedTuple, Generic[T]):
    """What the new release has and the old one lacks, and the reverse; both sorted."""

    added: tuple[T, ...]
    removed: tuple[T, ...]


class Amount(NamedTuple):
    """How many hashes are in both releases, only in the new one, and only in the old one."""

    kept: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class ChangedConfiguration:
    """A configuration whose hashes are not the same in both releases.

    Attributes:
        configuration: package, version, compiler, os, platform, target and variants.
        specs: its hashes, counted. `schema.CHANGES` names the change by these counts.
    """

    configuration: Configuration
    specs: Amount


@dataclass(frozen=True, slots=True)
class Diff:
    """The difference between two releases, or two stacks.

    Attributes:
        old: the name of the old release, as given (`develop` or `develop:e4s`).
        new: the name of the new one.
        packages: names of packages.
        versions: pairs of package and version, in Spack's order of versions.
        configurations: those that only one of the two has.
        grown: configurations that both have; `new` has more hashes of them.
        shrunk: configurations that both have; `new` has fewer hashes of them.
        rebuilt: configurations of which hashes were removed and others added.
        stacks: names of stacks, without `root`.
        specs: all hashes, counted.
        causes: why configurations were rebuilt, as far as dependencies are recorded; None where
            there were too many to look at.
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

    @property
    def is_empty(self) -> bool:
        """Whether both have the same hashes with the same configurations, in the same stacks."""
        changed = (*self.packages, *self.versions, *self.stacks, *self.by_change.values())
        return not any(changed) and not self.specs.added and not self.specs.removed

    @property
    def by_change(self) -> dict[str, tuple[ChangedConfiguration, ...]]:
        """The changed configurations by the word for their change, as `schema.CHANGE_WORDS`."""
        return {
            "removed": self.configurations.removed,
            "added": self.configurations.added,
            "grown": self.grown,
            "shrunk": self.shrunk,
            "rebuilt": self.rebuilt,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return what `diff --json` prints."""
        return {
            "old": self.old,
            "new": self.new,
            "packages": _lists(self.packages, str),
            "versions": _lists(self.versions, list),
            "configurations": {
                change: [_words(change, configuration) for configuration in configurations]
                for change, configurations in self.by_change.items()
            },
            "stacks": _lists(self.stacks, str),
            "specs": self.specs._asdict(),
            "causes": None if self.causes is None else [each._asdict() for each in self.causes],
        }

    @property
    def rows(self) -> Rows:
        """What `diff --csv` prints: a row for each changed configuration."""
        records = (
            {"change": change, **each.configuration._asdict(), **each.specs._asdict()}
            for change, configurations in self.by_change.items()
            for each in configurations
        )
        return Rows(("change", *Configuration._fields, *Amount._fields), records)


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed from one side to the other, by ids: `named` gives a `Diff` of it.

    Attributes:
        gone: the specs that only the old side shows with a configuration, by configuration.
        came: those that only the new side shows with it.
        before: how many specs the old side has of each configuration above.
        package_of: the package of each configuration above.
        configurations: the configurations above, by the word for their change, as
            `schema.CHANGE_WORDS`.
        packages: those that only one side has.
        versions: pairs of a package and a version.
        stacks: the names of stacks.
        specs: all hashes, counted.
    """

    old: str
    new: str
    gone: Mapping[int, Set[int]]
    came: Mapping[int, Set[int]]
    before: Mapping[int, int]
    package_of: Mapping[int, int]
    packages: Delta[int]
    configurations: Mapping[str, tuple[int, ...]]
    versions: Delta[tuple[int, int]]
    stacks: Delta[str]
    specs: Amount

    @property
    def is_empty(self) -> bool:
        """Whether both have the same hashes with the same configurations, in the same stacks."""
        return not (self.package_of or self.stacks.added or self.stacks.removed)

    def amount(self, configuration: int) -> Amount:
        """Return how many specs of a configuration were kept, added and removed."""
        return _amount(configuration, self.before, self.gone, self.came)


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
    """Compare two releases of a built file, or two stacks.

    Args:
        db: a file made by `build`, as text or `Path`, or a `Cache` or connection to one.
        old: the name of a release, or of a release and a stack: `develop:e4s`.
        new: the same for what `old` is compared with.
        stack: only specs in this stack, on both sides.
        package: only this package.
        target: only what was built for this CPU target.
        host: only what runs on a machine of this CPU target, such as `zen3`.

    Returns:
        What `new` has and `old` lacks is added, the reverse is removed.

    Raises:
        ArgumentError: an argument has a wrong type.
        UnknownNameError: the file has no such release, stack, package or target.
        DatabaseError: the file is not one of this builder.
    """
    checked_texts(stack=stack, package=package, target=target, host=host)
    names = checked_text("old", old), checked_text("new", new)
    with opened(db) as lookups:
        before, after = (side_of(lookups, name, stack) for name in names)
        narrowing = scope_of(lookups, host=host, package=package, target=target)
        return named(lookups, compare(lookups, before, after, narrowing))


def side_of(lookups: Lookups, text: str, stack: str | None = None) -> Conditions:
    """Return the side that a text names: a release, or a release and a stack (`develop:e4s`).

    Raises:
        UnknownNameError: the file has no such release or stack, or two stacks are named.
    """
    text = read_spellings(lookups).canonical("side", text)
    release, colon, named = text.rpartition(":")
    if not colon or lookups.release(text):
        release, named = text, ""
    if named and stack:
        raise UnknownNameError(f"{text!r} names a stack, and so does {stack!r}; give one of them")
    return scope_of(lookups, release, named or stack)


def compare(lookups: Lookups, old: Conditions, new: Conditions, narrowing: Conditions) -> Changes:
    """Return what changed from one side to the other.

    What both show alike is only counted: of two snapshots that is most of what they have.

    Args:
        lookups: the small tables of the file.
        old: the one side, a release and perhaps a stack in it.
        new: the other side.
        narrowing: conditions on package and target.
    """
    ids = column_ids(lookups, narrowing)
    columns: dict[str, str | None] = {"package": None, "target": None}
    columns |= {column: json.dumps([*some]) for column, some in ids.items()}
    here, there = (
        {kind: asked(side, kind) for kind in ("release", "stack")} for side in (old, new)
    )
    listed = f"SELECT here.stacks, count(*) {NARROWED if ids else LISTED} GROUP BY 1"
    was, now = (dict(select(lookups.conn, listed, **place, **columns)) for place in (here, there))
    gone = _only_in(lookups.conn, here, there, columns)
    came = _only_in(lookups.conn, there, here, columns)
    names = lookups.stack_sets()
    stacks_before, stacks_now = (
        {name for key in side for name in names[key]} for side in (was, now)
    )
    package_of = {row.configuration: row.package for row in (*gone, *came)}
    before = counts_in_scope(lookups, package_of, old)
    gone_specs, came_specs = _specs_of(gone), _specs_of(came)
    changed: dict[str, list[int]] = {change: [] for change in CHANGE_WORDS}
    for key in package_of:
        kept, added, removed = map(bool, _amount(key, before, gone_specs, came_specs))
        changed[CHANGES[kept, added, removed]].append(key)
    removed_specs, added_specs = ({row.spec for row in some} for some in (gone, came))
    left, arrived = (
        [row for row in rows if row.configuration in some]
        for rows, some in ((gone, {*changed["removed"]}), (came, {*changed["added"]}))
    )
    had = _versions(lookups, arrived, old, columns["target"])
    has = _versions(lookups, left, new, columns["target"])
    sides = ((arrived, had), (left, has))
    return Changes(
        old=":".join(each.text for each in old),
        new=":".join(each.text for each in new),
        gone=gone_specs,
        came=came_specs,
        before=before,
        package_of=package_of,
        packages=Delta(
            *(
                tuple({row.package for row in some} - {package for package, _ in known})
                for some, known in sides
            )
        ),
        configurations={change: tuple(some) for change, some in changed.items()},
        versions=Delta(
            *(tuple({(row.package, row.version) for row in some} - known) for some, known in sides)
        ),
        stacks=Delta(
            tuple(sorted(stacks_now - stacks_before)), tuple(sorted(stacks_before - stacks_now))
        ),
        specs=Amount(
            sum(was.values()) - len(removed_specs - added_specs),
            len(added_specs - removed_specs),
            len(removed_specs - added_specs),
        ),
    )


def named(lookups: Lookups, changes: Changes, most_explained: int | None = None) -> Diff:
    """Return the changes in words.

    Args:
        lookups: the small tables of the file.
        changes: what `compare` found in it.
        most_explained: of so many rebuilt hashes the causes are looked for; None for any number.
    """
    configurations = configurations_in_words(lookups, changes)
    return Diff(
        old=changes.old,
        new=changes.new,
        packages=packages_in_words(lookups, changes),
        versions=versions_in_words(lookups, changes),
        configurations=Delta(configurations["added"], configurations["removed"]),
        grown=configurations["grown"],
        shrunk=configurations["shrunk"],
        rebuilt=configurations["rebuilt"],
        stacks=changes.stacks,
        specs=changes.specs,
        causes=causes_in_words(lookups, changes, most_explained),
    )


def configurations_in_words(
    lookups: Lookups, changes: Changes
) -> dict[str, tuple[ChangedConfiguration, ...]]:
    """Return the configurations of each change: by package, the newest version first."""
    counted = configurations_by_id(lookups, sorted(changes.package_of))
    counted.sort(key=lambda each: (each.configuration.package, -each.position, each.id))
    change_of = {key: change for change, some in changes.configurations.items() for key in some}
    found: dict[str, list[ChangedConfiguration]] = {change: [] for change in CHANGE_WORDS}
    for each in counted:
        amount = changes.amount(each.id)
        found[change_of[each.id]].append(ChangedConfiguration(each.configuration, amount))
    return {change: tuple(some) for change, some in found.items()}


def packages_in_words(lookups: Lookups, changes: Changes) -> Delta[str]:
    """Return the names of the packages that only one side has."""
    words = lookups.words["package"]
    return Delta(*(tuple(sorted(words[key] for key in some)) for some in changes.packages))


def versions_in_words(lookups: Lookups, changes: Changes) -> Delta[tuple[str, str]]:
    """Return the versions that only one side has: by package, the oldest first."""
    lookups.learn({version for some in changes.versions for _, version in some}, set())
    packages, versions = lookups.words["package"], lookups.words["version"]

    def in_words(some: tuple[tuple[int, int], ...]) -> tuple[tuple[str, str], ...]:
        ordered = sorted(some, key=lambda each: (packages[each[0]], lookups.positions[each[1]]))
        return tuple((packages[package], versions[version]) for package, version in ordered)

    return Delta(*map(in_words, changes.versions))


def causes_in_words(
    lookups: Lookups, changes: Changes, most: int | None = None
) -> tuple[Cause, ...] | None:
    """Return why configurations were rebuilt; None where that are more than `most` hashes."""
    gone, came = (
        {key: side[key] for key in changes.configurations["rebuilt"]}
        for side in (changes.gone, changes.came)
    )
    return causes_of_rebuilds(lookups, gone, came, most)


class _Row(NamedTuple):
    spec: int
    configuration: int
    package: int
    version: int


def _only_in(
    conn: sqlite3.Connection,
    here: Mapping[str, int | None],
    there: Mapping[str, int | None],
    columns: Mapping[str, str | None],
) -> list[_Row]:
    """Return the specs that one side shows, and the other not with the same configuration."""
    others = {f"other_{name}": value for name, value in there.items()}
    return [*map(_Row._make, select(conn, ONLY_HERE, **here, **others, **columns))]


def _versions(
    lookups: Lookups, rows: Iterable[_Row], side: Conditions, target: str | None
) -> set[tuple[int, int]]:
    """Return the versions that a side has of the packages in these rows, with their package."""
    found = select_in(lookups.conn, VERSIONS, {row.package for row in rows}, target=target)
    known = {key: (package, version) for key, package, version in found}
    return {known[key] for key in counts_in_scope(lookups, known, side)}


def _amount(
    configuration: int,
    before: Mapping[int, int],
    gone: Mapping[int, Set[int]],
    came: Mapping[int, Set[int]],
) -> Amount:
    removed, added = (len(side.get(configuration, ())) for side in (gone, came))
    return Amount(before.get(configuration, 0) - removed, added, removed)


def _specs_of(rows: Iterable[_Row]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for row in rows:
        found.setdefault(row.configuration, set()).add(row.spec)
    return found


def _lists(change: Delta[T], value: Callable[[T], Any]) -> dict[str, list[Any]]:
    return {"added": [*map(value, change.added)], "removed": [*map(value, change.removed)]}


def _words(change: str, changed: ChangedConfiguration) -> dict[str, Any]:
    """Return a configuration for JSON; one number says all where one side lacks it."""
    specs = changed.specs
    only = {"specs": specs.added + specs.removed} if change in Delta._fields else specs._asdict()
    return changed.configuration._asdict() | only


def sentence(found: Diff | Changes) -> str:
    """Return the totals as one sentence."""
    if found.is_empty:
        return f"{found.new} has the same {found.specs.kept:,} specs as {found.old}."
    kept, added, removed = found.specs
    configurations = found.by_change if isinstance(found, Diff) else found.configurations
    grown, shrunk, rebuilt = (
        f"{len(configurations[change]):,} {change}" for change in ("grown", "shrunk", "rebuilt")
    )
    return (
        f"From {found.old} to {found.new}, {removed:,} specs were removed, {added:,} added and "
        f"{kept:,} kept; of the configurations in both, {grown}, {shrunk} and {rebuilt}."
    )
