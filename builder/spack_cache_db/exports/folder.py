"""Writes the folder of an export: a file for each table, and two that describe them.

```
builds.parquet
compilers.parquet
…
croissant.json
datapackage.json
```
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spack_cache_db.bounded_files import sha256_of
from spack_cache_db.data_source import LICENSE_ROW, LICENSE_URLS, SOURCE_ROW
from spack_cache_db.exports import croissant, data_package
from spack_cache_db.exports.contents import (
    WIDE_VIEWS,
    ExportedTable,
    exported_tables,
)
from spack_cache_db.exports.origin import DataOrigin, ExportedFile
from spack_cache_db.exports.report import ExportReport
from spack_cache_db.exports.table_files import FORMATS, FileFormat, write_table
from spack_cache_db.output_folders import (
    alone_in,
    folder_errors,
    other_files,
    put_in_place,
    unfinished_folder,
)
from spack_cache_db.query.open.lookups import descriptions
from spack_cache_db.query.open.sql import connected, select
from spack_cache_db.query.stored.origin import origin_facts, read_origin
from spack_cache_db.schema.identity import AS_OF
from spack_cache_db.schema.tables import TABLES

PART = ".export.tmp"
"""The folder for unfinished files. It is inside the other one, and so on the same file
system: files can be renamed from one to the other.
"""

_MARK = data_package.NAME
"""The file by which a folder is recognized as an export."""

DESCRIPTIONS = (data_package.NAME, croissant.NAME)
"""The files that describe the others."""


def write_folder(file: Path, folder: Path, format: str, license: str) -> ExportReport:
    """Write the export of a database; see `export`."""
    # The database is opened first: another file is refused before anything is written.
    with connected(file) as conn, alone_in(folder, "export"), folder_errors(folder):
        _require_own(folder)
        origin = _origin(conn, file, license)
        files = _write_files(conn, folder, FORMATS[format], origin)
    rows = {written.table.name: written.row_count for written in files}
    size = sum(written.size for written in files)
    return ExportReport(folder, format, rows, size)


def _require_own(folder: Path) -> None:
    """Raise OutputError if a folder has files of others, and no earlier export."""
    names = {path.name for path in folder.iterdir()}
    if _MARK in names:
        return
    # The first export may have been killed, after it had put some files in place.
    if names - {PART, *_names_of_files()}:
        raise other_files(folder)


def _names_of_files() -> Iterator[str]:
    """Yield the names of all files that exports write, in any format."""
    yield from DESCRIPTIONS
    for table in (*WIDE_VIEWS, *(table.name for table in TABLES)):
        for file_format in FORMATS.values():
            yield f"{table}{file_format.suffix}"


def _origin(conn: sqlite3.Connection, file: Path, license: str) -> DataOrigin:
    """Return where the data come from.

    Args:
        conn: a connection to the database.
        file: its path.
        license: the license of the data, by its name or address; empty for the one that
            the database names, if it names any.
    """
    origin = read_origin(conn)
    facts = origin_facts(conn)
    name = ""
    url = ""
    if license.startswith(("http://", "https://")):
        url = license
    elif license:
        name = license
    else:
        name = facts.get(LICENSE_ROW, "")
        url = LICENSE_URLS.get(name, "")
    return DataOrigin(
        title=origin.title,
        day=facts.get(AS_OF),
        checksum=sha256_of(file),
        license_name=name,
        license_url=url,
        source_url=facts.get(SOURCE_ROW, ""),
    )


def _write_files(
    conn: sqlite3.Connection, folder: Path, file_format: FileFormat, origin: DataOrigin
) -> tuple[ExportedFile, ...]:
    """Write the files of all tables, and their descriptions; return the former."""
    part = folder / PART
    with unfinished_folder(part):
        # Write everything beside the files of an earlier export.
        written = []
        for table in _tables(conn, file_format):
            written.append(_write_file(conn, table, part, file_format))
        files = tuple(written)
        package = data_package.data_package(origin, files)
        _write_json(part / data_package.NAME, package)
        _write_json(part / croissant.NAME, croissant.croissant(origin, files))
        # Put it in place. The descriptions come last, when all that they name is there.
        for file in files:
            put_in_place(part / file.name, folder / file.name)
        for name in DESCRIPTIONS:
            put_in_place(part / name, folder / name)
    _remove_other_formats(folder, {file.name for file in files})
    return files


def _tables(
    conn: sqlite3.Connection, file_format: FileFormat
) -> tuple[ExportedTable, ...]:
    """Return the tables and views that a format can have."""
    view_columns = {}
    for view in WIDE_VIEWS:
        rows = select(conn, f"SELECT name FROM pragma_table_info('{view}')")
        view_columns[view] = tuple(name for (name,) in rows)
    tables = exported_tables(descriptions(conn), view_columns)
    if file_format.has_bytes:
        return tables
    return tuple(table for table in tables if not _has_bytes(table))


def _has_bytes(table: ExportedTable) -> bool:
    return any(column.type is bytes for column in table.columns)


def _write_file(
    conn: sqlite3.Connection, table: ExportedTable, part: Path, file_format: FileFormat
) -> ExportedFile:
    """Write the file of a table into the folder for unfinished files."""
    path = part / f"{table.name}{file_format.suffix}"
    row_count = write_table(conn, table, path, file_format)
    return ExportedFile(
        table=table,
        name=path.name,
        media_type=file_format.media_type,
        size=path.stat().st_size,
        sha256=sha256_of(path),
        row_count=row_count,
    )


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _remove_other_formats(folder: Path, written: set[str]) -> None:
    """Remove files of our tables that an earlier export wrote in another format.

    Files of others in the folder stay, whatever their format.
    """
    for name in _names_of_files():
        if name not in written and name not in DESCRIPTIONS:
            (folder / name).unlink(missing_ok=True)
