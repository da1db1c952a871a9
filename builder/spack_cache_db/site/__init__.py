"""The website: the catalogue's own pages, and a Datasette plugin that serves them.

`plugin` has the hooks that Datasette calls, `routes` the addresses, and `pages` the data of each
page, read from a SQLite connection. `middleware`, `queues` and `delivery` check and bound every
request, also those for Datasette's own pages. `sandbox` runs whatever costs time in processes of
its own. `datasette065` has what only Datasette 0.65 needs.
"""

from __future__ import annotations

from pathlib import Path

from spack_cache_db.errors import DatabaseError


def site_folder() -> Path:
    """Return the folder that holds metadata.yml, plugins, templates and static files.

    A wheel carries them in the package; in a checkout they stand at its root.

    Raises:
        DatabaseError: they are in neither place.
    """
    here = Path(__file__).resolve().parent
    folders = (here / "files", here.parents[2])
    for folder in folders:
        if (folder / "metadata.yml").is_file():
            return folder
    raise DatabaseError(
        f"no metadata.yml in {' or '.join(map(str, folders))}: the installation is damaged; "
        "install spack-cache-db again"
    )
