"""The commands that look for a spec, `find` and `history`, and the tables that they print."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.options import (
    SpecCommand,
    csv_option,
    narrowing_options,
    rows_options,
    scope_names,
    scope_options,
    spack_option,
)
from spack_cache_db.cli.terminal import (
    NOTHING,
    CommandError,
    Forms,
    aligned,
    fail,
    form_of,
    more_rows,
    most_rows,
    print_answer,
    printable_values,
    say,
    say_notes,
    width,
    wrapped,
)
from spack_cache_db.errors import counted
from spack_cache_db.query.answers import (
    Found,
    History,
    HistoryRow,
    found_csv,
    found_json,
    found_part,
    history_csv,
    history_json,
    history_of,
    matching,
    notes_on,
    shown_specs,
)
from spack_cache_db.query.catalogue import FoundSpec
from spack_cache_db.query.conditions import Conditions, Question, UnsupportedQuery
from spack_cache_db.query.connection import Lookups, opened
from spack_cache_db.query.explanation import why_corrected, why_not
from spack_cache_db.query.installation import Installation, install_found
from spack_cache_db.query.known_names import known_names
from spack_cache_db.query.questions import explicitly, question_of, scope_of
from spack_cache_db.query.selection import Candidates
from spack_cache_db.query.spellings import read_spellings
from spack_cache_db.records import Configuration
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query, parser_of
from spack_cache_db.spack.pasted_specs import pasted_spec

_VARIANTS = "variants"
_WORDS = tuple(name for name in Configuration._fields if name != _VARIANTS)
"""The parts of a configuration that are one word."""
_LONG = ("releases", "variants", "stacks", "differences")
"""The last columns of the table, whose texts are long."""
_MOST_DIFFERENCES = 5
_PATH = re.compile(r".*\s([\w./-]+[./][\w/-]+)", re.DOTALL)
"""A text whose last word may be meant as a path."""


@click.command(cls=SpecCommand)
@click.option("--hashes", is_flag=True, help="Show one row per spec, with its hash.")
@scope_options
@click.option("--explicit", is_flag=True, help="Only specs that were installed explicitly.")
@spack_option
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Show at most N configurations.")
@click.option("--install", is_flag=True, help="Also print the commands that install the first row.")
@rows_options
def find(spec: str, file: Path, **options: Any) -> None:
    """Find the binaries that satisfy a spec.

    SPEC has Spack's own syntax, in one word or several. A pasted command (`spack install hdf5`) or
    line of Spack's output works as well. FILE is a database; if it was built from indexes, SPEC may
    name dependencies (^zlib, %cmake), namespaces and compiler flags.

    The version that Spack would install comes first.

    Exit status: 0 if something was found, 1 if not, 2 for an error.

    Example: spack-cache-db find hdf5@1.14: +mpi %gcc@13 dist/spack-cache.db
    """
    form = form_of(options, "install")
    names = scope_names(options)
    with _opened(file) as lookups:
        pasted = pasted_spec(spec, known_names(lookups))
        query = parser_of(options["spack"])(pasted.spec)
        scope = scope_of(lookups, **names)
        scope = (*scope, *explicitly(lookups.conn)) if options["explicit"] else scope
        question = question_or_advice(lookups, query, scope)
        results = matching(lookups, question.conditions)
        limit, with_hashes = options["limit"], options["hashes"] or options["install"]
        if limit is None and form not in ("json", "csv"):
            limit = most_rows(options)
        found = found_part(
            lookups,
            results,
            slice(limit),
            with_hashes=with_hashes,
            with_differences=options["hashes"],
        )
        spelled = read_spellings(lookups).notes(names.items())
        say_notes([*pasted.notes_on(spec), *spelled, *notes_on(lookups, question)])
        if not found:
            say_notes(why_not(Candidates(lookups), query, scope).reasons())
        if found or form in ("json", "csv"):
            _print(lookups.conn, found, len(results.ids), options)
        sys.exit(0 if found else 1)


@contextmanager
def _opened(file: Path) -> Iterator[Lookups]:
    """Open a database to look for a spec; what is no spec ends the command."""
    try:
        with opened(file) as lookups:
            yield lookups
    except QuerySyntaxError as error:
        last = _PATH.fullmatch(error.text)
        missing = f"\nif {last[1]} is the database: there is no such file" if last else ""
        # Its second line points at a place in the first.
        raise CommandError(str(error) + missing) from None


def question_or_advice(lookups: Lookups, query: SpecQuery, scope: Conditions) -> Question:
    """Return what a query asks of a file.

    Raises:
        UnsupportedQuery: the file cannot answer it; the text says what to ask instead.
    """
    try:
        return question_of(lookups, query, scope)
    except UnsupportedQuery as error:
        why = why_corrected(Candidates(lookups), query, scope)
        advice = why.advice() if why else ()
        raise UnsupportedQuery("; ".join((str(error), *advice))) from None


def _print(
    conn: sqlite3.Connection, found: list[Found], total: int, options: dict[str, Any]
) -> None:
    hashes = options["hashes"]
    most = most_rows(options) if options["limit"] is None else None
    forms = Forms(
        lambda rows: as_table(printable_values(rows), hashes, width(), total, most),
        lambda rows: found_json(rows, hashes),
        lambda rows: found_csv(rows, hashes),
    )
    print_answer(tuple(found), forms, options)
    if options["install"] and found:
        commands = install_found(conn, found, options["release"])
        if commands is None:
            fail("no release lists these specs, so nothing says where to get them")
        note = [f"# {commands.note}"] if commands.note else []
        if isinstance(commands, Installation) and commands.prefix:
            note = [f"# installed in {commands.prefix}"]
        for line in ("", *note, *commands.commands):
            say(line)


def as_table(
    found: Sequence[Found],
    hashes: bool,
    width: int | None = None,
    total: int | None = None,
    most: int | None = None,
) -> str:
    """Return an aligned table: what all rows share stands in one line above.

    Args:
        found: what was found, at least one.
        hashes: one row per spec instead of one per configuration.
        width: the longest line that is wanted; None for any.
        total: how many configurations match, of which `found` may be some.
        most: so many rows are shown, and how many there are otherwise is said below; None for all.
    """
    total = total or len(found)
    lines = [_total(found, total)]
    configurations = [each.configuration for each in found]
    shared = {name for name in _WORDS if len({getattr(each, name) for each in configurations}) == 1}
    common = set.intersection(*(set(each.variants) for each in configurations))
    first = configurations[0]
    words = [first.package + "@" + first.version if "version" in shared else first.package]
    words = words if "package" in shared else []
    words += [getattr(first, name) for name in _WORDS[2:] if name in shared]
    words += [text for text in first.variants if text in common]
    if words and len(found) > 1:
        lines += wrapped(f"all: {' '.join(words)}", width)
    hidden = shared - {"version"} if len(found) > 1 else set()
    names = [name for name in _WORDS if name not in hidden]
    common = common if len(found) > 1 else set()
    header = [*names, "hash" if hashes else "specs", "last seen", *_LONG]
    table = [row for each in found for row in _rows(each, hashes, names, common)]
    lines += ["", *aligned(header, table[:most], width, _LONG)]
    left = total - len(found) + len(table) - len(table[:most])
    if most is not None and left:
        lines += ["", more_rows(left)]
    return "\n".join(lines)


def _total(found: Sequence[Found], total: int) -> str:
    specs = sum(each.spec_count for each in found)
    part = f"{len(found):,} of " if len(found) < total else ""
    return f"{part}{counted(total, 'configuration')}, {counted(specs, 'spec')}"


def _rows(each: Found, hashes: bool, names: Iterable[str], common: set[str]) -> Iterator[list[str]]:
    words = [getattr(each.configuration, name) for name in names]
    variants = " ".join(text for text in each.configuration.variants if text not in common)
    shown: list[tuple[str, Found | FoundSpec]] = [(f"{each.spec_count:,}", each)]
    if hashes:
        shown = [(spec.hash, spec) for spec in each.specs or ()]
    for counted_as, place in shown:
        more = len(place.releases) - 1
        first = place.releases[0] if place.releases else NOTHING
        yield [
            *words,
            counted_as,
            place.last_seen or NOTHING,
            f"{first} +{more}" if more > 0 else first,
            variants or NOTHING,
            " ".join(place.stacks) or NOTHING,
            _some(getattr(place, "differences", ())) or NOTHING,
        ]


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_DIFFERENCES
    return ", ".join((*texts[:_MOST_DIFFERENCES], *([f"and {more} more"] if more > 0 else [])))


_HEADINGS = ("release", "specs", "configurations", "added", "removed", "replaced")


@click.command(cls=SpecCommand)
@narrowing_options("stack", "host")
@csv_option
def history(spec: str, file: Path, stack: str | None, host: str | None, **options: Any) -> None:
    """Show how many binaries of each release satisfy a spec.

    SPEC has Spack's own syntax, in one word or several. The columns added and removed compare each
    release with the one before: a snapshot with the previous snapshot of its branch, a branch with
    its newest snapshot, a release with the previous release.

    Exit status: 0 if something was found, 1 if not, 2 for an error.

    Example: spack-cache-db history py-torch +cuda dist/spack-cache.db
    """
    form = form_of(options)
    with _opened(file) as lookups:
        pasted = pasted_spec(spec, known_names(lookups))
        query = parse_query(pasted.spec)
        scope = scope_of(lookups, stack=stack, host=host)
        question = question_or_advice(lookups, query, scope)
        found = history_of(lookups, spec, shown_specs(lookups, question.conditions))
        spelled = read_spellings(lookups).notes([("stack", stack), ("host", host)])
        say_notes([*pasted.notes_on(spec), *spelled, *notes_on(lookups, question)])
        if not found.present:
            say_notes(why_not(Candidates(lookups), query, scope).reasons())
    if form or found.present:
        print_answer(found, _HISTORY_FORMS, options)
    sys.exit(0 if found.present else 1)


def history_table(found: History) -> str:
    """Return an aligned table, with a sentence above."""
    rows = [_HEADINGS, *(_cells(each) for each in found.releases)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join((name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])))
        for name, *numbers in rows
    ]
    return "\n".join((_sentence(found), "", *lines))


_HISTORY_FORMS = Forms(
    lambda found: history_table(printable_values(found)),
    lambda found: history_json(found.releases),
    lambda found: history_csv(found.releases),
)


def _cells(each: HistoryRow) -> tuple[str, ...]:
    numbers = (each.specs, each.configurations, each.added, each.removed)
    churn = "-" if each.churn is None else f"{each.churn:.0%}"
    return (each.release, *(f"{number:,}" for number in numbers), churn)


def _sentence(found: History) -> str:
    """Return where and when there is something."""
    total = counted(len(found.releases), "release")
    seen = ""
    if found.first_seen:
        seen = f", in snapshots from {found.first_seen} to {found.last_seen}"
    return f"In {len(found.present):,} of {total}{seen}."
