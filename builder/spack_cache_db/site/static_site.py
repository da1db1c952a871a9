"""The command `export-static`: a folder that shows a database from any web server."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from spack_cache_db.bounded_files import put_in_place, sha256_of
from spack_cache_db.errors import OutputError, reason
from spack_cache_db.query.connection import connected, select
from spack_cache_db.query.installation import MIRROR, PLACEHOLDER, TARBALL, TRUST_KEYS, read_origin
from spack_cache_db.releases import public_mirror
from spack_cache_db.schema import TARBALL_PATH
from spack_cache_db.site import site_folder

CATALOGUE = "catalogue.json"
"""What the page reads first. It is written last, and a folder that has it is one of ours."""

RELEASES = "SELECT name FROM releases ORDER BY position"


def export_static(file: Path, folder: Path) -> dict[str, Any]:
    """Write a page that shows a database, with a copy of it, and return what the page is told.

    The copy is named after its content: a page that is open when another database is exported
    never reads parts of both. The copy of an earlier export is removed.

    Args:
        file: a file made by `build`.
        folder: a new or empty folder, or one that this function wrote.

    Raises:
        DatabaseError: the file is not one of this program, or is damaged.
        OutputError: the folder holds something else, or cannot be written.
    """
    with connected(file):  # It is one of ours: else nothing is written.
        pass
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not (folder / CATALOGUE).is_file():
            raise OutputError(f"{folder}: has other files, expected a new or an empty folder")
        part = folder / ".part"
        shutil.copyfile(file, part)
        with connected(part) as conn:
            told = catalogue(conn, part)
        put_in_place(part, folder / told["database"])
        for each in (*(site_folder() / "static-site").iterdir(), _style_sheet()):
            shutil.copyfile(each, folder / each.name)
        part.write_text(json.dumps(told, indent=1), encoding="utf-8")
        put_in_place(part, folder / CATALOGUE)
        for each in folder.glob("spack-cache-*.db"):
            if each.name != told["database"]:
                each.unlink()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {reason(error)}") from None
    return told


def catalogue(conn: sqlite3.Connection, file: Path) -> dict[str, Any]:
    """Return what the page needs to know before it reads anything of a file.

    The rules by which a binary's mirror is found are those of `query.installation`.
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
    }


def _style_sheet() -> Path:
    return site_folder() / "static" / "site.css"
