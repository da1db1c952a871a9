"""The command `site`."""

from __future__ import annotations

import click

from spack_cache_db.site import site_folder


@click.command()
def site() -> None:
    """Print the folder of the site's files.

    Give it to Datasette: datasette "$(spack-cache-db site)" -i spack-cache.db
    """
    click.echo(site_folder())
