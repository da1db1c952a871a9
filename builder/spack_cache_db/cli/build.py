"""The command `build`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spack_cache_db.build import Report
from spack_cache_db.build import build as build_database
from spack_cache_db.build.publication import discard
from spack_cache_db.cli.input import Bar, GivenPath, counted, documents_read, input_options
from spack_cache_db.cli.site import site_folder
from spack_cache_db.cli.stopping import when_stopped
from spack_cache_db.cli.terminal import say


@click.command()
@input_options
@click.option(
    "-o",
    "--output",
    type=GivenPath(dir_okay=False, path_type=Path),
    required=True,
    help="The database to write; replaced only by a whole one.",
)
@click.option(
    "--example",
    is_flag=True,
    is_eager=True,
    help="Build the five sample pages that come with this program.",
)
@click.option("--keep-going", is_flag=True, help="Build what is good, record the rest in problems.")
def build(
    paths: tuple[str, ...],
    output: Path,
    jobs: int,
    max_page_size: int,
    release: str | None,
    stack: str | None,
    example: bool,
    keep_going: bool,
    as_json: bool,
) -> None:
    """Build a database from PATHs: pages, indexes, mirrors, folders and archives of them.

    An index or a mirror is of the release and stack whose folders it lies in, <release>/<stack>/,
    or of those that are given.

    Example: spack-cache-db build pages/ -o dist/spack-cache.db
    """

    def tidy() -> str:
        discard(output)
        return "nothing half-written is left"

    if example:
        paths = (*paths, str(site_folder() / "pages"))
    with when_stopped(tidy), Bar() as progress:
        report = build_database(
            paths,
            output,
            jobs=jobs,
            keep_going=keep_going,
            max_page_size=max_page_size,
            release=release,
            stack=stack,
            progress=progress,
        )
    for fault in report.faults:
        click.echo(str(fault), err=True)
    if as_json:
        click.echo(json.dumps({**report.as_dict(), "output": str(output)}, indent=2))
    else:
        say(_totals(report, output))


def _totals(report: Report, output: Path) -> str:
    totals = [
        *documents_read(report.pages, report.indexes, report.records),
        counted(report.listings, "listing"),
        counted(report.specs, "spec"),
        counted(report.configurations, "configuration"),
        counted(report.problems, "problem"),
        f"{report.file_size / 1e6:.1f} MB in {report.seconds:.1f} s",
    ]
    return f"{output}: {', '.join(totals)}"
