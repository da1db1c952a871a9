"""The tables of a database: columns, types, keys and indexes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its SQL type, the table that it references, and whether it may be
    NULL.
    """

    name: str
    type: type = int
    references: str | None = None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class TableIndex:
    """An index of a table."""

    name: str
    columns: tuple[str, ...]
    is_unique: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `unique` and `indexes` are tuples of column names.

    A table whose primary key is not the single column `id` is stored WITHOUT ROWID, in
    the order of its key.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ("id",)
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()

    def every_index(self) -> Iterator[TableIndex]:
        """Yield the indexes of the table, except its primary key."""
        for prefix, keys in (("unique", self.unique), ("idx", self.indexes)):
            for columns in keys:
                name = f"{prefix}_{self.name}_{'_'.join(columns)}"
                yield TableIndex(name, columns, is_unique=prefix == "unique")

    @property
    def without_rowid(self) -> bool:
        """Whether the rows are stored in the order of the primary key."""
        return self.primary_key != ("id",)


def text(name: str, *, nullable: bool = False) -> Column:
    """Return a text column."""
    return Column(name, str, nullable=nullable)


def to(name: str, table: str, *, nullable: bool = False) -> Column:
    """Return a column that references the rows of a table."""
    return Column(name, references=table, nullable=nullable)


def _table(name: str, *columns: Column, **keys: Any) -> Table:
    """Return a table; without `primary_key`, its first column is `id`."""
    id_column = () if "primary_key" in keys else (Column("id"),)
    return Table(name, (*id_column, *columns), **keys)


CONFIGURATION = {
    "package": "packages",
    "version": "versions",
    "compiler": "compilers",
    "os": "operating_systems",
    "platform": "platforms",
    "target": "targets",
    "variants": "variant_sets",
}
"""The columns of a configuration, in the order of its record, and their tables."""

LABELS = {"compiler": "compiler", "variants": "text"}
"""The column with the text of a word, for the tables in which it is not `name`."""

FACETS = ("compiler", "os", "platform", "target")
"""The facets of `facet_values` that are columns of a configuration; `stack` is one
more.
"""

SEEN = (text("first_seen", nullable=True), text("last_seen", nullable=True))

TABLES: tuple[Table, ...] = (
    _table("origin", text("name"), text("value"), primary_key=("name",)),
    _table(
        "column_descriptions",
        text("table"),
        text("column", nullable=True),
        text("description"),
        Column("derived", nullable=True),
    ),
    _table("recipes", text("namespace"), text("url"), primary_key=("namespace",)),
    _table(
        "releases",
        text("name"),
        text("kind"),
        text("date", nullable=True),
        Column("position"),
        to("previous", "releases", nullable=True),
        Column("package_count"),
        Column("spec_count"),
        Column("is_copy"),
        unique=(("name",),),
    ),
    _table(
        "packages",
        text("name"),
        Column("spec_count"),
        Column("configuration_count"),
        Column("release_count"),
        text("newest_version", nullable=True),
        *SEEN,
        unique=(("name",),),
    ),
    _table(
        "versions",
        to("package", "packages"),
        text("name"),
        Column("position"),
        Column("versions_behind", nullable=True),
        unique=(("package", "name"),),
    ),
    _table(
        "compilers",
        text("compiler"),
        text("name"),
        text("version", nullable=True),
        unique=(("compiler",),),
    ),
    _table("operating_systems", text("name"), unique=(("name",),)),
    _table("platforms", text("name"), unique=(("name",),)),
    _table("targets", text("name"), text("family"), unique=(("name",),)),
    _table(
        "target_runs_on",
        text("host"),
        to("target", "targets"),
        primary_key=("host", "target"),
        indexes=(("target",),),
    ),
    _table(
        "stacks",
        text("name"),
        Column("is_root"),
        Column("release_count"),
        Column("spec_count"),
        unique=(("name",),),
    ),
    _table("stack_sets", text("stacks"), text("shown"), unique=(("stacks",),)),
    _table(
        "stack_set_members",
        to("stack_set", "stack_sets"),
        to("stack", "stacks"),
        primary_key=("stack_set", "stack"),
        indexes=(("stack",),),
    ),
    _table(
        "variants",
        text("name"),
        text("value"),
        text("text"),
        unique=(("text",),),
        indexes=(("name",),),
    ),
    _table(
        "variant_values",
        to("variant", "variants"),
        text("value"),
        primary_key=("variant", "value"),
    ),
    _table("variant_sets", text("text")),
    _table(
        "variant_set_members",
        to("variant_set", "variant_sets"),
        to("variant", "variants"),
        primary_key=("variant_set", "variant"),
        indexes=(("variant",),),
    ),
    _table(
        "configurations",
        *(to(column, table) for column, table in CONFIGURATION.items()),
        Column("spec_count"),
        Column("release_count"),
        *SEEN,
        indexes=tuple((column,) for column in CONFIGURATION if column != "platform"),
    ),
    _table(
        "specs",
        text("hash"),
        to("configuration", "configurations"),
        to("stacks", "stack_sets"),
        Column("is_binary"),
        Column("is_external"),
        Column("is_current"),
        Column("is_gone"),
        Column("release_count"),
        *SEEN,
        unique=(("hash",),),
        indexes=(("configuration",),),
    ),
    _table(
        "tarball_prefixes",
        text("url"),
        Column("is_whole"),
        unique=(("url", "is_whole"),),
    ),
    _table(
        "listings",
        to("release", "releases"),
        to("spec", "specs"),
        to("stacks", "stack_sets"),
        text("size", nullable=True),
        to("tarball", "tarball_prefixes", nullable=True),
        # No index on spec: there are few releases, so SQLite skips through the key
        # (SQLite docs,
        # "Skip-Scan Optimization"), and an index would be a seventh of the whole file.
        primary_key=("release", "spec"),
    ),
    _table(
        "configuration_history",
        to("configuration", "configurations"),
        to("release", "releases"),
        Column("spec_count"),
        Column("added"),
        Column("removed"),
        primary_key=("configuration", "release"),
    ),
    _table(
        "release_packages",
        to("release", "releases"),
        to("package", "packages"),
        Column("configuration_count"),
        Column("spec_count"),
        to("newest_version", "versions"),
        primary_key=("release", "package"),
    ),
    _table(
        "configuration_stacks",
        to("configuration", "configurations"),
        to("stack", "stacks"),
        Column("spec_count"),
        primary_key=("configuration", "stack"),
    ),
    _table(
        "pages",
        to("release", "releases"),
        to("package", "packages"),
        text("path"),
        text("sha256"),
        text("format"),
        Column("spec_count"),
        unique=(("release", "package"),),
    ),
    _table(
        "mirrors",
        to("release", "releases"),
        to("stack", "stacks"),
        text("path"),
        text("sha256"),
        text("format"),
        text("url", nullable=True),
        Column("is_named"),
        Column("is_signed", nullable=True),
        text("settings", nullable=True),
        Column("record_count"),
        Column("spec_count"),
        indexes=(("release",), ("stack",)),
    ),
    _table(
        "document_listings",
        to("page", "pages", nullable=True),
        to("mirror", "mirrors", nullable=True),
        to("spec", "specs"),
        to("stacks", "stack_sets"),
        text("size", nullable=True),
        to("tarball", "tarball_prefixes", nullable=True),
    ),
    _table(
        "nodes",
        text("namespace"),
        text("package_hash", nullable=True),
        text("parameters"),
        text("external", nullable=True),
        Column("has_compiler"),
        Column("is_before_1_0"),
    ),
    _table(
        "records",
        to("spec", "specs"),
        to("mirror", "mirrors"),
        to("node", "nodes"),
        Column("is_listed"),
        primary_key=("spec", "mirror"),
        indexes=(("mirror",), ("node",)),
    ),
    _table(
        "modules",
        text("path"),
        to("release", "releases"),
        text("name"),
        text("compiler", nullable=True),
        text("tree", nullable=True),
        text("hash", nullable=True),
        text("package"),
        text("version"),
        Column("is_hidden"),
        text("parents", nullable=True),
        indexes=(("name",), ("release",)),
    ),
    _table(
        "installs",
        to("spec", "specs"),
        to("mirror", "mirrors"),
        text("prefix", nullable=True),
        Column("explicit", nullable=True),
        text("installed_at", nullable=True),
        to("module", "modules", nullable=True),
        primary_key=("spec", "mirror"),
    ),
    _table(
        "splices",
        to("spec", "specs"),
        to("mirror", "mirrors"),
        to("build_spec", "specs"),
        primary_key=("spec", "mirror"),
        indexes=(("build_spec",),),
    ),
    _table("dependency_types", text("types"), unique=(("types",),)),
    _table("dependency_virtuals", text("virtuals"), unique=(("virtuals",),)),
    _table(
        "dependencies",
        to("spec", "specs"),
        to("dependency", "specs"),
        to("types", "dependency_types"),
        to("virtuals", "dependency_virtuals"),
        Column("direct", nullable=True),
        primary_key=("spec", "dependency", "types", "virtuals"),
        indexes=(("dependency",),),
    ),
    _table(
        "known_packages",
        text("name"),
        text("description", nullable=True),
        text("homepage", nullable=True),
        text("build_system", nullable=True),
        text("latest_version", nullable=True),
        text("recipe", nullable=True),
        Column("dependent_count"),
        # Lists as JSON: a row for each member takes two to three times as much of the
        # file.
        text("versions"),
        text("variants"),
        unique=(("name",),),
    ),
    _table(
        "variant_meanings", text("name"), text("default_value"), text("description")
    ),
    _table(
        "known_dependents",
        text("dependency"),
        to("types", "dependency_types"),
        text("packages"),
        primary_key=("dependency", "types"),
    ),
    _table(
        "providers",
        text("virtual"),
        to("package", "known_packages"),
        primary_key=("virtual", "package"),
    ),
    _table("package_rests", Column("data", bytes)),
    _table(
        "facet_values",
        to("release", "releases", nullable=True),
        text("facet"),
        text("value"),
        Column("spec_count"),
        Column("package_count"),
    ),
    _table(
        "problems",
        text("source", nullable=True),
        to("page", "pages", nullable=True),
        to("mirror", "mirrors", nullable=True),
        text("code"),
        text("message"),
        text("hash", nullable=True),
        text("value", nullable=True),
        indexes=(("page",), ("mirror",), ("code",), ("hash",)),
    ),
)


def table(name: str) -> Table:
    """Return the table called `name`; `KeyError` if the schema has none."""
    return _BY_NAME[name]


_BY_NAME = {entry.name: entry for entry in TABLES}
