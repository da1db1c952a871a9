"""The command `behind`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.options import file_argument, names_in_file, rows_options
from spack_cache_db.cli.row_output import print_markdown, print_rows
from spack_cache_db.cli.terminal import fail
from spack_cache_db.query.package_status import PackageStatus
from spack_cache_db.query.package_status import behind as packages_behind

_SHOWN = ("name", "newest_version", "latest_version", "versions_behind", "spec_count")


@click.command()
@file_argument
@click.option(
    "--release",
    metavar="NAME",
    help="Only binaries in this release.",
    shell_complete=names_in_file,
)
@click.option(
    "--stack", metavar="NAME", help="Only binaries in this stack.", shell_complete=names_in_file
)
@rows_options
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a table in Markdown.")
def behind(
    file: Path, release: str | None, stack: str | None, as_markdown: bool, **options: Any
) -> None:
    """List packages that Spack has in newer versions.

    FILE must be built with package data. Counted are numbered versions that Spack has not
    deprecated.

    Exit status: 0 if no package is behind, 1 if some are, 2 for an error.

    Example: spack-cache-db behind dist/spack-cache.db --stack e4s
    """
    if as_markdown and (options["as_json"] or options["as_csv"]):
        fail("--json, --csv and --markdown exclude each other: give one of them")
    found = packages_behind(file, release=release, stack=stack)
    if options["as_json"] or options["as_csv"]:
        print_rows(PackageStatus._fields, found, options)
    else:
        rows = [tuple(getattr(each, name) for name in _SHOWN) for each in found]
        if as_markdown:
            print_markdown(_SHOWN, rows)
        else:
            print_rows(_SHOWN, rows, options)
    sys.exit(1 if found else 0)
