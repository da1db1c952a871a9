"""`datapackage.json`: the description of an export for Frictionless and its readers.

Source: the Data Package and Table Schema specifications, version 1
(https://specs.frictionlessdata.io/).
"""

from __future__ import annotations

from typing import Any

from spack_cache_db.exports.contents import ExportedColumn, ExportedTable
from spack_cache_db.exports.origin import DataOrigin, ExportedFile

NAME = "datapackage.json"
"""The name of the file."""

_TYPES = {int: "integer", str: "string", bytes: "string"}
"""The types of columns in Table Schema, which has none for bytes."""


def data_package(origin: DataOrigin, files: tuple[ExportedFile, ...]) -> dict[str, Any]:
    """Return the content of `datapackage.json`.

    Args:
        origin: where the data come from.
        files: the files of the export, which are `resources` there.
    """
    package: dict[str, Any] = {
        "name": origin.name,
        "title": origin.title,
        "description": origin.description,
        "version": origin.version,
    }
    license: dict[str, str] = {}
    if origin.license_name:
        license["name"] = origin.license_name
    if origin.license_url:
        license["path"] = origin.license_url
    if license:
        package["licenses"] = [license]
    if origin.source_url:
        package["sources"] = [{"title": origin.title, "path": origin.source_url}]
    package["resources"] = [_resource(file) for file in files]
    return package


def _resource(file: ExportedFile) -> dict[str, Any]:
    """Return the description of a file and its table."""
    # `csv` for `builds.csv.gz`.
    _, file_format, *_ = file.name.split(".")
    resource: dict[str, Any] = {
        "name": file.table.name,
        "description": file.table.description,
        "path": file.name,
        "format": file_format,
        "mediatype": file.media_type,
        "encoding": "utf-8",
        "bytes": file.size,
        "hash": f"sha256:{file.sha256}",
        "schema": _schema(file.table),
    }
    if file.name.endswith(".gz"):
        resource["compression"] = "gz"
    return resource


def _schema(table: ExportedTable) -> dict[str, Any]:
    """Return the description of the columns of a table, and of its keys."""
    schema: dict[str, Any] = {
        "fields": [_field(column) for column in table.columns],
        # NULL is nothing between two commas of a CSV file; an empty text has quotes.
        "missingValues": [""],
    }
    if table.primary_key:
        schema["primaryKey"] = list(table.primary_key)
    foreign_keys = []
    for column in table.columns:
        if column.references is not None:
            foreign_keys.append(_foreign_key(table, column))
    if foreign_keys:
        schema["foreignKeys"] = foreign_keys
    return schema


def _field(column: ExportedColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": _TYPES[column.type],
        "description": column.description,
    }


def _foreign_key(table: ExportedTable, column: ExportedColumn) -> dict[str, Any]:
    """Return the reference of a column to the `id` of another table, or of its own."""
    # An empty name means the table itself (Table Schema, "foreign keys").
    resource = "" if column.references == table.name else column.references
    reference = {"resource": resource, "fields": ["id"]}
    return {"fields": [column.name], "reference": reference}
