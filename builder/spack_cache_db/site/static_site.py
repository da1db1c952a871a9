"""The command `export-static`: a folder that shows a database from any web server."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from spack_cache_db.bounded_files import alone_in, put_in_place, sha256_of
from spack_cache_db.errors import OutputError, reason
from spack_cache_db.query.database import connected, select
from spack_cache_db.query.installation import MIRROR, PLACEHOLDER, TARBALL, TRUST_KEYS, read_origin
from spack_cache_db.releases import public_mirror
from spack_cache_db.schema import TARBALL_PATH
from spack_cache_db.site import site_folder

CATALOGUE = "catalogue.json"
"""The file that the page reads first. A folder that contains it was written by this command."""

PART = ".export-static.tmp"
"""The folder in which files are written until they are whole."""

RELEASES = "SELECT name FROM releases ORDER BY position"

TOTALS = {
    "binaries": "SELECT count(*) FROM specs WHERE release_count > 0",
    "packages": "SELECT count(*) FROM packages",
    "releases": "SELECT count(*) FROM releases",
}
"""What the first page counts."""

PACKAGES = """
SELECT name, newest_version, spec_count FROM packages
ORDER BY spec_count DESC, name LIMIT 12"""

_COPY = re.compile(r"spack-cache-[0-9a-f]{16}\.db")


def export_static(file: Path, folder: Path) -> dict[str, Any]:
    """Write a page that shows a database, with a copy of it, and return the page's catalogue.

    Each file is written into a folder of its own and then renamed: a run that is killed or fails
    leaves no half file, the next run removes what it left, and a link is replaced, not followed.
    The folder of unfinished files is inside the other one, which may be a file system of its own.
    The copy of the database is named after its content: a page that is open when another database
    is exported never reads parts of both. Copies of earlier exports are removed.

    Args:
        file: a file made by `build`.
        folder: a new or empty folder, or one that this function wrote.

    Raises:
        DatabaseError: the file is not a database of this program, or is damaged.
        OutputError: the folder contains other files, or cannot be written.
    """
    with connected(file):  # Nothing is written for a file that is not a database of this program.
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
        # By its catalogue the folder is known, so the catalogue comes before any file but the copy.
        for each in (name, CATALOGUE, *(page.name for page in pages)):
            put_in_place(part / each, folder / each)
    finally:
        _remove(part)
    for old in copies - {name}:
        (folder / old).unlink()
    return content


def _remove(part: Path) -> None:
    """Remove what a run has not finished; a link or a file of that name as well."""
    if part.is_dir() and not part.is_symlink():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)


def catalogue(conn: sqlite3.Connection, file: Path) -> dict[str, Any]:
    """Return what the page reads before it reads the database.

    Args:
        conn: a connection to the database.
        file: the database, which is read for its size and its checksum.
    """
    return {
        "database": f"spack-cache-{sha256_of(file)[:16]}.db",
        "size": file.stat().st_size,
        "title": read_origin(conn).title,
        "statements": {"mirror": MIRROR, "tarball": TARBALL},
        "tarballPath": TARBALL_PATH[0],
        "publicMirrors": {name: public_mirror(name) for (name,) in select(conn, RELEASES)},
        "trust": TRUST_KEYS,
        "placeholder": PLACEHOLDER,
        "totals": {name: count for name, sql in TOTALS.items() for (count,) in select(conn, sql)},
        "packages": [*select(conn, PACKAGES)],
    }
