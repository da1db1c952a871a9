"""The website: our own pages, and the Datasette plugin that serves them.

`plugin` has the hooks that Datasette calls, and lists what wraps a request. `routes`
maps each address to a function that returns an answer, and `pages` reads the records
that these show. `sandbox` has the limits of visitors' SQL. `serve` runs all of it in
processes that can be ended.
"""

from __future__ import annotations

import re
from pathlib import Path

from spack_cache_db.errors import DatabaseError

_ORIGIN = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?", re.ASCII)


def is_origin(text: str) -> bool:
    """Return whether a text is a web origin: scheme, host and port, without a path."""
    return _ORIGIN.fullmatch(text) is not None


def site_folder() -> Path:
    """Return the folder that contains metadata.yml, plugins, templates and static
    files.

    A wheel has them inside the package, a checkout at its root.

    Raises:
        DatabaseError: neither has them.
    """
    package = Path(__file__).resolve().parent
    folders = (package / "files", package.parents[2])
    for folder in folders:
        if (folder / "metadata.yml").is_file():
            return folder
    raise DatabaseError(
        f"no metadata.yml in {' or '.join(map(str, folders))}: the installation is damaged; "
        "install spack-cache-db again"
    )
