"""Changes between the same releases of two databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.diff import (
    Amount,
    Delta,
    Diff,
    changes_of,
    delta_of,
    listed_in,
)
from spack_cache_db.query.answers.rebuilds import Numbering
from spack_cache_db.query.conditions.conditions import Conditions
from spack_cache_db.query.names.scope import Scope, UnknownNameError, named_conditions
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.open.lookups import opened
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
        return not any(self.names) and all(
            diff.is_empty for diff in self.releases.values()
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `diff --databases --json` prints."""
        releases = [
            {"release": name, **difference.as_dict()}
            for name, difference in self.releases.items()
        ]
        return {"old": self.old, "new": self.new, "releases": releases} | {
            f"releases_{change}": [*names]
            for change, names in self.names._asdict().items()
        }

    @property
    def rows(self) -> Rows:
        """The rows of all releases, each with its release."""
        records = (
            {"release": name, **record}
            for name, difference in self.releases.items()
            for record in difference.rows.records
        )
        return Rows(
            ("release", "change", *Configuration._fields, *Amount._fields), records
        )


def diff_databases(
    old: Path, new: Path, *, release: str | None = None, **narrowing: str | None
) -> DatabaseDiff:
    """Compare each release of two databases, or one release; `narrowing` is as for
    `diff`.

    A database that does not have the stack, package or target counts as one without
    binaries; an `UnknownNameError` is raised if neither has it.
    """
    with opened(old) as before, opened(new) as after:
        hashes = {dag_hash: key for key, dag_hash in select(after.conn, _HASHES)}
        numbers = {
            key: hashes.get(name, -key) for key, name in select(before.conn, _HASHES)
        }
        numbering = Numbering(after, before, numbers)
        sides = before, after
        names = [[row.name for row in side.releases.values()] for side in sides]
        if release is not None:
            spelled = {
                read_spellings(side).canonical("release", release) for side in sides
            }
            names = [[name for name in side if name in spelled] for side in names]
            if not any(names):
                # The release is unknown in both: raise the error of the newer one.
                Scope(release=release).conditions(after)
        scopes, unknown = list[Conditions | None](), None
        for side in sides:
            try:
                scopes.append(named_conditions(side, **narrowing))
            except UnknownNameError as error:
                scopes.append(None)
                unknown = error
        if unknown and scopes == [None, None]:
            raise unknown
        releases = {}
        for name in names[1]:
            if name in names[0]:
                texts = [f"{name} of {path}" for path in (old, new)]
                releases[name] = _compared(numbering, name, scopes, texts)
        return DatabaseDiff(
            str(old), str(new), releases, delta_of({*names[0]}, {*names[1]})
        )


def _compared(
    numbering: Numbering,
    release: str,
    scopes: Sequence[Conditions | None],
    texts: Sequence[str],
) -> Diff:
    """Return the difference of one release of two databases."""
    listings, configurations = [], []
    for lookups, scope in zip((numbering.old, numbering.new), scopes, strict=True):
        assert lookups is not None
        side: Mapping[int, tuple[int, tuple[str, ...]]] = {}
        if scope is not None:
            in_release = Scope(release=release).conditions(lookups)
            side = listed_in(lookups, in_release, scope)
        listings.append(side)
        ids = sorted({key for key, _ in side.values()})
        configurations.append(configurations_by_id(lookups, ids))
    ids_of_new = {row.configuration: row.id for row in configurations[1]}
    keys = {
        row.id: ids_of_new.get(row.configuration, -row.id) for row in configurations[0]
    }
    before = {
        numbering.specs[spec]: (keys[key], stacks)
        for spec, (key, stacks) in listings[0].items()
    }
    return changes_of(numbering, texts, before, listings[1]).in_words()
