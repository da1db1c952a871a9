"""The command `export-static`: writes a folder that any web server can publish.

The folder has a page, a copy of the database, and `catalogue.json`, which the page
reads first. It reads the parts of the database that it needs over the network, with
SQLite in the browser.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from spack_cache_db.bounded_files import sha256_of
from spack_cache_db.exports.exporting import export
from spack_cache_db.output_folders import (
    alone_in,
    folder_errors,
    other_files,
    put_in_place,
    unfinished_folder,
)
from spack_cache_db.query.commands.install import TRUST_KEYS, add_commands
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.open.sql import connected
from spack_cache_db.query.stored.mirrors import every_mirror
from spack_cache_db.query.stored.origin import read_origin
from spack_cache_db.query.stored.totals import largest_packages, read_totals
from spack_cache_db.releases import public_mirror
from spack_cache_db.schema.tarballs import TARBALL_PATH
from spack_cache_db.site.folder import site_folder

CATALOGUE = "catalogue.json"
"""A folder that contains this file was written by this command."""
TABLES = "tables"
"""The folder for tables inside the other one."""
PACKAGE = "datapackage.json"
"""The description of the tables, in their folder."""
PART = ".export-static.tmp"
"""A folder inside the other one, and so on the same file system, for unfinished
files.
"""
CLOSURE = """
WITH RECURSIVE closure(spec) AS (
  SELECT id FROM specs WHERE hash = :hash
  UNION
  SELECT dependencies.dependency_id FROM closure
  CROSS JOIN dependencies ON dependencies.spec_id = closure.spec
  CROSS JOIN dependency_types ON dependency_types.id = dependencies.dependency_type_id
  WHERE ',' || dependency_types.types || ',' LIKE '%,link,%'
    OR ',' || dependency_types.types || ',' LIKE '%,run,%'
)
SELECT specs.hash, packages.name, (
  SELECT json_group_array(records.mirror_id) FROM records
  WHERE records.is_listed AND records.spec_id = coalesce(
    (SELECT build_spec_id FROM splices WHERE splices.spec_id = specs.id LIMIT 1), specs.id))
FROM closure
CROSS JOIN specs ON specs.id = closure.spec
CROSS JOIN configurations ON configurations.id = specs.configuration_id
CROSS JOIN packages ON packages.id = configurations.package_id
WHERE specs.is_binary OR NOT specs.is_external
ORDER BY specs.hash <> :hash, packages.name, specs.hash
"""
"""The specs that an installation of a binary needs as binaries, and the mirrors that
list each; the binary itself comes first.

The mirrors of a spliced spec are those of the spec that it was built as
(`build_spec_id`). CROSS JOIN makes SQLite start from the closure, so that it reads
little over the network.
"""
TARBALL = """
SELECT tarball FROM build_listings WHERE release = :release AND hash = :hash
"""
"""The address of a binary in a release."""
STYLES = ("tokens", "parts", "pages")
"""The style sheets of our own pages, in the order in which pages load them."""
LARGEST_PACKAGES = 12
"""Number of packages that the page shows before a search."""
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


def catalogue(conn: sqlite3.Connection, file: Path) -> dict[str, Any]:
    """Return the facts that the page shows before it reads the database.

    Args:
        conn: a connection to the database.
        file: its file.
    """
    totals = read_totals(conn)
    lookups = read_lookups(conn)
    # The mirrors, the preferred one first, with the ids of their indexes. If commands
    # add two mirrors of one release, the second one gets another name.
    mirrors = []
    for mirror, ids in every_mirror(lookups).items():
        (add_command,) = add_commands([mirror])
        _, add_command_of_second = add_commands([mirror, mirror])
        mirror_facts = {
            "ids": list(ids),
            "release": mirror.release,
            "add": add_command,
            "addBeside": add_command_of_second,
            # Signed unless the mirror says otherwise.
            "isSigned": mirror.is_signed is not False,
        }
        mirrors.append(mirror_facts)
    release_names = [release.name for release in lookups.releases.values()]
    return {
        "database": f"spack-cache-{sha256_of(file)[:16]}.db",
        "size": file.stat().st_size,
        "title": read_origin(conn).title,
        "statements": {"closure": CLOSURE, "tarball": TARBALL},
        "mirrors": mirrors,
        "tarballPath": TARBALL_PATH[0],
        "publicMirrors": {name: public_mirror(name) for name in release_names},
        "trust": TRUST_KEYS,
        "totals": {
            "binaries": totals.specs,
            "packages": totals.packages,
            "releases": totals.releases,
        },
        "packages": list(largest_packages(conn, LARGEST_PACKAGES)),
    }
