"""How many specs satisfy a query in each release: the Python side of `history`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from spack_cache_db.arguments import checked_text, checked_texts
from spack_cache_db.query.answers import csv_text, json_text
from spack_cache_db.query.catalogue import IN_STACK, runs_of, specs_beginning, specs_showing
from spack_cache_db.query.conditions import Conditions, asked, without
from spack_cache_db.query.connection import (
    IDS_AT_ONCE,
    Database,
    Lookups,
    json_pieces,
    opened,
    select,
)
from spack_cache_db.query.questions import question_of, scope_of
from spack_cache_db.query.selection import configuration_ids
from spack_cache_db.spack.parser import parse_query

_IN_STACK = IN_STACK.format("shown")
# Only (release, spec) is a key of listings, and the specs of a configuration lie side by side.
SHOWN = f"""
SELECT releases.id, shown.spec, shown.configuration
FROM json_each(:runs) AS run CROSS JOIN releases CROSS JOIN release_specs AS shown
  ON shown.release = releases.id
  AND shown.spec BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')
WHERE releases.id IN (SELECT value FROM json_each(:releases)) AND {_IN_STACK}
"""
# Not by way of the view release_specs, which takes half as long again for what other queries need.
ALL_SHOWN = f"""
SELECT shown.release, shown.spec, coalesce(shown.configuration, specs.configuration)
FROM listings AS shown JOIN specs ON specs.id = shown.spec
WHERE shown.release IN (SELECT value FROM json_each(:releases)) AND {_IN_STACK}
"""
_COLUMNS = ("release", "date", "specs", "configurations", "added", "removed")

Shown = dict[int, dict[int, int]]
"""By the ids of releases: the specs that satisfy a query there, each with its configuration."""


class HistoryRow(NamedTuple):
    """What one release has of a query's answer.

    Attributes:
        release: its name.
        date: the day of a snapshot, YYYY-MM-DD.
        specs: how many specs satisfy the query.
        configurations: how many configurations they have.
        added: how many of the specs the release before lacks; all, where there is none before it.
        removed: how many specs of the release before are no longer there.
        before: the release before: see `releases.releases_before`.
        churn: which part of the specs of the release before is no longer there; None where that
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
class History:
    """The answer to a query in every release.

    Attributes:
        query: the spec, as given.
        releases: a row for each release of the file, oldest first: snapshots by date, then
            releases by number, then branches.
    """

    query: str
    releases: tuple[HistoryRow, ...]

    @property
    def present(self) -> tuple[HistoryRow, ...]:
        """The releases that have a spec."""
        return tuple(each for each in self.releases if each.specs)

    @property
    def first_seen(self) -> str | None:
        """The day of the first snapshot that has a spec."""
        return min((each.date for each in self.present if each.date), default=None)

    @property
    def last_seen(self) -> str | None:
        """The day of the last snapshot that has one."""
        return max((each.date for each in self.present if each.date), default=None)


def history(
    db: Database,
    spec: str,
    *,
    stack: str | None = None,
    host: str | None = None,
) -> History:
    """Return how many specs of each release in a built file satisfy a spec, and what changed.

    Args:
        db: a file made by `build`, as text or `Path`, or a `Cache` or connection to one.
        spec: in Spack's syntax, such as `hdf5@1.14: +mpi`; `*` is any package.
        stack: only specs in this stack.
        host: only what runs on a machine of this CPU target, such as `zen3`.

    Raises:
        ArgumentError: an argument has a wrong type.
        QuerySyntaxError: the text is no spec; its text has a caret under the place.
        UnsupportedQuery: the file cannot answer the query; its text says why.
        UnknownNameError: the file has no such stack, archspec no such host.
        DatabaseError: the file is not one of this builder.
    """
    checked_texts(stack=stack, host=host)
    parsed = parse_query(checked_text("spec", spec))
    with opened(db) as (conn, lookups):
        scope = scope_of(lookups, stack=stack, host=host)
        conditions = question_of(conn, lookups, parsed, scope).conditions
        return history_of(lookups, spec, shown_specs(conn, lookups, conditions))


def history_of(lookups: Lookups, query: str, shown: Shown) -> History:
    """Return the history of what satisfies a query.

    Args:
        lookups: the small tables of the file.
        query: the spec, as it is called in the answer.
        shown: what satisfies it in each release.
    """
    rows = []
    for key, release in reversed(lookups.releases.items()):
        here, older = shown[key], lookups.before(release)
        was = shown[older.id] if older else {}
        kept = len(here.keys() & was.keys())
        row = HistoryRow(
            release.name,
            release.date,
            len(here),
            len({*here.values()}),
            len(here) - kept,
            len(was) - kept,
            older.name if older else None,
            1 - kept / len(was) if was else None,
        )
        rows.append(row)
    return History(query, tuple(rows))


def shown_specs(
    conn: sqlite3.Connection,
    lookups: Lookups,
    conditions: Conditions,
    releases: Iterable[int] | None = None,
) -> Shown:
    """Return what satisfies conditions in each release, by the configuration shown there.

    Args:
        conditions: a release among them is passed over.
        releases: the ids of the releases; None for all.
    """
    found: Shown = {each: {} for each in (lookups.releases if releases is None else releases)}
    places = {"stack": asked(conditions, "stack"), "releases": json.dumps([*found])}
    every = without(conditions, "release", "stack")
    if not every:
        for release, spec, configuration in select(conn, ALL_SHOWN, **places):
            found[release][spec] = configuration
        return found
    configurations = {*configuration_ids(conn, lookups, every, every=True)}
    specs: Set[int] = specs_showing(conn, configurations)
    if (prefix := asked(every, "hash")) is not None:
        specs &= specs_beginning(conn, prefix).keys()
    if (verdict := asked(every, "specs")) is not None:
        specs &= verdict.holds
    for runs in json_pieces(runs_of(sorted(specs)), IDS_AT_ONCE // 4):
        for release, spec, configuration in select(conn, SHOWN, runs=runs, **places):
            if configuration in configurations:
                found[release][spec] = configuration
    return found


def history_json(rows: Iterable[HistoryRow]) -> str:
    """Return a JSON array with one object for each release."""
    return json_text([each.as_dict() for each in rows])


def history_csv(rows: Iterable[HistoryRow]) -> str:
    """Return CSV, one line for each release."""
    return csv_text(_COLUMNS, (each.as_dict().values() for each in rows))
