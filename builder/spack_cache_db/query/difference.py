"""What changed between two releases, or between two stacks: the Python side of `diff`."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from spack_cache_db.arguments import checked_text, checked_texts
from spack_cache_db.query.answers import UnknownNameError, hint, scope_of
from spack_cache_db.query.catalogue import IN_STACK, configurations_by_id
from spack_cache_db.query.conditions import Condition, Conditions, Word, asked
from spack_cache_db.query.connection import select
from spack_cache_db.query.lookups import Database, Lookups, Release, Stack, opened
from spack_cache_db.query.rebuilds import Cause, causes_of_rebuilds
from spack_cache_db.query.selection import column_ids
from spack_cache_db.records import Configuration

T = TypeVar("T")

CONTENT = f"""
SELECT shown.spec, shown.configuration, shown.stacks, configurations.package, configurations.version
FROM release_specs AS shown
JOIN configurations ON configurations.id = shown.configuration
WHERE shown.release = :release AND {IN_STACK.format("shown")}
  AND (:package IS NULL OR configurations.package IN (SELECT value FROM json_each(:package)))
  AND (:target IS NULL OR configurations.target IN (SELECT value FROM json_each(:target)))
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
        specs: its hashes, counted. An added configuration has only added ones, a removed one only
            removed ones; a rebuilt one is in both releases.
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
        rebuilt: configurations that both have, with other hashes.
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
    rebuilt: tuple[ChangedConfiguration, ...]
    stacks: Delta[str]
    specs: Amount
    causes: tuple[Cause, ...] | None

    @property
    def is_empty(self) -> bool:
        """Whether both have the same hashes with the same configurations, in the same stacks."""
        changed = (*self.packages, *self.versions, *self.configurations, *self.stacks, self.rebuilt)
        return not any(changed) and not self.specs.added and not self.specs.removed

    def as_dict(self) -> dict[str, Any]:
        """Return what `diff --json` prints."""
        return {
            "old": self.old,
            "new": self.new,
            "packages": _lists(self.packages, str),
            "versions": _lists(self.versions, list),
            "configurations": {
                **_lists(self.configurations, _only),
                "rebuilt": [_rebuilt(each) for each in self.rebuilt],
            },
            "stacks": _lists(self.stacks, str),
            "specs": self.specs._asdict(),
            "causes": None if self.causes is None else [each._asdict() for each in self.causes],
        }


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a release, or what one stack has in it."""

    release: Release
    stack: Stack | None


class Content(NamedTuple):
    """What a side has, by ids.

    Attributes:
        specs: pairs of a spec and the configuration that the release shows of it.
        versions: the package and the version of each configuration.
        stacks: the sets of stacks of its listings.
    """

    specs: set[tuple[int, int]]
    versions: dict[int, tuple[int, int]]
    stacks: set[int]


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
    with opened(db) as (conn, lookups):
        before, after = (side_of(lookups, name, stack) for name in names)
        narrowing = narrowing_of(lookups, package, target, host)
        return compare(conn, lookups, before, after, narrowing)


def side_of(lookups: Lookups, text: str, stack: str | None = None) -> Side:
    """Return the side that a text names: a release, or a release and a stack (`develop:e4s`).

    Raises:
        UnknownNameError: the file has no such release or stack, or two stacks are named.
    """
    release, colon, named = text.rpartition(":")
    if not colon or lookups.release(text):
        release, named = text, ""
    if named and stack:
        raise UnknownNameError(f"{text!r} names a stack, and so does {stack!r}; give one of them")
    scope = scope_of(lookups, release, named or stack)
    place, found = asked(scope, "release"), asked(scope, "stack")
    return Side(lookups.releases[place], None if found is None else lookups.stacks[found])


def narrowing_of(
    lookups: Lookups, package: str | None, target: str | None, host: str | None
) -> Conditions:
    """Return the conditions on what is compared, by names.

    Raises:
        UnknownNameError: the file has no such package or target, archspec no such host.
    """
    conditions = []
    for kind, name in (("package", package), ("target", target)):
        known = [*lookups.words[kind].values()]
        if name is not None and name not in known:
            close = hint(name, known, f"see {kind}s in the file")
            raise UnknownNameError(f"no {kind} is called {name!r}; {close}")
        if name is not None:
            conditions.append(Condition(kind, name, Word(name)))
    return (*conditions, *scope_of(lookups, host=host))


def compare(
    conn: sqlite3.Connection,
    lookups: Lookups,
    old: Side,
    new: Side,
    narrowing: Conditions,
    most_explained: int | None = None,
) -> Diff:
    """Return what changed from one side to the other.

    Args:
        most_explained: of so many rebuilt hashes the causes are looked for; None for any number.
    """
    was, now = (_content(conn, lookups, side, narrowing) for side in (old, new))
    gone, came = was.specs - now.specs, now.specs - was.specs
    hashes = [{spec for spec, _ in side.specs} for side in (was, now)]
    changed = _changed_configurations(conn, lookups, was, gone, came)
    here, there = was.versions.keys(), now.versions.keys()
    rebuilt = {key: each for key, each in changed.items() if key in here and key in there}
    versions = {*was.versions.values()}, {*now.versions.values()}
    stacks = [_stack_names(conn, lookups, side) for side in (was, now)]
    return Diff(
        old=_name(old),
        new=_name(new),
        packages=_change(
            *({lookups.words["package"][key] for key, _ in some} for some in versions)
        ),
        versions=_version_change(conn, lookups, *versions),
        configurations=Delta(
            tuple(each for key, each in changed.items() if key not in here),
            tuple(each for key, each in changed.items() if key not in there),
        ),
        rebuilt=tuple(rebuilt.values()),
        stacks=_change(*stacks),
        specs=_amount(*hashes),
        causes=causes_of_rebuilds(
            conn, lookups, _specs_of(rebuilt, gone), _specs_of(rebuilt, came), most_explained
        ),
    )


def _content(
    conn: sqlite3.Connection, lookups: Lookups, side: Side, narrowing: Conditions
) -> Content:
    ids = {
        column: json.dumps([*some]) for column, some in column_ids(conn, lookups, narrowing).items()
    }
    stack = None if side.stack is None else side.stack.id
    columns: dict[str, str | None] = {"package": None, "target": None, **ids}
    rows = select(conn, CONTENT, release=side.release.id, stack=stack, **columns)
    found = Content(set(), {}, set())
    for spec, configuration, stacks, package, version in rows:
        found.specs.add((spec, configuration))
        found.versions[configuration] = package, version
        found.stacks.add(stacks)
    return found


def _changed_configurations(
    conn: sqlite3.Connection,
    lookups: Lookups,
    was: Content,
    gone: Set[tuple[int, int]],
    came: Set[tuple[int, int]],
) -> dict[int, ChangedConfiguration]:
    """Return the configurations with other hashes, by id: by package, newest version first."""
    removed, added, before = (
        Counter(configuration for _, configuration in some) for some in (gone, came, was.specs)
    )
    counted = configurations_by_id(conn, lookups, sorted(removed.keys() | added.keys()))
    counted.sort(key=lambda each: (each.configuration.package, -each.position, each.id))
    return {
        each.id: ChangedConfiguration(
            each.configuration,
            Amount(before[each.id] - removed[each.id], added[each.id], removed[each.id]),
        )
        for each in counted
    }


def _version_change(
    conn: sqlite3.Connection,
    lookups: Lookups,
    was: set[tuple[int, int]],
    now: set[tuple[int, int]],
) -> Delta[tuple[str, str]]:
    lookups.learn(conn, {version for _, version in was ^ now}, set())
    packages, versions = lookups.words["package"], lookups.words["version"]

    def named(some: set[tuple[int, int]]) -> tuple[tuple[str, str], ...]:
        ordered = sorted(some, key=lambda each: (packages[each[0]], lookups.positions[each[1]]))
        return tuple((packages[package], versions[version]) for package, version in ordered)

    return Delta(named(now - was), named(was - now))


def _stack_names(conn: sqlite3.Connection, lookups: Lookups, side: Content) -> set[str]:
    sets = lookups.stack_sets(conn)
    return {name for key in side.stacks for name in sets[key]}


def _specs_of(configurations: Iterable[int], pairs: Set[tuple[int, int]]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {key: set() for key in configurations}
    for spec, configuration in pairs:
        if configuration in found:
            found[configuration].add(spec)
    return found


def _change(was: Set[str], now: Set[str]) -> Delta[str]:
    return Delta(tuple(sorted(now - was)), tuple(sorted(was - now)))


def _amount(was: Set[int], now: Set[int]) -> Amount:
    return Amount(len(was & now), len(now - was), len(was - now))


def _name(side: Side) -> str:
    return side.release.name if side.stack is None else f"{side.release.name}:{side.stack.name}"


def _lists(change: Delta[T], value: Callable[[T], Any]) -> dict[str, list[Any]]:
    return {"added": [*map(value, change.added)], "removed": [*map(value, change.removed)]}


def _only(each: ChangedConfiguration) -> dict[str, Any]:
    """Return a configuration that one side lacks."""
    return each.configuration._asdict() | {"specs": each.specs.added + each.specs.removed}


def _rebuilt(each: ChangedConfiguration) -> dict[str, Any]:
    return each.configuration._asdict() | each.specs._asdict()
