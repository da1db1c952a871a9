"""Changes between two releases or stacks, and their reasons."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from spack_cache_db.query.comparison import Cause, causes_of_rebuilds
from spack_cache_db.query.conditions import Conditions, asked
from spack_cache_db.query.configurations import IN_STACK, column_ids, configurations_by_id
from spack_cache_db.query.database import Database, Lookups, opened, select, select_in
from spack_cache_db.query.names import UnknownNameError, read_spellings, scope_of
from spack_cache_db.records import Configuration
from spack_cache_db.row_forms import Rows
from spack_cache_db.schema import CHANGE_WORDS, CHANGES

T = TypeVar("T")

LISTED = f"""
SELECT here.spec, specs.configuration, here.stacks
FROM listings AS here
JOIN specs ON specs.id = here.spec
JOIN configurations ON configurations.id = specs.configuration
WHERE here.release = :release AND {IN_STACK.format("here")}
  AND (:package IS NULL OR configurations.package IN (SELECT value FROM json_each(:package)))
  AND (:target IS NULL OR configurations.target IN (SELECT value FROM json_each(:target)))
"""
_AMOUNTS = """
SELECT releases.id, coalesce(added, 0),
  before.spec_count + coalesce(added, 0) - releases.spec_count
FROM releases
JOIN releases AS before ON before.id = releases.previous
LEFT JOIN (SELECT release, sum(added) AS added FROM configuration_releases GROUP BY release)
  ON release = releases.id
WHERE releases.id IN (SELECT value FROM json_each(:ids))
"""


class Delta(NamedTuple, Generic[T]):
    """Members that only the new release has, and members that only the old one has; sorted."""

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
        """A row for each changed configuration, as `diff --csv` prints it."""
        records = (
            {"change": change, **each.configuration._asdict(), **each.specs._asdict()}
            for change, configurations in self.by_change.items()
            for each in configurations
        )
        return Rows(("change", *Configuration._fields, *Amount._fields), records)


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes from one side to the other, by ids; `named` returns them as a `Diff`.

    Attributes:
        old: the old side in words.
        new: the new side.
        gone: the specs that only the old side has, by configuration.
        came: the specs that only the new side has, by configuration.
        amounts: the number of specs of each changed configuration.
        packages: packages that only one side has.
        versions: pairs of a package and a version.
        stacks: the names of stacks.
        specs: the number of all specs.
    """

    old: str
    new: str
    gone: Mapping[int, Set[int]]
    came: Mapping[int, Set[int]]
    amounts: Mapping[int, Amount]
    packages: Delta[str]
    versions: Delta[tuple[str, str]]
    stacks: Delta[str]
    specs: Amount

    @property
    def is_empty(self) -> bool:
        """True if both sides have the same specs in the same stacks."""
        return not (self.amounts or self.stacks.added or self.stacks.removed)

    @property
    def by_change(self) -> dict[str, list[int]]:
        """The changed configurations, by the word for their change (`schema.CHANGE_WORDS`)."""
        found: dict[str, list[int]] = {change: [] for change in CHANGE_WORDS}
        for key, (kept, added, removed) in self.amounts.items():
            found[CHANGES[kept > 0, added > 0, removed > 0]].append(key)
        return found


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
        ArgumentError: a path or limit has a wrong type.
        UnknownNameError: the file has no such release, stack, package or target.
        DatabaseError: the file is not one of this builder.
    """
    with opened(db) as lookups:
        before, after = (side_of(lookups, name, stack) for name in (old, new))
        narrowing = scope_of(lookups, host=host, package=package, target=target)
        return named(lookups, compare(lookups, before, after, narrowing))


def amounts_of_releases(
    conn: sqlite3.Connection, releases: Sequence[int]
) -> dict[int, tuple[int, int]]:
    """Return how many binaries each release added to the one before it, and removed."""
    rows = select_in(conn, _AMOUNTS, releases)
    return {release: (added, removed) for release, added, removed in rows}


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
    """Return what changed from one side to the other."""
    before, after = (_listed(lookups, side, narrowing) for side in (old, new))
    gone, came = _by_configuration(before, after), _by_configuration(after, before)
    sides, sets = (before, after), lookups.stack_sets()
    counts = [Counter(configuration for configuration, _ in side.values()) for side in sides]
    columns = [lookups.column("configurations", name) for name in ("package", "version")]
    versions = [{tuple(column[key] for column in columns) for key in side} for side in counts]
    words, names = lookups.words["package"], lookups.words["version"]
    lookups.learn({version for _, version in versions[0] ^ versions[1]}, set())
    # By package, the oldest first.
    changed = _delta(*versions, order=lambda each: (words[each[0]], lookups.positions[each[1]]))
    packages = [{words[package] for package, _ in side} for side in versions]
    stacks = [
        {name for key in {key for _, key in side.values()} for name in sets[key]} for side in sides
    ]
    added, removed = (sum(map(len, side.values())) for side in (came, gone))
    return Changes(
        old=":".join(each.text for each in old),
        new=":".join(each.text for each in new),
        gone=gone,
        came=came,
        amounts={
            key: Amount(counts[0][key] - lost, len(came.get(key, ())), lost)
            for key in sorted(gone.keys() | came.keys())
            for lost in (len(gone.get(key, ())),)
        },
        packages=_delta(*packages),
        versions=Delta(*(tuple((words[x], names[y]) for x, y in side) for side in changed)),
        stacks=_delta(*stacks),
        specs=Amount(len(before) - removed, added, removed),
    )


_Listed = Mapping[int, tuple[int, int]]
"""Configuration and set of stacks of each spec."""


def _listed(lookups: Lookups, side: Conditions, narrowing: Conditions) -> _Listed:
    """Return the specs of a side."""
    values: dict[str, Any] = {"package": None, "target": None}
    for column, ids in column_ids(lookups, narrowing).items():
        values[column] = json.dumps([*ids])
    values |= {kind: asked(side, kind) for kind in ("release", "stack")}
    return {spec: (key, stacks) for spec, key, stacks in select(lookups.conn, LISTED, **values)}


def _by_configuration(here: _Listed, there: _Listed) -> dict[int, set[int]]:
    """Return the specs that only one side has, by their configurations."""
    found: dict[int, set[int]] = {}
    for spec in here.keys() - there.keys():
        found.setdefault(here[spec][0], set()).add(spec)
    return found


def _delta(
    old: Set[Any], new: Set[Any], *, order: Callable[[Any], Any] | None = None
) -> Delta[Any]:
    return Delta(tuple(sorted(new - old, key=order)), tuple(sorted(old - new, key=order)))


def named(lookups: Lookups, changes: Changes, most_explained: int | None = None) -> Diff:
    """Return the changes in words."""
    configurations = configurations_in_words(lookups, changes)
    return Diff(
        old=changes.old,
        new=changes.new,
        packages=changes.packages,
        versions=changes.versions,
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
    counted = configurations_by_id(lookups, sorted(changes.amounts))
    counted.sort(key=lambda each: (each.configuration.package, -each.position, each.id))
    changed = {
        each.id: ChangedConfiguration(each.configuration, changes.amounts[each.id])
        for each in counted
    }
    members = {change: {*keys} for change, keys in changes.by_change.items()}
    return {
        change: tuple(each for key, each in changed.items() if key in keys)
        for change, keys in members.items()
    }


def causes_in_words(
    lookups: Lookups, changes: Changes, most: int | None = None
) -> tuple[Cause, ...] | None:
    """Return why configurations were rebuilt; None where that are more than `most` hashes."""
    rebuilt = changes.by_change["rebuilt"]
    gone, came = ({key: side[key] for key in rebuilt} for side in (changes.gone, changes.came))
    return causes_of_rebuilds(lookups, gone, came, most)


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
    by_change = found.by_change
    grown, shrunk, rebuilt = (
        f"{len(by_change[change]):,} {change}" for change in ("grown", "shrunk", "rebuilt")
    )
    return (
        f"From {found.old} to {found.new}, {removed:,} specs were removed, {added:,} added and "
        f"{kept:,} kept; of the configurations in both, {grown}, {shrunk} and {rebuilt}."
    )
