"""The command `site`, and where the files of the site are."""

from __future__ import annotations

from pathlib import Path

import click

import spack_cache_db
from spack_cache_db.errors import DatabaseError


@click.command()
def site() -> None:
    """Print the folder of the site's files.

    Give it to Datasette: datasette "$(spack-cache-db site)" -i spack-cache.db
    """
    click.echo(site_folder())


def site_folder() -> Path:
    """Return the folder that holds metadata.yml, plugins, templates and static files.

    A wheel carries them in the package; in a checkout they stand at its root.

    Raises:
        DatabaseError: they are in neither place.
    """
    package = Path(spack_cache_db.__file__).resolve().parent
    folders = (package / "site" / "files", package.parents[1])
    for folder in folders:
        if (folder / "metadata.yml").is_file():
            return folder
    raise DatabaseError(
        f"no metadata.yml in {' or '.join(map(str, folders))}: the installation is damaged; "
        "install spack-cache-db again"
    )
