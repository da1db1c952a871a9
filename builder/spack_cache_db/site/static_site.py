"""The command `export-static`: writes a folder that any web server can publish."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from spack_cache_db.bounded_files import alone_in, put_in_place, sha256_of
from spack_cache_db.errors import OutputError, reason
from spack_cache_db.query.database import connected, read_lookups
from spack_cache_db.query.installation import MIRROR, PLACEHOLDER, TARBALL, TRUST_KEYS, read_origin
from spack_cache_db.query.totals import largest_packages, read_totals
from spack_cache_db.releases import public_mirror
from spack_cache_db.schema import TARBALL_PATH
from spack_cache_db.site import site_folder

CATALOGUE = "catalogue.json"
"""The file that the page reads first. A folder that contains it was written by this command."""
PART = ".export-static.tmp"
"""A folder inside the other one, and so on the same file system, for unfinished files."""
_COPY = re.compile(r"spack-cache-[0-9a-f]{16}\.db")


def export_static(file: Path, folder: Path) -> dict[str, Any]:
    """Write a page that shows a database, with a copy of it, and return the page's catalogue.

    The copy of the database is named after its content, so that an open page never mixes two
    exports. Earlier copies are removed. Links are replaced, not followed.

    Raises:
        DatabaseError: the file is not a database of this program, or is damaged.
        OutputError: the folder contains other files, or cannot be written.
    """
    with connected(file):  # Checks the file before anything is written.
        pass
    with alone_in(folder, "export"):
        try:
            return _export(file, folder)
        except OSError as error:
            name = Path(error.filename2 or error.filename or folder).name
            advice = "free space or choose another folder with -o"
            message = f"{name} cannot be written: {reason(error)}; {advice}"
            raise OutputError(f"{folder}: {message}") from None


def _export(file: Path, folder: Path) -> dict[str, Any]:
    names = {path.name for path in folder.iterdir()} - {PART}
    copies = {*filter(_COPY.fullmatch, names)}
    if names - copies and not (folder / CATALOGUE).is_file():
        raise OutputError(f"{folder}: has other files, expected a new or an empty folder")
    part = folder / PART
    _remove(part)
    part.mkdir()
    try:
        copy = part / "copy"
        shutil.copyfile(file, copy)
        with connected(copy) as conn:
            content = catalogue(conn, copy)
        name = content["database"]
        copy.rename(part / name)
        (part / CATALOGUE).write_text(json.dumps(content, indent=1), encoding="utf-8")
        pages = [*(site_folder() / "static-site").iterdir(), site_folder() / "static" / "site.css"]
        for page in pages:
            shutil.copyfile(page, part / page.name)
        # The catalogue identifies the folder, so only the copy is renamed before it.
        for part_name in (name, CATALOGUE, *(page.name for page in pages)):
            put_in_place(part / part_name, folder / part_name)
    finally:
        _remove(part)
    for old in copies - {name}:
        (folder / old).unlink()
    return content


def _remove(part: Path) -> None:
    """Remove the folder of unfinished files, or a link or file of that name."""
    shutil.rmtree(part, ignore_errors=True)
    part.unlink(missing_ok=True)


def catalogue(conn: sqlite3.Connection, file: Path) -> dict[str, Any]:
    """Return the facts that the page shows before it reads the database."""
    totals, releases = read_totals(conn), read_lookups(conn).releases.values()
    return {
        "database": f"spack-cache-{sha256_of(file)[:16]}.db",
        "size": file.stat().st_size,
        "title": read_origin(conn).title,
        "statements": {"mirror": MIRROR, "tarball": TARBALL},
        "tarballPath": TARBALL_PATH[0],
        "publicMirrors": {item.name: public_mirror(item.name) for item in releases},
        "trust": TRUST_KEYS,
        "placeholder": PLACEHOLDER,
        "totals": {
            "binaries": totals.specs,
            "packages": totals.packages,
            "releases": totals.releases,
        },
        "packages": [*largest_packages(conn, 12)],
    }
