"""The command `export-static`."""

from __future__ import annotations

from pathlib import Path

import click

from spack_cache_db.cli.options import GivenPath, file_argument
from spack_cache_db.cli.terminal import say
from spack_cache_db.site import static_site


@click.command()
@file_argument
@click.option(
    "-o",
    "--output",
    type=GivenPath(file_okay=False, path_type=Path),
    required=True,
    help="Folder to write: a new one, or one of an earlier export.",
)
def export_static(file: Path, output: Path) -> None:
    """Write a site that any web server can serve.

    It has a copy of FILE and a page that searches packages, shows install commands and runs SQL
    in the browser. The server needs nothing but byte ranges.

    Example: spack-cache-db export-static dist/spack-cache.db -o public
    """
    told = static_site.export_static(file, output)
    say(f"{output}: index.html and {told['database']}, {told['size'] / 1e6:.1f} MB")
