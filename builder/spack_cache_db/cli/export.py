"""The command `export`: tables of a database as files."""

from __future__ import annotations

from pathlib import Path

import click

from spack_cache_db.cli.databases import file_argument
from spack_cache_db.cli.forms import print_json, say
from spack_cache_db.cli.options import export_folder_option
from spack_cache_db.cli.parameters import flag
from spack_cache_db.errors import bytes_text
from spack_cache_db.exports.contents import FORMAT_NAMES


@click.command()
@file_argument
@export_folder_option
@click.option(
    "--format",
    "file_format",
    type=click.Choice(FORMAT_NAMES),
    default="parquet",
    show_default=True,
    help="Format of the files.",
)
@click.option(
    "--license",
    default="",
    metavar="NAME|URL",
    help="License of the data, for the descriptions.",
)
@flag("--json", "Print a JSON object.")
def export(
    file: Path, output: Path, file_format: str, license: str, json: bool
) -> None:
    """Write tables as Parquet or CSV, with descriptions.

    One file for each table, and for the views builds, build_listings and
    release_counts; datapackage.json and croissant.json describe them.

    Example: spack-cache-db export dist/spack-cache.db -o tables
    """
    from spack_cache_db.exports.exporting import export as write_export

    report = write_export(file, output, format=file_format, license=license)
    if json:
        print_json(report.as_dict())
        return
    rows = sum(report.rows.values())
    say(
        f"{output}: {len(report.rows)} tables, {rows:,} rows, {bytes_text(report.size)}"
    )
