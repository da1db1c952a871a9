"""Writes a table as one file: Parquet, or CSV compressed by gzip."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import csv, parquet

from spack_cache_db.exports.contents import ExportedColumn, ExportedTable
from spack_cache_db.query.open.sql import select

ROWS_AT_ONCE = 2**17
"""Rows of a group in a Parquet file, and the most that are in memory at once."""

_TYPES = {int: pyarrow.int64(), str: pyarrow.string(), bytes: pyarrow.binary()}
"""The types of columns in Arrow."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of exported files.

    Attributes:
        suffix: the end of a file's name.
        media_type: the type by which web servers and catalogues name it.
        has_bytes: whether columns of bytes can be written.
        make_writer: returns a writer of batches, given a path and the schema.
    """

    suffix: str
    media_type: str
    has_bytes: bool
    make_writer: Callable[[Path, pyarrow.Schema], Any]


def _parquet_writer(path: Path, schema: pyarrow.Schema) -> Any:
    """Return a writer of a Parquet file, as a context that closes it."""
    return parquet.ParquetWriter(path, schema, compression="zstd")


class _CsvWriter:
    """Writes a CSV file, compressed by gzip, as a context that closes it.

    Every value has quotes. So `""` is an empty text, and nothing between two commas is
    NULL.
    """

    def __init__(self, path: Path, schema: pyarrow.Schema) -> None:
        self._file = pyarrow.output_stream(path, compression="gzip")
        options = csv.WriteOptions(quoting_style="all_valid")
        self._writer = csv.CSVWriter(self._file, schema, write_options=options)

    def write_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Append rows."""
        self._writer.write_batch(batch)

    def __enter__(self) -> _CsvWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()
        self._file.close()


FORMATS = {
    "parquet": FileFormat(".parquet", "application/x-parquet", True, _parquet_writer),
    "csv": FileFormat(".csv.gz", "text/csv", False, _CsvWriter),
}
"""The formats that `export` writes, by the names of its option."""


def write_table(
    conn: sqlite3.Connection, table: ExportedTable, path: Path, file_format: FileFormat
) -> int:
    """Write the rows of a table into a new file, and return their number.

    Memory holds `ROWS_AT_ONCE` rows at a time.
    """
    schema = arrow_schema(table)
    row_count = 0
    with file_format.make_writer(path, schema) as writer:
        for rows in _pieces(conn, table):
            writer.write_batch(_batch(rows, schema))
            row_count += len(rows)
    return row_count


def arrow_schema(table: ExportedTable) -> pyarrow.Schema:
    """Return the names, types and descriptions of a table's columns for Arrow."""
    fields = [_field(column) for column in table.columns]
    return pyarrow.schema(fields, metadata={"description": table.description})


def _field(column: ExportedColumn) -> pyarrow.Field:
    """Return the name, type and description of a column for Arrow."""
    return pyarrow.field(
        column.name,
        _TYPES[column.type],
        nullable=column.nullable,
        metadata={"description": column.description},
    )


def _pieces(
    conn: sqlite3.Connection, table: ExportedTable
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a table in lists of up to `ROWS_AT_ONCE`."""
    rows: list[tuple[Any, ...]] = []
    for row in select(conn, table.statement):
        rows.append(row)
        if len(rows) == ROWS_AT_ONCE:
            yield rows
            rows = []
    if rows:
        yield rows


def _batch(rows: list[tuple[Any, ...]], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Return rows in the form of Arrow, which has an array for each column."""
    columns = zip(*rows, strict=True)
    arrays = []
    for values, field in zip(columns, schema, strict=True):
        # Arrow raises an exception for a value of another type. No build writes one, so
        # it means damage (`damage_as_error`).
        arrays.append(pyarrow.array(values, type=field.type))
    return pyarrow.record_batch(arrays, schema=schema)
