"""The command `export-static`: writes a folder that any web server can publish.

The folder has the pages of the site as files, a copy of the database, and
`catalogue.json`. The first page searches, shows binaries and runs SQL: its scripts read
`catalogue.json`, and then the parts of the copy that they need over the network, with
SQLite in the browser.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spack_cache_db.bounded_files import sha256_of
from spack_cache_db.exports.exporting import export
from spack_cache_db.output_folders import (
    alone_in,
    folder_errors,
    other_files,
    put_all_in_place,
    put_in_place,
    unfinished_folder,
)
from spack_cache_db.query.choice import proposed
from spack_cache_db.query.open.sql import connected
from spack_cache_db.site.folder import asset_version, site_folder
from spack_cache_db.site.static.addresses import ASSETS, StaticSettings
from spack_cache_db.site.static.catalogue import CATALOGUE, catalogue
from spack_cache_db.site.static.pages import Pages
from spack_cache_db.site.static.vocabulary import VOCABULARY, search_vocabulary
from spack_cache_db.spack.targets import MAC, ancestors, known_targets, macs_of

TABLES = "tables"
"""The folder for tables inside the other one."""
PACKAGE = "datapackage.json"
"""The description of the tables, in their folder."""
PART = ".export-static.tmp"
"""A folder inside the other one, and so on the same file system, for unfinished
files.
"""
FOLDERS = ("package", "release", "stack", "coverage", "diff")
"""The folders of pages; pages of earlier exports are removed from them."""
LOADED = ("tokens.css", "parts.css", "pages.css", "site.js")
"""What all pages load, as on a server."""
MACHINES = "machines.js"
"""The module that says what runs on which machine."""
PHRASES = "phrases.js"
"""The module with the phrases of reasons and of builds."""
_COPY = re.compile(r"spack-cache-[0-9a-f]{16}\.db")
"""The name of a copy of a database, with the first digits of its checksum."""


def export_static(
    file: Path, folder: Path, tables: str | None = None
) -> dict[str, Any]:
    """Write the pages of the site and a copy of the database, and return the catalogue
    of the first page, with the number of pages.

    With `tables`, a format of `export`, the folder `tables` gets the tables as files.

    The copy of the database is named after its content, so that an open page never
    mixes two exports. Earlier copies and pages are removed. A link in place of a file
    is replaced, not followed.

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
    old_copies = _copies_in(folder)
    # The tables first, which have a folder of their own: the pages link to them.
    if tables is not None:
        export(file, folder / TABLES, format=tables)

    # Write the new files beside the old ones.
    part = folder / PART
    with unfinished_folder(part):
        settings = _copied(file, part, with_tables=tables is not None)
        copy = settings.copy
        with connected(part / copy) as conn:
            pages = Pages(conn, settings)
            content = catalogue(conn, copy, settings.size, pages.files)
            vocabulary = search_vocabulary(conn)
            page_files = _write_pages(part, pages.rendered())
        # Each file of data for the scripts is written here, beside the catalogue.
        (part / CATALOGUE).write_text(json.dumps(content, indent=1), encoding="utf-8")
        words = json.dumps(vocabulary, separators=(",", ":"))
        (part / VOCABULARY).write_text(words, encoding="utf-8")
        written = [VOCABULARY, *_copy_assets(part), *page_files]

        # Replace the old ones: the copy, the catalogue that names it, then all others,
        # which only a folder with a catalogue may have.
        put_in_place(part / copy, folder / copy)
        put_in_place(part / CATALOGUE, folder / CATALOGUE)
        put_all_in_place(part, folder, written)

    # Remove what this export does not have.
    _remove_others(folder, {folder / path for path in written})
    for old_copy in old_copies - {copy}:
        (folder / old_copy).unlink()
    return {**content, "pages": len(page_files)}


def _copies_in(folder: Path) -> set[str]:
    """Return the names of the copies of databases in a folder of an earlier export.

    Raises:
        OutputError: the folder has files of somebody else.
    """
    names = {path.name for path in folder.iterdir()} - {PART, TABLES}
    copies = {name for name in names if _COPY.fullmatch(name)}
    # Copies may be there without a catalogue, if this command was killed before it
    # wrote the catalogue.
    others = names - copies
    if others and not (folder / CATALOGUE).is_file():
        raise other_files(folder)
    return copies


def _copied(file: Path, part: Path, *, with_tables: bool) -> StaticSettings:
    """Copy a database, under the name of its content, and return the settings of pages
    about the copy.
    """
    unnamed = part / "copy"
    shutil.copyfile(file, unnamed)
    sha256 = sha256_of(unnamed)
    size = unnamed.stat().st_size
    name = f"spack-cache-{sha256[:16]}.db"
    unnamed.rename(part / name)
    return StaticSettings(
        name=Path(name).stem,
        templates=(str(site_folder() / "templates"),),
        size=size,
        sha256=sha256,
        styles=asset_version(),
        file=str(file),
        copy=name,
        # Without tables of this database, those of an earlier one are not linked.
        tables=f"{TABLES}/{PACKAGE}" if with_tables else None,
    )


def _write_pages(part: Path, pages: Iterable[tuple[str, bytes]]) -> list[str]:
    """Write pages, given by the names of their files, and return these names."""
    names = []
    for name, content in pages:
        path = part / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        names.append(name)
    return names


def _copy_assets(part: Path) -> list[str]:
    """Copy what pages load, and return the names of these files."""
    files = sorted((site_folder() / "static-site").iterdir())
    files += [site_folder() / "static" / name for name in LOADED]
    (part / ASSETS).mkdir()
    for file in files:
        shutil.copyfile(file, part / ASSETS / file.name)
    names = [file.name for file in files]
    for name, text in {MACHINES: machines_module(), PHRASES: phrases_module()}.items():
        (part / ASSETS / name).write_text(text, encoding="utf-8")
        names.append(name)
    return [f"{ASSETS}/{name}" for name in names]


def machines_module() -> str:
    """Return the module that says what runs on which machines."""
    runs = {target: ancestors(target) for target in known_targets()}
    macs = macs_of(known_targets())
    return (
        "/* The targets whose binaries run on each machine too, the nearest first. */\n"
        f"export const ANCESTORS = {json.dumps(runs)};\n"
        "/* Whether a machine is a Mac; those that may be one have no entry. */\n"
        f"export const IS_MAC = {json.dumps(macs)};\n"
        f"export const MAC = {json.dumps(MAC)};\n"
    )


def phrases_module() -> str:
    """Return the module with the words of proposed builds."""
    return (
        "/* What a reason and the words of a build consist of; {} is a text. */\n"
        f"export const PHRASES = {json.dumps(proposed.PHRASES)};\n"
        f"export const MOST_OPTIONS = {proposed.MOST_OPTIONS};\n"
    )


def _remove_others(folder: Path, written: set[Path]) -> None:
    """Remove the pages of earlier exports that this one does not have."""
    for name in FOLDERS:
        for path in (folder / name).glob("*.html"):
            if path not in written:
                path.unlink()
