"""The configurations that satisfy a spec, and how many binaries each release has of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from itertools import chain, islice
from typing import Any, NamedTuple

from spack_cache_db.arguments import checked
from spack_cache_db.errors import counted
from spack_cache_db.model import Configuration
from spack_cache_db.query import NotebookTable, Rows
from spack_cache_db.query.comparison import distinctions
from spack_cache_db.query.conditions import (
    OF_SPECS,
    Condition,
    Conditions,
    Question,
    Verdict,
    asked,
    only,
    without,
)
from spack_cache_db.query.configurations import (
    IN_STACK,
    FoundSpec,
    Presence,
    configurations_by_id,
    found_specs,
    joined,
    presence_of_configurations,
    runs_of,
    specs_beginning,
    specs_in_scope,
    specs_of_configurations,
)
from spack_cache_db.query.database import (
    IDS_AT_ONCE,
    Database,
    Lookups,
    OpenFile,
    json_pieces,
    opened,
    select,
)
from spack_cache_db.query.gone import gone_counts, gone_note
from spack_cache_db.query.graph import externals
from spack_cache_db.query.names import scope_of
from spack_cache_db.query.records import question_of
from spack_cache_db.query.selection import ResultSet, configuration_ids, counted_part, matching
from spack_cache_db.spack.legacy import parser_of
from spack_cache_db.spack.parser import parse_query

CONFIGURATIONS_AT_ONCE = 1_000
_INSTALLED = ("is_external", "prefix", "modules", "module_tree")
_PRESENCE = tuple(field.name for field in fields(Presence))
_WHERE = (*_PRESENCE, "is_gone", *_INSTALLED)
# Only (release, spec) is a key of listings, and the specs of a configuration lie side by side.
SHOWN = f"""
SELECT releases.id, shown.spec, shown.configuration
FROM json_each(:runs) AS run CROSS JOIN releases CROSS JOIN release_specs AS shown
  ON shown.release = releases.id
  AND shown.spec BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')
WHERE releases.id IN (SELECT value FROM json_each(:releases)) AND {IN_STACK.format("shown")}
"""
_COLUMNS = ("release", "date", "specs", "configurations", "added", "removed")
Shown = dict[int, dict[int, int]]
"""The specs of each release that satisfy a query, and the configuration of each; all by id."""


@dataclass(frozen=True, slots=True)
class Found:
    """A configuration that satisfies a query.

    Attributes:
        package: its package; `version` to `variants` are its other columns, in normal form.
        spec_count: the number of its specs that satisfy query, release and stack.
        releases: all releases that have the configuration: branches, then releases and snapshots
            from new to old.
        stacks: the stacks that have it in any release, sorted, without `root`.
        first_seen: the day of the first snapshot that has it.
        last_seen: the day of the last one. If the query asks for a hash or for dependencies, these
            four are those of the specs that satisfy it.
        is_gone: whether the mirror has lost all of these specs; only a snapshot that
            `build --snapshot` made has such specs.
        is_external: whether the system provides the first of its specs.
        prefix: the folder where an installation has that spec.
        modules: the modules that load that spec.
        module_tree: the folder of modules to use first, if several have a module of this name.
        specs: the specs that are counted, current ones first; None without `with_hashes`.
    """

    package: str
    version: str
    compiler: str
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    spec_count: int
    releases: tuple[str, ...]
    stacks: tuple[str, ...]
    first_seen: str | None
    last_seen: str | None
    is_gone: bool = False
    is_external: bool = False
    prefix: str | None = None
    modules: tuple[str, ...] = ()
    module_tree: str | None = None
    specs: tuple[FoundSpec, ...] | None = None

    @property
    def configuration(self) -> Configuration:
        """The seven fields of the configuration as one record."""
        return Configuration(*(getattr(self, name) for name in Configuration._fields))

    @property
    def hashes(self) -> tuple[str, ...] | None:
        """The hashes of the specs; None without `with_hashes`."""
        return None if self.specs is None else tuple(spec.hash for spec in self.specs)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `find --json` prints."""
        return self.configuration._asdict() | {"spec_count": self.spec_count} | _where(self)

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return the objects that `find --json --hashes` prints: one for each spec."""
        words = self.configuration._asdict()
        return [
            words | {"hash": spec.hash} | _where(spec) | {"differences": spec.differences}
            for spec in self.specs or ()
        ]


def _where(presence: Any, names: Iterable[str] = _WHERE) -> dict[str, Any]:
    """Return the fields of a presence, by their names."""
    return {name: getattr(presence, name) for name in names}


class FoundList(list[Found], NotebookTable):
    """The configurations that satisfy a query, which notebooks show as a table.

    Attributes:
        notes: how the query was read, and what the answer leaves out.
    """

    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> Rows:
        """The rows that `find --csv` prints."""
        return found_rows(self, hashes=False)

    def as_dict(self) -> list[dict[str, Any]]:
        """Return the list that `find --json` prints."""
        return [found.as_dict() for found in self]


@checked
def find(
    db: Database,
    query: str,
    *,
    release: str | None = None,
    stack: str | None = None,
    host: str | None = None,
    os: str | None = None,
    platform: str | None = None,
    spack: str | None = None,
    explicit: bool = False,
    limit: int | None = None,
    with_hashes: bool = False,
) -> FoundList:
    """Find the configurations in a database that satisfy a spec in Spack's syntax.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to one.
        query: such as `hdf5@1.14: +mpi target=zen3 %gcc@13`; `*` is any package.
        release: only specs that this release lists.
        stack: only specs in this stack; with `release`, in this stack of the release.
        host: only specs that run on a machine of this CPU target, such as `zen3`.
        os: only specs built for this operating system, such as `ubuntu24.04`.
        platform: only specs built for this platform, such as `linux`.
        spack: the version of Spack for which the query is written, such as `0.23`; None for 1.0
            and later.
        explicit: only specs that a user installed by name, without their dependencies.
        limit: the most records to return.
        with_hashes: also return each spec.

    Returns:
        Sorted by system and family of CPUs, Linux on x86_64 first, then by package; within a
        package, the version that Spack prefers comes first. Installed configurations come before
        all others.

    Raises:
        ArgumentError: an argument has a wrong type, or the limit is negative.
        QuerySyntaxError: the query is not a spec; its text has a caret under the place.
        UnsupportedQuery: the database cannot answer the query; its text says why.
        UnknownNameError: the database has no such release or stack, archspec no such host.
        UnknownSpackVersion: `spack` is not a version.
        DatabaseError: the database was not made by this builder.
    """
    parsed = parser_of(spack)(query)
    with opened(db) as lookups:
        names = {"release": release, "stack": stack, "host": host, "os": os, "platform": platform}
        question = question_of(lookups, parsed, scope_of(lookups, explicit, **names))
        results = matching(lookups, question.conditions)
        answer = FoundList(found_part(lookups, results, slice(limit), with_hashes=with_hashes))
        answer.notes = notes_on(lookups, question)
        if answer:
            answer.notes += gone_note(lookups, question.conditions)
        return answer


def found_part(
    lookups: Lookups, results: ResultSet, part: slice, *, with_hashes: bool
) -> list[Found]:
    """Return a slice of the configurations in `results`, with their releases and stacks."""
    configurations = counted_part(lookups, results, part)
    ids, of_specs = [row.id for row in configurations], bool(only(results.conditions, *OF_SPECS))
    specs: dict[int, tuple[FoundSpec, ...]] = {}
    release = asked(results.conditions, "release")
    if with_hashes or of_specs or lookups.trees(release):
        in_scope = specs_in_scope(lookups.conn, ids, results.conditions)
        groups = [in_scope[key] for key in ids]
        spec_ids = ([spec.id for spec in group] for group in groups)
        apart = distinctions(lookups, spec_ids) if with_hashes else {}
        every = found_specs(lookups, chain.from_iterable(groups), release, apart)
        specs = {key: tuple(islice(every, len(in_scope[key]))) for key in ids}
    if of_specs:
        presence = {key: joined(lookups, parts) for key, parts in specs.items()}
    else:
        presence = presence_of_configurations(lookups, ids)
    lost = gone_counts(lookups, ids, results.conditions)
    found = []
    for row in configurations:
        where, first = _where(presence[row.id], _PRESENCE), specs[row.id][0] if specs else None
        where |= _where(first, _INSTALLED) if first else {}
        where["is_gone"] = lost[row.id] == row.spec_count
        every_spec = specs[row.id] if with_hashes else None
        found.append(Found(*row.configuration, row.spec_count, **where, specs=every_spec))
    return found


def notes_on(lookups: Lookups, question: Question) -> tuple[str, ...]:
    """Return notes on an answer: how the query was read, and what the answer leaves out."""
    verdict = asked(question.conditions, "specs")
    if verdict is None or not verdict.unknown:
        return question.notes
    unknown = Verdict(verdict.unknown)
    conditions = (*without(question.conditions, "specs"), Condition("specs", "", unknown))
    count = sum((matching(lookups, conditions).counts or {}).values())
    if not count:
        return question.notes
    binaries = counted(count, "more binary", "more binaries")
    return (*question.notes, f"{binaries} may satisfy this, but this database lacks the data")


def found_rows(answer: Iterable[Found], *, hashes: bool) -> Rows:
    """Return what `find --json` and `find --csv` print: a row per configuration, or per spec."""
    if not hashes:
        columns = (*Configuration._fields, "spec_count", *_WHERE)
        return Rows(columns, [row.as_dict() for row in answer])
    columns = (*Configuration._fields, "hash", *_WHERE, "differences")
    return Rows(columns, [record for row in answer for record in row.as_dicts()])


@dataclass(frozen=True, slots=True)
class Binary(Presence):
    """A binary, and the releases and stacks that have it.

    Attributes:
        hash: its hash.
        configuration: package, version, compiler, os, platform, target and variants.
    """

    hash: str
    configuration: Configuration

    def as_dict(self) -> dict[str, Any]:
        """Return the binary as an object of JSON."""
        words = {"hash": self.hash, **self.configuration._asdict()}
        return words | _where(self, _PRESENCE)


@checked
def binaries(
    db: Database, *, release: str | None = None, stack: str | None = None
) -> Iterator[Binary]:
    """Return an iterator over all binaries in a database, in the order of `find`.

    They are read in pieces, between which other queries can run.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to one.
        release: only binaries that this release lists.
        stack: only binaries in this stack; with `release`, in this stack of the release.

    Raises:
        ArgumentError: an argument has a wrong type.
        UnknownNameError: the database has no such release or stack.
        DatabaseError: the database was not made by this builder.
    """
    with opened(db) as lookups:
        scope = scope_of(lookups, release=release, stack=stack)
        ids = configuration_ids(lookups, scope)
    return _read_binaries(db, ids, scope)


def _read_binaries(db: Database, ids: list[int], scope: Conditions) -> Iterator[Binary]:
    is_open = isinstance(db, OpenFile | sqlite3.Connection)
    context: AbstractContextManager[Database] = nullcontext(db) if is_open else OpenFile(str(db))
    with context as file:
        for start in range(0, len(ids), CONFIGURATIONS_AT_ONCE):
            with opened(file) as lookups:
                piece, provided = ids[start : start + CONFIGURATIONS_AT_ONCE], externals(lookups)
                in_scope = specs_in_scope(lookups.conn, piece, scope)
                rows = [
                    (row.configuration, spec)
                    for row in configurations_by_id(lookups, piece)
                    for spec in in_scope.get(row.id, ())
                    if spec.id not in provided
                ]
                specs = [*found_specs(lookups, (spec for _, spec in rows))]
            for (configuration, _), spec in zip(rows, specs, strict=True):
                where = _where(spec, _PRESENCE)
                yield Binary(**where, hash=spec.hash, configuration=configuration)


class HistoryRow(NamedTuple):
    """The answer to a query in one release.

    Attributes:
        release: its name.
        date: the day of a snapshot, YYYY-MM-DD.
        specs: how many specs satisfy the query.
        configurations: how many configurations they have.
        added: how many of the specs the release before does not have; all if there is none before.
        removed: how many specs of the release before are no longer there.
        before: the release before: see `releases.releases_before`.
        churn: removed binaries as a share of those of the release before; None if it had none.
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
        releases: a row for each release of the database, oldest first: snapshots by date, then
            releases by number, then branches.
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
    """Return how many specs of each release in a database satisfy a spec, and what changed.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to one.
        spec: in Spack's syntax, such as `hdf5@1.14: +mpi`; `*` is any package.
        stack: only specs in this stack.
        host: only specs that run on a machine of this CPU target, such as `zen3`.

    Raises:
        ArgumentError: an argument has a wrong type.
        QuerySyntaxError: the text is not a spec; its text has a caret under the place.
        UnsupportedQuery: the database cannot answer the query; its text says why.
        UnknownNameError: the database has no such stack, archspec no such host.
        DatabaseError: the database was not made by this builder.
    """
    parsed = parse_query(spec)
    with opened(db) as lookups:
        scope = scope_of(lookups, stack=stack, host=host)
        question = question_of(lookups, parsed, scope)
        answer = history_of(lookups, spec, shown_specs(lookups, question.conditions))
        return replace(answer, notes=notes_on(lookups, question))


def history_of(lookups: Lookups, query: str, specs: Shown) -> History:
    """Return the history of the specs that satisfy a query."""
    rows = []
    for key, release in reversed(lookups.releases.items()):
        now, older = specs[key], lookups.before(release)
        was = specs[older.id] if older else {}
        common = len(now.keys() & was.keys())
        counts = len(now), len({*now.values()}), len(now) - common, len(was) - common
        churn = 1 - common / len(was) if was else None
        before = older.name if older else None
        rows.append(HistoryRow(release.name, release.date, *counts, before, churn))
    return History(query, tuple(rows))


def shown_specs(
    lookups: Lookups, conditions: Conditions, releases: Iterable[int] | None = None
) -> Shown:
    """Return the matching binaries of each release; release conditions are ignored."""
    keys = lookups.releases if releases is None else releases
    specs_of_release: Shown = {release: {} for release in keys}
    places = {"stack": asked(conditions, "stack"), "releases": json.dumps([*specs_of_release])}
    every = without(conditions, "release", "stack")
    # Configurations without a binary today are part of the history.
    configurations = configuration_ids(lookups, every, every=True)
    specs: Set[int] = specs_of_configurations(lookups.conn, configurations)
    if (prefix := asked(every, "hash")) is not None:
        specs &= specs_beginning(lookups.conn, prefix).keys()
    if (verdict := asked(every, "specs")) is not None:
        specs &= verdict.holds
    for runs in json_pieces(runs_of(sorted(specs)), IDS_AT_ONCE // 4):
        for release, spec, configuration in select(lookups.conn, SHOWN, runs=runs, **places):
            specs_of_release[release][spec] = configuration
    return specs_of_release
