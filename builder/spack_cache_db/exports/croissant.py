"""`croissant.json`: the description of an export for catalogues of machine learning.

Source: the Croissant format 1.0 (https://docs.mlcommons.org/croissant/docs/).
"""

from __future__ import annotations

from typing import Any

from spack_cache_db.exports.contents import ExportedColumn
from spack_cache_db.exports.origin import DataOrigin, ExportedFile

NAME = "croissant.json"
"""The name of the file."""

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context of Croissant 1.0, as its specification prints it."""

_TYPES = {int: "sc:Integer", str: "sc:Text", bytes: "sc:Text"}
"""The types of columns in Croissant, which has none for bytes."""


def croissant(origin: DataOrigin, files: tuple[ExportedFile, ...]) -> dict[str, Any]:
    """Return the content of `croissant.json`: the files, and the columns in them.

    Args:
        origin: where the data come from.
        files: the files of the export.
    """
    exported = {file.table.name for file in files}
    dataset: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": origin.name,
        "description": origin.description,
        "version": origin.version,
        "citeAs": origin.citation,
    }
    if origin.license_url or origin.license_name:
        dataset["license"] = origin.license_url or origin.license_name
    if origin.source_url:
        dataset["url"] = origin.source_url
    if origin.day:
        dataset["datePublished"] = origin.day
    dataset["distribution"] = [_file_object(file) for file in files]
    dataset["recordSet"] = [_record_set(file, exported) for file in files]
    return dataset


def _file_object(file: ExportedFile) -> dict[str, Any]:
    """Return the description of a file, as bytes with a checksum."""
    return {
        "@type": "cr:FileObject",
        "@id": file.name,
        "name": file.name,
        "contentUrl": file.name,
        "contentSize": f"{file.size} B",
        "encodingFormat": file.media_type,
        "sha256": file.sha256,
    }


def _record_set(file: ExportedFile, exported: set[str]) -> dict[str, Any]:
    """Return the description of the rows in a file.

    `exported` are the names of all tables of the export, to which columns may refer.
    """
    table = file.table
    record_set: dict[str, Any] = {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.description,
    }
    if table.primary_key:
        keys = [f"{table.name}/{name}" for name in table.primary_key]
        record_set["key"] = [{"@id": key} for key in keys]
    record_set["field"] = [_field(column, file, exported) for column in table.columns]
    return record_set


def _field(
    column: ExportedColumn, file: ExportedFile, exported: set[str]
) -> dict[str, Any]:
    """Return the description of a column, which has the id `table/column`."""
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{file.table.name}/{column.name}",
        "name": column.name,
        "description": column.description,
        "dataType": _TYPES[column.type],
        "source": {
            "fileObject": {"@id": file.name},
            "extract": {"column": column.name},
        },
    }
    # A reference of a table to itself would be a cycle, which readers refuse.
    if column.references in exported and column.references != file.table.name:
        field["references"] = {"field": {"@id": f"{column.references}/id"}}
    return field
