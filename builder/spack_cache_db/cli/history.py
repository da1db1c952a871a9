"""The command `history`: a spec in each release of a database."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.forms import form_of
from spack_cache_db.cli.options import shared_options
from spack_cache_db.cli.search import Search, open_search
from spack_cache_db.cli.spec_words import SpecCommand
from spack_cache_db.cli.tables import NOTHING, Table, print_answer
from spack_cache_db.errors import counted

if TYPE_CHECKING:
    from spack_cache_db.query.answers.history import History


@click.command(cls=SpecCommand)
@shared_options("stack", "host", "json", "csv")
def history(
    spec: str, file: Path, stack: str | None, host: str | None, **options: Any
) -> None:
    """Show how many binaries of each release satisfy a spec.

    SPEC has Spack's own syntax, in one word or several. The columns added and removed
    compare each release with the one before: a snapshot with the previous snapshot of
    its branch, a branch with its newest snapshot, a release with the previous release.

    Exit status: 0 if something was found, 1 if not, 2 for an error.

    Example: spack-cache-db history py-torch +cuda dist/spack-cache.db
    """
    from spack_cache_db.query.answers.history import history_of
    from spack_cache_db.query.names.scope import Scope

    form = form_of(options)
    with open_search(file) as lookups:
        search = Search(lookups, spec, Scope(stack=stack, host=host))
        answer = history_of(search.question, spec)
        is_found = bool(answer.present)
        search.say_notes(is_found=is_found)

    # If nothing was found, people have read why, and programs get rows of zeros.
    if is_found or form is not None:
        print_answer(options, lambda: answer.rows, _lines(answer))
    sys.exit(0 if is_found else 1)


def _lines(answer: History) -> Iterator[str]:
    """Yield the lines for people: a summary, and a table with a row for each release.

    The summary is `In 3 of 4 releases, in snapshots from 2026-11-01 to 2026-11-25.`
    """
    releases = counted(len(answer.releases), "release")
    summary = f"In {len(answer.present):,} of {releases}"
    if answer.first_seen:
        summary += f", in snapshots from {answer.first_seen} to {answer.last_seen}"
    yield f"{summary}."
    yield ""

    headings = ["release", "binaries", "configurations", "added", "removed", "replaced"]
    rows = []
    for row in answer.releases:
        counts = (row.specs, row.configurations, row.added, row.removed)
        cells = [row.release]
        for count in counts:
            cells.append(f"{count:,}")
        # The removed binaries as a share of the previous release, such as 5%.
        cells.append(NOTHING if row.churn is None else f"{row.churn:.0%}")
        rows.append(cells)
    numbers = headings[1:]
    yield from Table(headings, rows, right=numbers).lines()
