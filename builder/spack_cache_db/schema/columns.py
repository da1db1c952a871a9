"""What a table is made of: columns, their types and keys; those that several tables share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its SQL type, the table it points at, and whether NULL says something."""

    name: str
    type: type = int
    references: str | None = None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table. `unique` and `indexes` hold tuples of column names.

    `sparse` names columns that are NULL in nearly every row: each has an index of the other rows.
    A table whose primary key is not the single column `id` is stored WITHOUT ROWID, in the order
    of its key.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ("id",)
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    sparse: tuple[str, ...] = ()

    @property
    def without_rowid(self) -> bool:
        """Whether the rows are stored in the order of a key of their own."""
        return self.primary_key != ("id",)


def row_id() -> Column:
    """Return the column that numbers the rows of a table."""
    return Column("id")


def text(name: str, *, nullable: bool = False) -> Column:
    """Return a column of text."""
    return Column(name, str, nullable=nullable)


def to(name: str, table: str, *, nullable: bool = False) -> Column:
    """Return a column that points at the rows of a table, and is named for what they are."""
    return Column(name, references=table, nullable=nullable)


CONFIGURATION = {
    "package": "packages",
    "version": "versions",
    "compiler": "compilers",
    "os": "operating_systems",
    "platform": "platforms",
    "target": "targets",
    "variants": "variant_sets",
}
"""The columns that make a configuration, in the order of its record, and the table that names what
each of them points at."""

SEEN = (text("first_seen", nullable=True), text("last_seen", nullable=True))
