"""The commands `releases` and `stacks`, which list what a database has of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from spack_cache_db.cli.databases import file_argument, opened
from spack_cache_db.cli.options import shared_options
from spack_cache_db.cli.tables import print_rows
from spack_cache_db.query.rows import Rows


@click.command()
@file_argument
@shared_options("json", "csv", "all")
def releases(file: Path, **options: Any) -> None:
    """List the releases of a database.

    Branches come first, then releases and snapshots from new to old.

    Exit status: 0 if there is a release, 1 if not, 2 for an error.

    Example: spack-cache-db releases dist/spack-cache.db
    """
    columns = ("name", "kind", "date", "package_count", "spec_count")
    nothing = "the database has no release: it was not built from pages, indexes or installations"
    _print_records(file, "releases", columns, options, nothing)


@click.command()
@file_argument
@shared_options("json", "csv", "all")
def stacks(file: Path, **options: Any) -> None:
    """List the stacks of a database.

    Each binary is counted once, also if several releases list it.

    Exit status: 0 if there is a stack, 1 if not, 2 for an error.

    Example: spack-cache-db stacks dist/spack-cache.db
    """
    columns = ("name", "release_count", "spec_count")
    nothing = "the database has no stack: its sources do not name any"
    _print_records(file, "stacks", columns, options, nothing)


def _print_records(
    file: Path, table: str, columns: tuple[str, ...], options: Any, nothing: str
) -> NoReturn:
    """Print columns of a small table of a database, and end.

    Args:
        file: the database.
        table: `releases` or `stacks`, which is also the name of the attribute of
            `Lookups` that has its rows.
        columns: the columns to print.
        options: the options of the command.
        nothing: the note if the table is empty.
    """
    with opened(file) as lookups:
        records = []
        for row in getattr(lookups, table).values():
            records.append({name: getattr(row, name) for name in columns})
    is_any = print_rows(Rows(columns, records), options, nothing)
    sys.exit(0 if is_any else 1)
