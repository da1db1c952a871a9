"""The catalogue's site: its pages, computed from a published file, and how they are served.

In `pages` they are plain Python over a SQLite connection; the modules here put them, and bounds for
all that Datasette itself shows, between HTTP and Datasette. What visitors' SQL may do is in
`sandbox`, and what only Datasette 0.65 needs is a room of its own. The hooks are in `plugin`.
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
