"""The folder with the files of the site: metadata, plugins, templates, static files."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from spack_cache_db.errors import DatabaseError


def site_folder() -> Path:
    """Return the folder that contains metadata.yml, plugins, templates and static
    files.

    A wheel has them inside the package, a checkout at its root.

    Raises:
        DatabaseError: neither folder has a metadata.yml.
    """
    # In a checkout, this module is in builder/spack_cache_db/site.
    site_package = Path(__file__).resolve().parent
    in_wheel = site_package / "files"
    in_checkout = site_package.parent.parent.parent
    for folder in (in_wheel, in_checkout):
        if (folder / "metadata.yml").is_file():
            return folder
    raise DatabaseError(
        f"no metadata.yml in {in_wheel} or {in_checkout}: the installation is damaged; "
        "install spack-cache-db again"
    )


@cache
def asset_version() -> str:
    """Return a text that changes with every style sheet and script.

    Addresses of these have it, so that browsers read new ones. Read once per process.
    """
    digest = sha256()
    for path in sorted((site_folder() / "static").iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]
