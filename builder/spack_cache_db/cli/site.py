"""The commands `site`, for your own Datasette, and `export-static`, for web servers."""

from __future__ import annotations

from pathlib import Path

import click

from spack_cache_db.cli.databases import file_argument
from spack_cache_db.cli.forms import say
from spack_cache_db.cli.options import export_folder_option
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
def export_static(file: Path, output: Path) -> None:
    """Write a site that any web server can serve.

    The site is a copy of FILE and one page that searches packages, shows install
    commands and runs SQL in the browser. The web server must support range requests.

    Example: spack-cache-db export-static dist/spack-cache.db -o public
    """
    from spack_cache_db.site import static_site

    written = static_site.export_static(file, output)
    megabytes = written["size"] / 1e6
    say(f"{output}: index.html and {written['database']}, {megabytes:.1f} MB")
