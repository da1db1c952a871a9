"""Writes the folder of an export: a file for each table, and two that describe them."""

from __future__ import annotations

import json
import sqlite3
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
"""A folder for unfinished files, inside the other one: on the same file system."""

DESCRIPTIONS = (data_package.NAME, croissant.NAME)
"""The files that describe the others. A folder with the first of them is an export."""


def write_folder(file: Path, folder: Path, format: str, license: str) -> ExportReport:
    """Write the export of a database; see `export`."""
    # A file that is not a database is refused before anything is written.
    with connected(file) as conn, alone_in(folder, "export"), folder_errors(folder):
        _require_own(folder)
        origin = _origin(conn, file, license)
        files = _write_files(conn, folder, FORMATS[format], origin)
    rows = {each.table.name: each.row_count for each in files}
    return ExportReport(folder, format, rows, sum(each.size for each in files))


def _require_own(folder: Path) -> None:
    """Raise OutputError if a folder has files, and none of an earlier export."""
    names = {path.name for path in folder.iterdir()} - {PART}
    if names and data_package.NAME not in names:
        raise other_files(folder)


def _origin(conn: sqlite3.Connection, file: Path, license: str) -> DataOrigin:
    origin = read_origin(conn)
    facts = origin_facts(conn)
    is_address = license.startswith(("http://", "https://"))
    name = "" if is_address else license
    url = license if is_address else ""
    if not license:
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
    part = folder / PART
    with unfinished_folder(part):
        # Write everything beside the files of an earlier export.
        files = []
        for table in _tables(conn, file_format):
            files.append(_write_file(conn, table, part, file_format))
        written = tuple(files)
        package = data_package.data_package(origin, written)
        _write_json(part / data_package.NAME, package)
        _write_json(part / croissant.NAME, croissant.croissant(origin, written))
        # Put it in place; the descriptions come last, when all that they name is there.
        for file in written:
            put_in_place(part / file.name, folder / file.name)
        for name in DESCRIPTIONS:
            put_in_place(part / name, folder / name)
    _remove_other_formats(folder, {file.name for file in written})
    return written


def _tables(
    conn: sqlite3.Connection, file_format: FileFormat
) -> tuple[ExportedTable, ...]:
    """Return the tables that a format can hold."""
    columns = {}
    for view in WIDE_VIEWS:
        rows = select(conn, f"SELECT name FROM pragma_table_info('{view}')")
        columns[view] = tuple(name for (name,) in rows)
    tables = exported_tables(descriptions(conn), columns)
    if file_format.has_bytes:
        return tables
    return tuple(
        table
        for table in tables
        if not any(column.type is bytes for column in table.columns)
    )


def _write_file(
    conn: sqlite3.Connection, table: ExportedTable, part: Path, file_format: FileFormat
) -> ExportedFile:
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
    tables = (*WIDE_VIEWS, *(table.name for table in TABLES))
    for table in tables:
        for file_format in FORMATS.values():
            name = f"{table}{file_format.suffix}"
            if name not in written:
                (folder / name).unlink(missing_ok=True)
