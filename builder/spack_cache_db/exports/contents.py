"""What an export contains: every table, and the wide views.

A table has ids of rows of other tables; a wide view has names in their place, and needs
no other table. Rows are in the order of a key, so that the same database gives the same
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spack_cache_db.schema.tables import TABLES, Column, Table

FORMAT_NAMES = ("parquet", "csv")
"""The formats of exported files; `table_files` writes them."""

WIDE_VIEWS = {
    "builds": ("package", "version_position", "hash"),
    "build_listings": ("release", "package", "version_position", "hash"),
    "release_counts": (
        *("release", "package", "version_position", "compiler", "os", "platform"),
        *("target", "variants"),
    ),
}
"""The views that are exported, and for each the columns by which its rows are sorted.

A `version_position` sorts versions as Spack does.
"""

INTEGERS = frozenset(
    (
        *("is_current", "is_external", "is_gone", "release_count", "size_bytes"),
        *("spec_count", "version_position"),
    )
)
"""The columns of these views that are numbers; all others are text."""

Descriptions = Mapping[str, Mapping[str | None, str]]
"""The descriptions of tables: of each column by its name, and of the table by None."""


@dataclass(frozen=True, slots=True)
class ExportedColumn:
    """A column of an exported file.

    Attributes:
        name: its name.
        type: `int`, `str` or `bytes`.
        nullable: whether a value may be missing.
        references: the table to whose `id` it refers; None if it is not a foreign key.
        description: a sentence for readers.
    """

    name: str
    type: type
    nullable: bool
    references: str | None
    description: str


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """A table or view that becomes a file.

    Attributes:
        name: its name.
        description: a sentence for readers.
        columns: its columns.
        primary_key: the columns that identify a row; empty for a view.
        order: the columns by which the rows are sorted.
    """

    name: str
    description: str
    columns: tuple[ExportedColumn, ...]
    primary_key: tuple[str, ...]
    order: tuple[str, ...]

    @property
    def statement(self) -> str:
        """The SQL statement that returns its rows in order."""
        columns = ", ".join(f'"{column.name}"' for column in self.columns)
        order = ", ".join(f'"{name}"' for name in self.order)
        return f'SELECT {columns} FROM "{self.name}" ORDER BY {order}'


def exported_tables(
    descriptions: Descriptions, view_columns: Mapping[str, tuple[str, ...]]
) -> tuple[ExportedTable, ...]:
    """Return all tables that an export has, the wide views first.

    Args:
        descriptions: the descriptions that the database has of its tables (in its table
            `column_descriptions`).
        view_columns: the names of the columns of each view in `WIDE_VIEWS`.
    """
    views = []
    for name, order in WIDE_VIEWS.items():
        texts = descriptions.get(name, {})
        columns = [_view_column(column, texts) for column in view_columns[name]]
        view = ExportedTable(
            name=name,
            description=texts.get(None, ""),
            columns=tuple(columns),
            primary_key=(),
            order=order,
        )
        views.append(view)
    tables = [_exported(table, descriptions.get(table.name, {})) for table in TABLES]
    return (*views, *tables)


def _view_column(name: str, texts: Mapping[str | None, str]) -> ExportedColumn:
    return ExportedColumn(
        name=name,
        type=int if name in INTEGERS else str,
        # SQLite does not know which columns of a view may be NULL.
        nullable=True,
        references=None,
        description=texts.get(name, ""),
    )


def _exported(table: Table, texts: Mapping[str | None, str]) -> ExportedTable:
    return ExportedTable(
        name=table.name,
        description=texts.get(None, ""),
        columns=tuple(_table_column(column, texts) for column in table.columns),
        primary_key=table.primary_key,
        order=table.primary_key,
    )


def _table_column(column: Column, texts: Mapping[str | None, str]) -> ExportedColumn:
    return ExportedColumn(
        name=column.name,
        type=column.type,
        nullable=column.nullable,
        references=column.references,
        description=texts.get(column.name, ""),
    )
