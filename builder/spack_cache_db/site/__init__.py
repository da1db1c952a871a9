"""The website: our own pages, and a Datasette plugin that serves them.

`plugin` has the hooks that Datasette calls, and lists what wraps a request. `routes` has our pages,
each a function from a request to an answer, and `pages` the records that they show. `workers` runs
both, and SQL of visitors, in processes of their own, within the limits of `sandbox`.
"""

from __future__ import annotations

import re
from pathlib import Path

from spack_cache_db.errors import DatabaseError

_ORIGIN = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?", re.ASCII)


def is_origin(text: str) -> bool:
    """Return whether text is an origin of web pages: scheme, host and port, and nothing else."""
    return _ORIGIN.fullmatch(text) is not None


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
