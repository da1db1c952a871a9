"""The command `site`."""

from __future__ import annotations

import click

from spack_cache_db.cli.server import site_folder


@click.command()
def site() -> None:
    """Print the folder of the site's files, for `datasette FOLDER -i spack-cache.db`."""
    click.echo(site_folder())
