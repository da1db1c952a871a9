"""How many binaries of each release satisfy a spec."""

from __future__ import annotations

import json
from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from spack_cache_db.arguments import checked
from spack_cache_db.query.conditions.conditions import (
    Conditions,
    condition_value,
    without,
)
from spack_cache_db.query.match.question import Question
from spack_cache_db.query.match.selection import configuration_ids
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Database, Lookups, opened
from spack_cache_db.query.open.sql import IDS_AT_ONCE, json_pieces, select
from spack_cache_db.query.rows import NotebookTable, Rows
from spack_cache_db.query.stored.binary import (
    IN_STACK,
    specs_beginning,
    specs_of_configurations,
)
from spack_cache_db.query.stored.presence import runs_of
from spack_cache_db.spack.parser import parse_query

# Only (release, spec) is a key of listings, and the specs of a configuration lie side
# by side.
SHOWN = f"""
SELECT releases.id, listings.spec_id, specs.configuration_id
FROM json_each(:runs) AS run CROSS JOIN releases CROSS JOIN listings
  ON listings.release_id = releases.id
  AND listings.spec_id BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')
JOIN specs ON specs.id = listings.spec_id
WHERE releases.id IN (SELECT value FROM json_each(:releases)) AND {IN_STACK.format("listings")}
"""
_COLUMNS = ("release", "date", "specs", "configurations", "added", "removed")
Shown = dict[int, dict[int, int]]
"""The specs of each release that satisfy a query, and the configuration of each; all by
id.
"""


class HistoryRow(NamedTuple):
    """The answer to a query in one release.

    Attributes:
        release: its name.
        date: the day of a snapshot, YYYY-MM-DD.
        specs: how many specs satisfy the query.
        configurations: how many configurations they have.
        added: how many of the specs the release before does not have; all if there is
            none before.
        removed: how many specs of the release before are no longer there.
        before: the release before: see `releases.releases_before`.
        churn: removed binaries as a share of those of the release before; None if it
            had none.
    """

    release: str
    date: str | None
    specs: int
    configurations: int
    added: int
    removed: int
    before: str | None
    churn: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return what `history --json` prints of a release."""
        return {name: getattr(self, name) for name in _COLUMNS}


@dataclass(frozen=True, slots=True)
class History(NotebookTable):
    """The answer to a query in every release.

    Attributes:
        query: the spec, as given.
        releases: a row for each release of the database, oldest first: snapshots by
            date, then releases by number, then branches.
        notes: how the query was read, and what the answer leaves out.
    """

    query: str
    releases: tuple[HistoryRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def present(self) -> tuple[HistoryRow, ...]:
        """The releases that have a spec."""
        return tuple(row for row in self.releases if row.specs)

    @property
    def rows(self) -> Rows:
        """The rows that `history --json` and `history --csv` print."""
        return Rows(_COLUMNS, self.as_dict())

    def as_dict(self) -> list[dict[str, Any]]:
        """Return the list that `history --json` prints."""
        return [row.as_dict() for row in self.releases]

    @property
    def first_seen(self) -> str | None:
        """The day of the first snapshot that has a spec."""
        return min((row.date for row in self.present if row.date), default=None)

    @property
    def last_seen(self) -> str | None:
        """The day of the last snapshot that has one."""
        return max((row.date for row in self.present if row.date), default=None)


@checked
def history(
    db: Database, spec: str, *, stack: str | None = None, host: str | None = None
) -> History:
    """Return how many specs of each release in a database satisfy a spec, and what
    changed.

    `stack` and `host` narrow the answer: see `Scope`.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        spec: in Spack's syntax, such as `hdf5@1.14: +mpi`; `*` is any package.

    Raises:
        ArgumentError: an argument has a wrong type.
        QuerySyntaxError: the text is not a spec; its text has a caret under the place.
        UnsupportedQuery: the database cannot answer the query; its text says why.
        UnknownNameError: the database has no such stack, archspec no such host.
        DatabaseError: the database was not made by this builder.
    """
    scope = Scope(stack=stack, host=host)
    parsed = parse_query(spec)
    with opened(db) as lookups:
        question = Question(lookups, parsed, scope.conditions(lookups))
        return replace(history_of(question, spec), notes=question.notes)


def history_of(question: Question, text: str) -> History:
    """Return the history of the specs that satisfy a question, given the text of its
    spec.
    """
    lookups = question.lookups
    specs_of_release = shown_specs(lookups, question.conditions)
    rows = []
    # Oldest first.
    for key, release in reversed(lookups.releases.items()):
        configurations_now = specs_of_release[key]
        older = lookups.before(release)
        configurations_before = specs_of_release[older.id] if older else {}
        now = len(configurations_now)
        before = len(configurations_before)
        common = len(configurations_now.keys() & configurations_before.keys())
        row = HistoryRow(
            release=release.name,
            date=release.date,
            specs=now,
            configurations=len(set(configurations_now.values())),
            added=now - common,
            removed=before - common,
            before=older.name if older else None,
            churn=1 - common / before if before else None,
        )
        rows.append(row)
    return History(text, tuple(rows))


def shown_specs(
    lookups: Lookups, conditions: Conditions, releases: Iterable[int] | None = None
) -> Shown:
    """Return the matching binaries of each release; release conditions are ignored."""
    keys = lookups.releases if releases is None else releases
    specs_of_release: Shown = {release: {} for release in keys}

    # The specs that satisfy the conditions in any release. Configurations without a
    # binary today are part of the history.
    everywhere = without(conditions, "release", "stack")
    configurations = configuration_ids(lookups, everywhere, every=True)
    specs: Set[int] = specs_of_configurations(lookups.conn, configurations)
    prefix = condition_value(everywhere, "hash")
    if prefix is not None:
        specs &= specs_beginning(lookups.conn, prefix).keys()
    verdict = condition_value(everywhere, "specs")
    if verdict is not None:
        specs &= verdict.matching

    # The releases that list them, in the stack if there is one.
    values = {
        "stack": condition_value(conditions, "stack"),
        "releases": json.dumps(list(specs_of_release)),
    }
    for runs in json_pieces(runs_of(sorted(specs)), IDS_AT_ONCE // 4):
        rows = select(lookups.conn, SHOWN, runs=runs, **values)
        for release, spec, configuration in rows:
            specs_of_release[release][spec] = configuration
    return specs_of_release
