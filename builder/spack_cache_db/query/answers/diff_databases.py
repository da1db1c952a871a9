"""Changes between the same releases of two databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.changes import changes_of
from spack_cache_db.query.answers.diff_result import Amount, Delta, Diff, delta_of
from spack_cache_db.query.answers.diff_sides import Side, listed_in
from spack_cache_db.query.answers.rebuilds import Numbering
from spack_cache_db.query.conditions.conditions import Conditions
from spack_cache_db.query.names.scope import Scope, UnknownNameError, named_conditions
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.open.lookups import Lookups, opened
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.rows import Rows
from spack_cache_db.query.stored.configurations import configurations_by_id

_HASHES = "SELECT id, hash FROM specs"


@dataclass(frozen=True, slots=True)
class DatabaseDiff:
    """The difference between two databases, given their paths.

    Attributes:
        releases: the differences of the releases in both databases, by name.
        names: the names of the releases in one database only.
    """

    old: str
    new: str
    releases: Mapping[str, Diff]
    names: Delta[str]

    @property
    def is_empty(self) -> bool:
        """Whether both have the same releases, with the same binaries in the same
        stacks.
        """
        if any(self.names):
            return False
        return all(release_diff.is_empty for release_diff in self.releases.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `diff --databases --json` prints."""
        releases = []
        for name, release_diff in self.releases.items():
            releases.append({"release": name, **release_diff.as_dict()})
        return {
            "old": self.old,
            "new": self.new,
            "releases": releases,
            "releases_added": list(self.names.added),
            "releases_removed": list(self.names.removed),
        }

    @property
    def rows(self) -> Rows:
        """The rows of all releases, each with its release."""
        records = []
        for name, release_diff in self.releases.items():
            for record in release_diff.rows.records:
                records.append({"release": name, **record})
        columns = ("release", "change", *Configuration._fields, *Amount._fields)
        return Rows(columns, records)


def diff_databases(
    old: Path, new: Path, *, release: str | None = None, **narrowing: str | None
) -> DatabaseDiff:
    """Compare each release of two databases, or one release; `narrowing` is as for
    `diff`.

    A database that does not have the stack, package or target counts as one without
    binaries; an `UnknownNameError` is raised if neither has it.
    """
    with opened(old) as before, opened(new) as after:
        old_names, new_names = _release_names((before, after), release)
        scopes = _scopes((before, after), narrowing)
        numbering = _numbering(before, after)
        releases = {}
        for name in new_names:
            if name in old_names:
                sides = [f"{name} of {path}" for path in (old, new)]
                releases[name] = _compared(numbering, name, scopes, sides)
        names = delta_of(set(old_names), set(new_names))
        return DatabaseDiff(str(old), str(new), releases, names)


def _release_names(
    databases: Sequence[Lookups], release: str | None
) -> list[list[str]]:
    """Return the names of the releases of each database, or only of one release."""
    names = []
    for lookups in databases:
        names.append([row.name for row in lookups.releases.values()])
    if release is None:
        return names
    # The databases may spell it differently.
    spelled = set()
    for lookups in databases:
        spelled.add(read_spellings(lookups).canonical("release", release))
    named = []
    for side in names:
        named.append([name for name in side if name in spelled])
    if not any(named):
        # The release is unknown in both: raise the error of the newer one.
        Scope(release=release).conditions(databases[1])
    return named


def _scopes(
    databases: Sequence[Lookups], narrowing: Mapping[str, str | None]
) -> list[Conditions | None]:
    """Return the conditions for each database; None for one that lacks a name.

    Raises:
        UnknownNameError: neither has it.
    """
    scopes: list[Conditions | None] = []
    unknown = None
    for lookups in databases:
        try:
            scopes.append(named_conditions(lookups, **narrowing))
        except UnknownNameError as error:
            scopes.append(None)
            unknown = error
    if unknown is not None and scopes == [None, None]:
        raise unknown
    return scopes


def _numbering(before: Lookups, after: Lookups) -> Numbering:
    """Return the numbers of the old database's specs: by hash, those of the new one."""
    new_ids = {dag_hash: key for key, dag_hash in select(after.conn, _HASHES)}
    numbers = {}
    for key, dag_hash in select(before.conn, _HASHES):
        numbers[key] = new_ids.get(dag_hash, -key)
    return Numbering(after, before, numbers)


def _compared(
    numbering: Numbering,
    release: str,
    scopes: Sequence[Conditions | None],
    sides: Sequence[str],
) -> Diff:
    """Return the difference of one release of two databases."""
    assert numbering.old is not None
    listings = []
    configurations = []
    for lookups, scope in zip((numbering.old, numbering.new), scopes, strict=True):
        listed = Side({}, {}, {})
        if scope is not None:
            in_release = Scope(release=release).conditions(lookups)
            listed = listed_in(lookups, in_release, scope)
        listings.append(listed)
        ids = sorted(set(listed.configurations(listed.stack_sets)))
        configurations.append(configurations_by_id(lookups, ids))
    before, after = listings
    old_configurations, new_configurations = configurations

    # Number the old database's specs and configurations as in the new one.
    new_ids = {row.configuration: row.id for row in new_configurations}
    numbers = {}
    for row in old_configurations:
        numbers[row.id] = new_ids.get(row.configuration, -row.id)
    stack_sets = {}
    configuration_of = {}
    for spec, stack_set in before.stack_sets.items():
        number = numbering.specs[spec]
        stack_sets[number] = stack_set
        configuration_of[number] = numbers[before.configuration_of[spec]]
    numbered = Side(stack_sets, configuration_of, before.stack_names)
    return changes_of(numbering, sides, numbered, after).in_words()
