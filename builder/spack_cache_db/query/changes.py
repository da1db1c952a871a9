"""Changes between two releases or stacks, and their reasons."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from spack_cache_db.errors import counted
from spack_cache_db.query.comparison import Cause, Numbering, causes_of_rebuilds
from spack_cache_db.query.conditions import Conditions, asked
from spack_cache_db.query.configurations import (
    IN_STACK,
    Counted,
    column_ids,
    configurations_by_id,
)
from spack_cache_db.query.database import Database, Lookups, opened, select, select_in
from spack_cache_db.query.names import UnknownNameError, read_spellings, scope_of
from spack_cache_db.records import Configuration
from spack_cache_db.row_forms import NotebookTable, Rows
from spack_cache_db.schema import CHANGE_WORDS, CHANGES
from spack_cache_db.spack.versions import version_key

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
SELECT releases.id, coalesce(added, 0), coalesce(removed, 0)
FROM releases
LEFT JOIN (
  SELECT release, sum(added) AS added, sum(removed) AS removed
  FROM configuration_history GROUP BY release) ON release = releases.id
WHERE releases.previous IS NOT NULL AND releases.id IN (SELECT value FROM json_each(:ids))
"""
_HASHES = "SELECT id, hash FROM specs"


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
class Diff(NotebookTable):
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

    @property
    def sentence(self) -> str:
        """The totals as one sentence."""
        return sentence(self)

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
class DatabaseDiff(NotebookTable):
    """The difference between two databases, release by release.

    Attributes:
        old: the path of the old database.
        new: the path of the new one.
        releases: the differences of the releases that both have, by name.
        names: the releases that only one database has.
    """

    old: str
    new: str
    releases: Mapping[str, Diff]
    names: Delta[str]

    @property
    def is_empty(self) -> bool:
        """Whether both have the same releases, with the same binaries in the same stacks."""
        return not any(self.names) and all(each.is_empty for each in self.releases.values())

    def as_dict(self) -> dict[str, Any]:
        """Return what `diff --databases --json` prints."""
        releases = [{"release": name, **found.as_dict()} for name, found in self.releases.items()]
        return {"old": self.old, "new": self.new, "releases": releases} | {
            f"releases_{change}": [*names] for change, names in self.names._asdict().items()
        }

    @property
    def rows(self) -> Rows:
        """The rows of all releases, each with its release."""
        records = (
            {"release": name, **record}
            for name, found in self.releases.items()
            for record in found.rows.records
        )
        return Rows(("release", "change", *Configuration._fields, *Amount._fields), records)


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


def diff_databases(
    old: Database, new: Database, *, release: str | None = None, **narrowing: str | None
) -> DatabaseDiff:
    """Compare each release of two databases, or one release; `narrowing` is that of `diff`.

    A database without the stack, package or target has no such binary.

    Raises:
        UnknownNameError: neither database has the release, stack, package or target.
        DatabaseError: a file is not one of this builder.
    """
    with opened(old) as before, opened(new) as after:
        hashes = {dag_hash: key for key, dag_hash in select(after.conn, _HASHES)}
        numbers = {key: hashes.get(name, -key) for key, name in select(before.conn, _HASHES)}
        numbering = Numbering(after, before, numbers)
        sides = before, after
        names = [[each.name for each in side.releases.values()] for side in sides]
        if release is not None:
            found = {read_spellings(side).canonical("release", release) for side in sides}
            names = [[name for name in side if name in found] for side in names]
            if not any(names):
                scope_of(after, release)
        scopes = [_scope_if_known(side, narrowing) for side in sides]
        if scopes == [None, None]:
            scope_of(after, **narrowing)
        paths = str(getattr(old, "path", old)), str(getattr(new, "path", new))
        both = {
            name: _compared(numbering, name, scopes, [f"{name} of {path}" for path in paths])
            for name in names[1]
            if name in names[0]
        }
        return DatabaseDiff(paths[0], paths[1], both, _delta({*names[0]}, {*names[1]}))


def _scope_if_known(lookups: Lookups, names: Mapping[str, str | None]) -> Conditions | None:
    """Return what narrows a side; None if the database does not know the names."""
    try:
        return scope_of(lookups, **names)
    except UnknownNameError:
        return None


def _compared(
    numbering: Numbering,
    release: str,
    scopes: Sequence[Conditions | None],
    texts: Sequence[str],
) -> Diff:
    """Return the difference of one release of two databases."""
    listed, known = list[_Listed](), list[list[Counted]]()
    for lookups, scope in zip((numbering.old, numbering.new), scopes, strict=True):
        assert lookups is not None
        side = {} if scope is None else _listed(lookups, scope_of(lookups, release), scope)
        listed.append(side)
        known.append(configurations_by_id(lookups, sorted({key for key, _ in side.values()})))
    ids = {each.configuration: each.id for each in known[1]}
    keys = {each.id: ids.get(each.configuration, -each.id) for each in known[0]}
    before = {
        numbering.specs[spec]: (keys[key], stacks) for spec, (key, stacks) in listed[0].items()
    }
    return named(numbering, _changes(numbering, texts, before, listed[1]))


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
    listed = (_listed(lookups, side, narrowing) for side in (old, new))
    texts = [":".join(each.text for each in side) for side in (old, new)]
    return _changes(Numbering(lookups), texts, *listed)


def _changes(
    numbering: Numbering, texts: Sequence[str], before: _Listed, after: _Listed
) -> Changes:
    """Return what changed from some specs to others."""
    gone, came = _by_configuration(before, after), _by_configuration(after, before)
    sides = before, after
    counts = [Counter(configuration for configuration, _ in side.values()) for side in sides]
    names = _versions(numbering, counts[0].keys() | counts[1].keys())
    versions = [{names[key] for key in side} for side in counts]
    packages = [{package for package, _ in side} for side in versions]
    stacks = [{*chain.from_iterable({each for _, each in side.values()})} for side in sides]
    added, removed = (sum(map(len, side.values())) for side in (came, gone))
    return Changes(
        old=texts[0],
        new=texts[1],
        gone=gone,
        came=came,
        amounts={
            key: Amount(counts[0][key] - lost, len(came.get(key, ())), lost)
            for key in sorted(gone.keys() | came.keys())
            for lost in (len(gone.get(key, ())),)
        },
        packages=_delta(*packages),
        # By package, the oldest first.
        versions=_delta(*versions, order=lambda each: (each[0], version_key(each[1]))),
        stacks=_delta(*stacks),
        specs=Amount(len(before) - removed, added, removed),
    )


_Listed = Mapping[int, tuple[int, tuple[str, ...]]]
"""Configuration and stacks of each spec."""


def _versions(numbering: Numbering, keys: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return the package and the version of configurations."""
    found = {}
    for lookups, sign, ids in numbering.parts(keys):
        package, version = (
            lookups.column("configurations", name) for name in ("package", "version")
        )
        lookups.learn({version[key] for key in ids}, set())
        packages, versions = lookups.words["package"], lookups.words["version"]
        for key in ids:
            found[sign * key] = packages[package[key]], versions[version[key]]
    return found


def _listed(lookups: Lookups, side: Conditions, narrowing: Conditions) -> _Listed:
    """Return the specs of a side."""
    values: dict[str, Any] = {"package": None, "target": None}
    for column, ids in column_ids(lookups, narrowing).items():
        values[column] = json.dumps([*ids])
    values |= {kind: asked((*side, *narrowing), kind) for kind in ("release", "stack")}
    sets = lookups.stack_sets()
    rows = select(lookups.conn, LISTED, **values)
    return {spec: (key, sets[stacks]) for spec, key, stacks in rows}


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


def named(source: Lookups | Numbering, changes: Changes, most_explained: int | None = None) -> Diff:
    """Return the changes in words."""
    configurations = configurations_in_words(source, changes)
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
        causes=causes_in_words(source, changes, most_explained),
    )


def configurations_in_words(
    source: Lookups | Numbering, changes: Changes
) -> dict[str, tuple[ChangedConfiguration, ...]]:
    """Return the configurations of each change: by package, the newest version first."""
    numbering = source if isinstance(source, Numbering) else Numbering(source)
    found = [
        each._replace(id=sign * each.id)
        for lookups, sign, ids in numbering.parts(sorted(changes.amounts))
        for each in configurations_by_id(lookups, ids)
    ]
    found.sort(key=lambda each: each.configuration)
    found.sort(key=lambda each: version_key(each.configuration.version), reverse=True)
    found.sort(key=lambda each: each.configuration.package)
    changed = {
        each.id: ChangedConfiguration(each.configuration, changes.amounts[each.id])
        for each in found
    }
    members = {change: {*keys} for change, keys in changes.by_change.items()}
    return {
        change: tuple(each for key, each in changed.items() if key in keys)
        for change, keys in members.items()
    }


def causes_in_words(
    source: Lookups | Numbering, changes: Changes, most: int | None = None
) -> tuple[Cause, ...] | None:
    """Return why configurations were rebuilt; None where that are more than `most` hashes."""
    rebuilt = changes.by_change["rebuilt"]
    gone, came = ({key: side[key] for key in rebuilt} for side in (changes.gone, changes.came))
    numbering = source if isinstance(source, Numbering) else Numbering(source)
    return causes_of_rebuilds(numbering, gone, came, most)


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
        return f"{found.new} has the same {found.specs.kept:,} binaries as {found.old}."
    kept, added, removed = found.specs
    by_change = found.by_change
    grown, shrunk, rebuilt = (
        f"{len(by_change[change]):,} {change}" for change in ("grown", "shrunk", "rebuilt")
    )
    return (
        f"From {found.old} to {found.new}, {counted(removed, 'binary', 'binaries')} "
        f"{'was' if removed == 1 else 'were'} removed, {added:,} added and "
        f"{kept:,} kept; of the configurations in both, {grown}, {shrunk} and {rebuilt}."
    )
