"""The command `verify`: whether a database is what a build of its sources gives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.build import source_counts
from spack_cache_db.cli.forms import print_json, say, say_faults
from spack_cache_db.cli.input_options import input_options
from spack_cache_db.cli.parameters import GivenPath
from spack_cache_db.cli.progress import progress_bar
from spack_cache_db.errors import counted

if TYPE_CHECKING:
    from spack_cache_db.assembly.verify import Verification


@click.command()
@click.argument("file", type=GivenPath(path_type=Path))
@input_options
def verify(file: Path, paths: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Verify that a database matches its sources.

    PATH... is everything that FILE was built from. The sources are built again in a
    temporary folder, and every row of every table is compared. Give --release, --stack,
    --snapshot, --keep-snapshots and --drop as to build; its other options are taken
    from FILE.

    Exit status: 0 if there is no difference, 1 if there are some, 2 for an error.

    Example: spack-cache-db verify dist/spack-cache.db pages/
    """
    from spack_cache_db.assembly.verify import verify as verify_file

    # The other options have the names of the function's arguments.
    with progress_bar() as progress:
        report = verify_file(file, paths, progress=progress, **options)

    if as_json:
        print_json({"file": str(file), **report.as_dict()})
    else:
        for difference in report.differences:
            say(str(difference))
        say_faults(report.faults)
        say(f"{file}: {_totals(report)}")
    sys.exit(1 if report.faults or report.differences else 0)


def _totals(report: Verification) -> str:
    """Return a text such as `5 pages, 23 listings, 0 differences`."""
    totals = source_counts(
        report.pages, report.indexes, report.records, report.packages
    )
    # Indexes and package data may have no listings; pages always have some.
    is_only_pages = not (report.indexes or report.packages)
    if report.listings or is_only_pages:
        totals.append(counted(report.listings, "listing"))
    totals.append(counted(report.difference_count, "difference"))
    if report.faults:
        totals.append(counted(len(report.faults), "fault"))
    return ", ".join(totals)
