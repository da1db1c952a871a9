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
"""The parts of a configuration, in the order of its record, and the tables of their
values.
"""

ID_COLUMNS = {part: f"{part}_id" for part in CONFIGURATION} | {
    "variants": "variant_set_id"
}
"""The column of `configurations` with the id of each part."""

LABELS = {"compiler": "compiler", "variants": "text"}
"""The column with the text of a word, for the tables in which it is not `name`."""

FACETS = ("compiler", "os", "platform", "target")
"""The facets of `facet_values` that are columns of a configuration; `stack` is one
more.
"""

SEEN = (
    text("first_seen", nullable=True),
    text("last_seen", nullable=True),
    Column("is_current"),
)
"""When snapshots list it, and whether a release without a date does."""

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
        to("previous_release_id", "releases", nullable=True),
        Column("package_count"),
        Column("spec_count"),
        Column("added_count", nullable=True),
        Column("removed_count", nullable=True),
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
        to("package_id", "packages"),
        text("name"),
        Column("position"),
        Column("versions_behind", nullable=True),
        unique=(("package_id", "name"),),
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
        to("target_id", "targets"),
        to("platform_id", "platforms"),
        primary_key=("host", "target_id", "platform_id"),
        indexes=(("target_id", "platform_id"),),
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
        to("stack_set_id", "stack_sets"),
        to("stack_id", "stacks"),
        primary_key=("stack_set_id", "stack_id"),
        indexes=(("stack_id",),),
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
        to("variant_id", "variants"),
        text("value"),
        primary_key=("variant_id", "value"),
    ),
    _table("variant_sets", text("text")),
    _table(
        "variant_set_members",
        to("variant_set_id", "variant_sets"),
        to("variant_id", "variants"),
        primary_key=("variant_set_id", "variant_id"),
        indexes=(("variant_id",),),
    ),
    _table(
        "configurations",
        *(to(ID_COLUMNS[part], table) for part, table in CONFIGURATION.items()),
        Column("spec_count"),
        Column("release_count"),
        *SEEN,
        indexes=tuple(
            (ID_COLUMNS[part],) for part in CONFIGURATION if part != "platform"
        ),
    ),
    _table(
        "specs",
        text("hash"),
        to("configuration_id", "configurations"),
        to("stack_set_id", "stack_sets"),
        Column("is_binary"),
        Column("is_external"),
        Column("release_count"),
        *SEEN,
        Column("is_gone"),
        unique=(("hash",),),
        indexes=(("configuration_id",),),
    ),
    _table(
        "tarball_prefixes",
        text("url"),
        Column("is_whole"),
        unique=(("url", "is_whole"),),
    ),
    _table(
        "listings",
        to("release_id", "releases"),
        to("spec_id", "specs"),
        to("stack_set_id", "stack_sets"),
        text("size", nullable=True),
        to("tarball_prefix_id", "tarball_prefixes", nullable=True),
        # No index on spec_id: there are few releases, so SQLite skips through the key
        # (SQLite docs,
        # "Skip-Scan Optimization"), and an index would be a seventh of the whole file.
        primary_key=("release_id", "spec_id"),
    ),
    _table(
        "configuration_history",
        to("configuration_id", "configurations"),
        to("release_id", "releases"),
        Column("spec_count"),
        Column("added"),
        Column("removed"),
        primary_key=("configuration_id", "release_id"),
    ),
    _table(
        "release_packages",
        to("release_id", "releases"),
        to("package_id", "packages"),
        Column("configuration_count"),
        Column("spec_count"),
        to("newest_version_id", "versions"),
        primary_key=("release_id", "package_id"),
    ),
    _table(
        "configuration_stacks",
        to("configuration_id", "configurations"),
        to("stack_id", "stacks"),
        Column("spec_count"),
        primary_key=("configuration_id", "stack_id"),
    ),
    _table(
        "pages",
        to("release_id", "releases"),
        to("package_id", "packages"),
        text("path"),
        text("sha256"),
        text("format"),
        Column("spec_count"),
        unique=(("release_id", "package_id"),),
    ),
    _table(
        "mirrors",
        to("release_id", "releases"),
        to("stack_id", "stacks"),
        text("path"),
        text("sha256"),
        text("format"),
        text("url", nullable=True),
        Column("is_named"),
        Column("is_signed", nullable=True),
        text("settings", nullable=True),
        Column("record_count"),
        Column("spec_count"),
        Column("position"),
        unique=(("position",),),
        indexes=(("release_id",), ("stack_id",)),
    ),
    _table(
        "document_listings",
        to("page_id", "pages", nullable=True),
        to("mirror_id", "mirrors", nullable=True),
        to("spec_id", "specs"),
        to("stack_set_id", "stack_sets"),
        text("size", nullable=True),
        to("tarball_prefix_id", "tarball_prefixes", nullable=True),
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
        "record_ranges",
        to("spec_id", "specs"),
        to("first_mirror_id", "mirrors"),
        to("last_mirror_id", "mirrors"),
        to("node_id", "nodes"),
        Column("is_listed"),
        # No index on mirrors: there are few, and each has a large part of the ranges.
        primary_key=("spec_id", "first_mirror_id"),
        indexes=(("node_id",),),
    ),
    _table(
        "modules",
        text("path"),
        to("release_id", "releases"),
        text("name"),
        text("compiler", nullable=True),
        text("tree", nullable=True),
        text("hash", nullable=True),
        text("package"),
        text("version"),
        Column("is_hidden"),
        text("parents", nullable=True),
        indexes=(("name",), ("release_id",)),
    ),
    _table(
        "installs",
        to("spec_id", "specs"),
        to("mirror_id", "mirrors"),
        text("prefix", nullable=True),
        Column("explicit", nullable=True),
        text("installed_at", nullable=True),
        to("module_id", "modules", nullable=True),
        primary_key=("spec_id", "mirror_id"),
    ),
    _table(
        "splices",
        to("spec_id", "specs"),
        to("mirror_id", "mirrors"),
        to("build_spec_id", "specs"),
        primary_key=("spec_id", "mirror_id"),
        indexes=(("build_spec_id",),),
    ),
    _table("dependency_types", text("types"), unique=(("types",),)),
    _table("dependency_virtuals", text("virtuals"), unique=(("virtuals",),)),
    _table(
        "dependencies",
        to("spec_id", "specs"),
        to("dependency_id", "specs"),
        to("dependency_type_id", "dependency_types"),
        to("dependency_virtual_id", "dependency_virtuals"),
        Column("direct", nullable=True),
        primary_key=(
            *("spec_id", "dependency_id"),
            *("dependency_type_id", "dependency_virtual_id"),
        ),
        indexes=(("dependency_id",),),
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
        text("variant_meaning_ids"),
        unique=(("name",),),
    ),
    _table(
        "package_maintainers",
        to("known_package_id", "known_packages"),
        text("maintainer"),
        primary_key=("known_package_id", "maintainer"),
        indexes=(("maintainer",),),
    ),
    _table(
        "package_licenses",
        to("known_package_id", "known_packages"),
        text("license"),
        text("condition", nullable=True),
        indexes=(("known_package_id",), ("license",)),
    ),
    _table(
        "package_tags",
        to("known_package_id", "known_packages"),
        text("tag"),
        primary_key=("known_package_id", "tag"),
        indexes=(("tag",),),
    ),
    _table(
        "variant_meanings", text("name"), text("default_value"), text("description")
    ),
    _table(
        "known_dependents",
        text("dependency"),
        to("dependency_type_id", "dependency_types"),
        text("known_package_ids"),
        primary_key=("dependency", "dependency_type_id"),
    ),
    _table(
        "providers",
        text("virtual"),
        to("known_package_id", "known_packages"),
        primary_key=("virtual", "known_package_id"),
    ),
    _table("package_rests", Column("data", bytes)),
    _table(
        "facet_values",
        to("release_id", "releases", nullable=True),
        text("facet"),
        text("value"),
        Column("spec_count"),
        Column("package_count"),
    ),
    _table(
        "problems",
        text("source", nullable=True),
        to("page_id", "pages", nullable=True),
        to("mirror_id", "mirrors", nullable=True),
        text("code"),
        text("message"),
        text("hash", nullable=True),
        text("value", nullable=True),
        indexes=(("page_id",), ("mirror_id",), ("code",), ("hash",)),
    ),
)


def table(name: str) -> Table:
    """Return the table called `name`; `KeyError` if the schema has none."""
    return _BY_NAME[name]


_BY_NAME = {entry.name: entry for entry in TABLES}
