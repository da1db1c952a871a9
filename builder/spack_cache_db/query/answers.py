"""What a spec query finds in a built file: the Python side of `find`, and its JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from html import escape
from itertools import islice
from typing import Any

from spack_cache_db.arguments import (
    checked_limit,
    checked_text,
    checked_texts,
)
from spack_cache_db.query.catalogue import (
    Counted,
    FoundSpec,
    Presence,
    Spec,
    configurations_by_id,
    counts_in_scope,
    found_specs,
    joined,
    presence_of_configurations,
    specs_in_scope,
)
from spack_cache_db.query.conditions import (
    PLACES,
    Condition,
    Conditions,
    Question,
    Verdict,
    asked,
    is_of_specs,
    without,
)
from spack_cache_db.query.connection import Database, Lookups, opened
from spack_cache_db.query.look_alikes import distinctions
from spack_cache_db.query.questions import explicitly, question_of, scope_of
from spack_cache_db.query.selection import configuration_ids
from spack_cache_db.records import Configuration
from spack_cache_db.spack.parser import parser_of

_WHERE = tuple(field.name for field in fields(Presence))


MOST_SHOWN = 50
"""Rows of a notebook's table."""


@dataclass(frozen=True, slots=True)
class Found:
    """A configuration that satisfies a query.

    Attributes:
        package: its package; `version` to `variants` are what can be seen of it, in normal form.
        spec_count: how many specs satisfy query, release and stack.
        releases: all releases that show the configuration, in the file's order: branches, then
            releases and snapshots from new to old.
        stacks: all stacks that hold it in some release, sorted, without `root`.
        first_seen: the day of the first snapshot that shows it.
        last_seen: the day of the last. Where a hash, or what a spec depends on, is asked, these
            four are of the specs that satisfy the query.
        specs: those specs, what is current first; None unless asked for.
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
    specs: tuple[FoundSpec, ...] | None = None

    @property
    def configuration(self) -> Configuration:
        """What can be seen of it, as one record."""
        return Configuration(*(getattr(self, name) for name in Configuration._fields))

    @property
    def hashes(self) -> tuple[str, ...] | None:
        """The hashes of the specs; None unless asked for."""
        return None if self.specs is None else tuple(spec.hash for spec in self.specs)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that `find --json` prints."""
        return next(self._dicts(hashes=False))

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return the objects that `find --json --hashes` prints: one for each spec."""
        return [*self._dicts(hashes=True)]

    def _dicts(self, hashes: bool) -> Iterator[dict[str, Any]]:
        words, where = self.configuration._asdict(), _columns(hashes)
        for name, value, place in row_values(self, hashes):
            yield words | {name: value} | {key: getattr(place, key) for key in where}


class FoundList(list[Found]):
    """The configurations that satisfy a query, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        """Return the table that IPython shows (its docs: "Rich display")."""
        columns = (*Configuration._fields, "spec_count", *_WHERE)
        head = "".join(f"<th>{name}</th>" for name in columns)
        rows = "".join(f"<tr>{_cells(each.as_dict())}</tr>" for each in self[:MOST_SHOWN])
        more = len(self) - MOST_SHOWN
        note = f"<p>and {more:,} more</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{note}"


def _cells(record: dict[str, Any]) -> str:
    texts = (
        " ".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
        for value in record.values()
    )
    return "".join(f"<td>{escape(text)}</td>" for text in texts)


# As large as the file: two of them are compared by identity.
@dataclass(frozen=True, slots=True, eq=False)
class ResultSet:
    """The configurations that satisfy conditions, by their ids in order.

    Attributes:
        counts: how many specs count of each; None where that was not needed to tell.
    """

    conditions: Conditions
    ids: list[int]
    counts: Mapping[int, int] | None = None


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
    """Find the configurations in a built file that satisfy a spec in Spack's syntax.

    Args:
        db: a file made by `build`, as text or `Path`, or a `Cache` or connection to one.
        query: such as `hdf5@1.14: +mpi target=zen3 %gcc@13`; `*` is any package.
        release: only specs that this release lists.
        stack: only specs in this stack; in that release, where one is given.
        host: only what runs on a machine of this CPU target, such as `zen3`.
        os: only what was built for this operating system, such as `ubuntu24.04`.
        platform: only what was built for this platform, such as `linux`.
        spack: the version of Spack for which the query is written, such as `0.23`; None for 1.0
            and later.
        explicit: only what somebody asked to have installed, and no dependencies of that.
        limit: at most so many records.
        with_hashes: tell of each spec as well.

    Returns:
        By system and family of CPUs, Linux on x86_64 first, then by package; of each first the
        version that Spack would take. What is installed comes before all others.

    Raises:
        ArgumentError: an argument has a wrong type or value.
        QuerySyntaxError: the query is no spec; its text has a caret under the place.
        UnsupportedQuery: the file cannot answer the query; its text says why.
        UnknownNameError: the file has no such release or stack, archspec no such host.
        UnknownSpackVersion: `spack` is no version.
        DatabaseError: the file is not one of this builder.
    """
    checked_texts(release=release, stack=stack, host=host, os=os, platform=platform, spack=spack)
    checked_limit(limit)
    parsed = parser_of(spack)(checked_text("query", query))
    with opened(db) as (conn, lookups):
        scope = scope_of(lookups, release, stack, host, os, platform)
        scope = (*scope, *explicitly(conn)) if explicit else scope
        results = matching(conn, lookups, question_of(conn, lookups, parsed, scope).conditions)
        found = found_part(
            conn,
            lookups,
            results,
            slice(limit),
            with_hashes=with_hashes,
            with_differences=with_hashes,
        )
        return FoundList(found)


def matching(conn: sqlite3.Connection, lookups: Lookups, conditions: Conditions) -> ResultSet:
    """Return what satisfies conditions, in the order of `selection.preference`."""
    ids = configuration_ids(conn, lookups, conditions)
    places = {each.kind for each in conditions if each.kind in PLACES}
    if len(places) < 2 and not is_of_specs(conditions):
        return ResultSet(conditions, ids)
    # Each place may have some spec of a configuration, and none may be in all of them.
    counts = counts_in_scope(conn, lookups, ids, conditions)
    return ResultSet(conditions, [key for key in ids if key in counts], counts)


def counted_part(
    conn: sqlite3.Connection, lookups: Lookups, results: ResultSet, part: slice
) -> list[Counted]:
    """Return some of the configurations, each with how many specs count."""
    ids = results.ids[part]
    found = configurations_by_id(conn, lookups, ids)
    if not any(each.kind in PLACES for each in results.conditions):
        return found
    counts = results.counts
    if counts is None:
        counts = counts_in_scope(conn, lookups, ids, results.conditions)
    return [each._replace(spec_count=counts[each.id]) for each in found]


def found_part(
    conn: sqlite3.Connection,
    lookups: Lookups,
    results: ResultSet,
    part: slice,
    *,
    with_hashes: bool,
    with_differences: bool = False,
) -> list[Found]:
    """Return some of the configurations that satisfy conditions, and where they are.

    Args:
        conn: a connection to the file.
        lookups: its small tables.
        results: all that satisfy them.
        part: which of these.
        with_hashes: tell of each spec as well.
        with_differences: and of what tells it apart from the others of its configuration.
    """
    found = counted_part(conn, lookups, results, part)
    ids, of_specs = [each.id for each in found], is_of_specs(results.conditions)
    told: dict[int, tuple[FoundSpec, ...]] = {}
    if with_hashes or of_specs:
        specs = specs_in_scope(conn, ids, results.conditions)
        told = _told(conn, lookups, {key: specs[key] for key in ids}, with_differences)
    if of_specs:
        presence = {key: joined(lookups, each) for key, each in told.items()}
    else:
        presence = presence_of_configurations(conn, lookups, ids)
    return [
        Found(
            *each.configuration,
            each.spec_count,
            where.releases,
            where.stacks,
            where.first_seen,
            where.last_seen,
            told[each.id] if with_hashes else None,
        )
        for each in found
        for where in (presence[each.id],)
    ]


def _told(
    conn: sqlite3.Connection,
    lookups: Lookups,
    specs: dict[int, list[Spec]],
    with_differences: bool,
) -> dict[int, tuple[FoundSpec, ...]]:
    """Return what there is to tell of the specs of each configuration."""
    every = [spec for some in specs.values() for spec in some]
    told = found_specs(conn, lookups, every)
    if with_differences:
        groups = ([spec.id for spec in some] for some in specs.values())
        known = distinctions(conn, lookups, groups)
        told = (
            replace(each, differences=known.get(spec.id, ()))
            for spec, each in zip(every, told, strict=True)
        )
    return {key: tuple(islice(told, len(some))) for key, some in specs.items()}


def notes_on(conn: sqlite3.Connection, lookups: Lookups, question: Question) -> tuple[str, ...]:
    """Return what a user should know of an answer: how it was read, and what it leaves out."""
    verdict = asked(question.conditions, "specs")
    if verdict is None or not verdict.unknown:
        return question.notes
    unknown = Verdict(verdict.unknown)
    conditions = (*without(question.conditions, "specs"), Condition("specs", "", unknown))
    count = sum((matching(conn, lookups, conditions).counts or {}).values())
    if not count:
        return question.notes
    specs = "1 more spec" if count == 1 else f"{count:,} more specs"
    return (*question.notes, f"{specs} may satisfy this, but nothing in this file shows it")


def found_json(found: Iterable[Found], hashes: bool) -> str:
    """Return a JSON array with one object for each configuration, or for each spec."""
    records = [
        record for each in found for record in (each.as_dicts() if hashes else [each.as_dict()])
    ]
    return json_text(records)


def found_csv(found: Sequence[Found], hashes: bool) -> str:
    """Return CSV, one line per configuration, or per spec.

    Lists are separated by blanks, differences by semicolons.
    """
    names = (*Configuration._fields, "hash" if hashes else "spec_count", *_columns(hashes))
    return csv_text(names, _csv_rows(found, hashes))


def _csv_rows(found: Iterable[Found], hashes: bool) -> Iterator[tuple[Any, ...]]:
    for each in found:
        *words, variants = each.configuration
        for _, value, place in row_values(each, hashes):
            lists = (" ".join(place.releases), " ".join(place.stacks))
            rest = (value, *lists, place.first_seen, place.last_seen)
            apart = ("; ".join(place.differences),) if isinstance(place, FoundSpec) else ()
            yield (*words, " ".join(variants), *rest, *apart)


def row_values(each: Found, hashes: bool) -> Iterator[tuple[str, str | int, Found | FoundSpec]]:
    """Yield what a row counts and where that is: the configuration, or each of its specs."""
    if not hashes:
        yield "spec_count", each.spec_count, each
        return
    for spec in each.specs or ():
        yield "hash", spec.hash, spec


def _columns(hashes: bool) -> tuple[str, ...]:
    """Return what is told of where a configuration is, or of a spec."""
    return (*_WHERE, "differences") if hashes else _WHERE


def json_text(value: Any) -> str:
    """Return plain values as JSON for people and programs."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def csv_text(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV below the names of their columns; None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows((names, *rows))
    return text.getvalue()
