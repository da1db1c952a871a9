"""The command `export-static`: writes a folder that any web server can publish.

The folder has a page, a copy of the database, and `catalogue.json`, which the page
reads first. It reads the parts of the database that it needs over the network, with
SQLite in the browser.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from spack_cache_db.exports.exporting import export
from spack_cache_db.output_folders import (
    alone_in,
    folder_errors,
    other_files,
    put_in_place,
    unfinished_folder,
)
from spack_cache_db.query.open.sql import connected
from spack_cache_db.site.folder import site_folder
from spack_cache_db.site.static.catalogue import CATALOGUE, catalogue

TABLES = "tables"
"""The folder for tables inside the other one."""
PACKAGE = "datapackage.json"
"""The description of the tables, in their folder."""
PART = ".export-static.tmp"
"""A folder inside the other one, and so on the same file system, for unfinished
files.
"""
STYLES = ("tokens", "parts", "pages")
"""The style sheets of our own pages, in the order in which pages load them."""
_COPY = re.compile(r"spack-cache-[0-9a-f]{16}\.db")
"""The name of a copy of a database, with the first digits of its checksum."""


def export_static(
    file: Path, folder: Path, tables: str | None = None
) -> dict[str, Any]:
    """Write a page that shows a database, with a copy of it, and return the page's
    catalogue.

    With `tables`, a format of `export`, the folder `tables` gets the tables as files.

    The copy of the database is named after its content, so that an open page never
    mixes two exports. Earlier copies are removed. A link in place of a file is
    replaced, not followed.

    Raises:
        DatabaseError: the file is not a database of this program, or is damaged.
        OutputError: the folder contains other files, or cannot be written.
    """
    with connected(file):  # Checks the file before anything is written.
        pass
    with alone_in(folder, "export"), folder_errors(folder):
        return _export(file, folder, tables)


def _export(file: Path, folder: Path, tables: str | None) -> dict[str, Any]:
    """Write the files into a folder that no other process changes."""
    # Refuse a folder with files of somebody else. Copies and tables may be there
    # without a catalogue, if this command was killed before it wrote the catalogue.
    names = {path.name for path in folder.iterdir()} - {PART, TABLES}
    copies = {name for name in names if _COPY.fullmatch(name)}
    others = names - copies
    if others and not (folder / CATALOGUE).is_file():
        raise other_files(folder)

    # The tables first, which have a folder of their own: the page links to them.
    if tables is not None:
        export(file, folder / TABLES, format=tables)

    # Write the new files beside the old ones.
    part = folder / PART
    with unfinished_folder(part):
        copy = part / "copy"
        shutil.copyfile(file, copy)
        with connected(copy) as conn:
            content = catalogue(conn, copy)
        # Without tables of this database, those of an earlier one are not linked.
        content["tables"] = None if tables is None else f"{TABLES}/{PACKAGE}"
        name = content["database"]
        copy.rename(part / name)
        # Each file of data for the scripts is written here, beside the catalogue.
        (part / CATALOGUE).write_text(json.dumps(content, indent=1), encoding="utf-8")
        pages = list((site_folder() / "static-site").iterdir())
        styles = site_folder() / "static"
        pages += [styles / f"{name}.css" for name in STYLES]
        for page in pages:
            shutil.copyfile(page, part / page.name)

        # Replace the old ones: the copy, the catalogue that names it, then all others,
        # which only a folder with a catalogue may have.
        put_in_place(part / name, folder / name)
        put_in_place(part / CATALOGUE, folder / CATALOGUE)
        for page in pages:
            put_in_place(part / page.name, folder / page.name)
    for old_copy in copies - {name}:
        (folder / old_copy).unlink()
    return content
