"""Commands that compare releases: `history` of a spec, and `diff` of two."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.find import question_or_advice, say_why_not
from spack_cache_db.cli.options import (
    csv_option,
    file_argument,
    markdown_option,
    names_in_file,
    narrowing_options,
)
from spack_cache_db.cli.row_output import Forms, form_of, print_answer
from spack_cache_db.cli.terminal import CommandError, counted, printable_values, say_notes
from spack_cache_db.errors import printable
from spack_cache_db.query.answers import notes_on, scope_of
from spack_cache_db.query.candidates import Candidates
from spack_cache_db.query.connection import connected
from spack_cache_db.query.difference import Diff
from spack_cache_db.query.difference import diff as compare
from spack_cache_db.query.difference_output import as_csv, as_json, as_markdown, as_text
from spack_cache_db.query.explanation import why_not
from spack_cache_db.query.history import (
    History,
    HistoryRow,
    history_csv,
    history_json,
    history_of,
    shown_specs,
)
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.spack.lexer import QuerySyntaxError
from spack_cache_db.spack.parser import parse_query

_HEADINGS = ("release", "specs", "configurations", "added", "removed", "replaced")


@click.command()
@click.argument("spec")
@file_argument
@narrowing_options("stack", "host")
@csv_option
def history(spec: str, file: Path, stack: str | None, host: str | None, **options: Any) -> None:
    """Show how many binaries of each release satisfy a spec.

    SPEC is written as for Spack; quote it. Added and removed compare a release with the one before
    it: a snapshot with the previous snapshot of its branch, a branch with its newest snapshot, a
    release with the previous release.

    Exit status: 0 if something was found, 1 if not, 2 for an error.

    Example: spack-cache-db history "py-torch +cuda" dist/spack-cache.db
    """
    form = form_of(options)
    try:
        with connected(file) as conn:
            query, lookups = parse_query(spec), read_lookups(conn)
            scope = scope_of(lookups, stack=stack, host=host)
            question = question_or_advice(conn, lookups, query, scope)
            whole = question.within(scope)
            found = history_of(lookups, spec, shown_specs(conn, lookups, whole.conditions))
            say_notes(notes_on(conn, lookups, whole))
            if not found.present:
                say_why_not(why_not(Candidates(conn, lookups), query, question.conditions, scope))
    except QuerySyntaxError as error:
        # Its second line points at a place in the first.
        raise CommandError(str(error)) from None
    if form or found.present:
        print_answer(found, _HISTORY_FORMS, options)
    sys.exit(0 if found.present else 1)


def as_table(found: History) -> str:
    """Return an aligned table, with a sentence above."""
    rows = [_HEADINGS, *(_cells(each) for each in found.releases)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join((name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])))
        for name, *numbers in rows
    ]
    return "\n".join((_sentence(found), "", *lines))


_HISTORY_FORMS = Forms(
    lambda found: as_table(printable_values(found)),
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


_COLOURS = {"removed": "red", "added": "green", "rebuilt": "yellow"}


def _printable(write: Callable[[Diff], str]) -> Callable[[Diff], str]:
    """Return a function whose text is printable; of a difference, it shows few of the values."""
    return lambda found: "\n".join(map(printable, write(found).split("\n")))


_DIFF_FORMS = Forms(_printable(as_text), as_json, as_csv, _printable(as_markdown), _COLOURS)


@click.command()
@click.argument("old", shell_complete=names_in_file)
@click.argument("new", shell_complete=names_in_file)
@file_argument
@click.option("--package", metavar="NAME", help="Only this package.")
@narrowing_options("stack", "target", "host")
@markdown_option
def diff(
    old: str,
    new: str,
    file: Path,
    package: str | None,
    stack: str | None,
    target: str | None,
    host: str | None,
    **options: Any,
) -> None:
    """Show what changed between two releases.

    OLD and NEW are releases, or stacks of a release: develop:e4s.

    A configuration is rebuilt if both releases have it with different hashes. FILE must be built
    from indexes or mirrors to show why.

    Exit status: 0 if nothing changed, 1 if something did, 2 for an error.

    Example: spack-cache-db diff develop-2025-04-20 develop dist/spack-cache.db
    """
    form_of(options)
    found = compare(file, old, new, package=package, stack=stack, target=target, host=host)
    print_answer(found, _DIFF_FORMS, options)
    sys.exit(0 if found.is_empty else 1)
