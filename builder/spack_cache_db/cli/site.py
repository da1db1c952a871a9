"""The commands `site`, for your own Datasette, and `export-static`, for web servers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from spack_cache_db.cli.databases import file_argument
from spack_cache_db.cli.forms import fail, say
from spack_cache_db.cli.options import export_folder_option
from spack_cache_db.errors import bytes_text
from spack_cache_db.exports.contents import FORMAT_NAMES
from spack_cache_db.site.folder import site_folder


@click.command()
def site() -> None:
    """Print the path of the folder with the site's files.

    Pass it to Datasette: datasette "$(spack-cache-db site)" -i spack-cache.db
    """
    click.echo(site_folder())


@click.command()
@file_argument
@export_folder_option
@click.option(
    "--tables",
    type=click.Choice(FORMAT_NAMES),
    help="Also write the tables of export, in this format.",
)
def export_static(file: Path, output: Path, tables: str | None) -> None:
    """Write a site that any web server can serve.

    The site is a copy of FILE and the pages that `serve` shows: packages, releases,
    stacks and changes. Searches and SQL run in the browser. The web server must support
    range requests.
    With --tables, the page links to tables for DuckDB, polars, pandas and R, which need
    the extra export.

    Example: spack-cache-db export-static dist/spack-cache.db -o public
    """
    from spack_cache_db.site.static import export

    if tables is not None and find_spec("pyarrow") is None:
        fail(
            "--tables needs pyarrow, which is not installed; install the extra `export`"
        )
    written = export.export_static(file, output, tables)
    pages = f"{written['pages']:,} pages"
    say(f"{output}: {pages} and {written['database']}, {bytes_text(written['size'])}")
