"""The tables of the file: their columns, types, keys and indexes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its SQL type, the table it points at, and whether NULL says something."""

    name: str
    type: type = int
    references: str | None = None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class TableIndex:
    """One index; a sparse one leaves out the rows in which its column is NULL."""

    name: str
    columns: tuple[str, ...]
    is_unique: bool = False
    is_sparse: bool = False


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

    def every_index(self) -> Iterator[TableIndex]:
        """Yield the indexes of the table, apart from its primary key."""
        for prefix, keys in (("unique", self.unique), ("idx", self.indexes)):
            for columns in keys:
                name = f"{prefix}_{self.name}_{'_'.join(columns)}"
                yield TableIndex(name, columns, is_unique=prefix == "unique")
        for column in self.sparse:
            yield TableIndex(f"idx_{self.name}_{column}", (column,), is_sparse=True)

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

TABLES: tuple[Table, ...] = (
    Table("origin", (text("name"), text("value")), primary_key=("name",)),
    Table("recipes", (text("namespace"), text("url")), primary_key=("namespace",)),
    Table(
        "releases",
        (
            row_id(),
            text("name"),
            text("kind"),
            text("date", nullable=True),
            Column("position"),
            to("previous", "releases", nullable=True),
            Column("package_count"),
            Column("spec_count"),
        ),
        unique=(("name",),),
    ),
    Table(
        "packages",
        (
            row_id(),
            text("name"),
            Column("spec_count"),
            Column("configuration_count"),
            Column("release_count"),
            text("newest_version", nullable=True),
            *SEEN,
        ),
        unique=(("name",),),
    ),
    Table(
        "versions",
        (row_id(), to("package", "packages"), text("name"), Column("position")),
        unique=(("package", "name"),),
    ),
    Table(
        "compilers",
        (row_id(), text("name"), text("compiler"), text("version", nullable=True)),
        unique=(("name",),),
    ),
    Table("operating_systems", (row_id(), text("name")), unique=(("name",),)),
    Table("platforms", (row_id(), text("name")), unique=(("name",),)),
    Table("targets", (row_id(), text("name"), text("family")), unique=(("name",),)),
    Table(
        "target_runs_on",
        (text("host"), to("target", "targets")),
        primary_key=("host", "target"),
        indexes=(("target",),),
    ),
    Table(
        "stacks",
        (row_id(), text("name"), Column("is_root"), Column("release_count"), Column("spec_count")),
        unique=(("name",),),
    ),
    Table("stack_sets", (row_id(), text("stacks"), text("shown")), unique=(("stacks",),)),
    Table(
        "stack_set_members",
        (to("stack_set", "stack_sets"), to("stack", "stacks")),
        primary_key=("stack_set", "stack"),
        indexes=(("stack",),),
    ),
    Table(
        "variants",
        (row_id(), text("name"), text("value"), text("text")),
        unique=(("text",),),
        indexes=(("name",),),
    ),
    Table(
        "variant_values",
        (to("variant", "variants"), text("value")),
        primary_key=("variant", "value"),
    ),
    Table("variant_sets", (row_id(), text("text"))),
    Table(
        "variant_set_members",
        (to("variant_set", "variant_sets"), to("variant", "variants")),
        primary_key=("variant_set", "variant"),
        indexes=(("variant",),),
    ),
    Table(
        "configurations",
        (
            row_id(),
            *(to(column, table) for column, table in CONFIGURATION.items()),
            Column("spec_count"),
            Column("release_count"),
            *SEEN,
        ),
        indexes=tuple((column,) for column in CONFIGURATION),
    ),
    Table(
        "specs",
        (
            row_id(),
            text("hash"),
            to("configuration", "configurations"),
            to("stacks", "stack_sets"),
            Column("release_count"),
            *SEEN,
        ),
        unique=(("hash",),),
        indexes=(("configuration",),),
    ),
    Table(
        "tarball_prefixes",
        (row_id(), text("url"), Column("is_whole")),
        unique=(("url", "is_whole"),),
    ),
    Table(
        "listings",
        (
            to("release", "releases"),
            to("spec", "specs"),
            to("configuration", "configurations", nullable=True),
            to("stacks", "stack_sets"),
            text("size", nullable=True),
            to("tarball", "tarball_prefixes", nullable=True),
        ),
        # No index on spec: there are few releases, so SQLite skips through the key (SQLite docs,
        # "Skip-Scan Optimization"), and an index would be a seventh of the whole file.
        primary_key=("release", "spec"),
        sparse=("configuration",),
    ),
    Table(
        "configuration_releases",
        (to("configuration", "configurations"), to("release", "releases"), Column("spec_count")),
        primary_key=("configuration", "release"),
    ),
    Table(
        "configuration_changes",
        (
            to("release", "releases"),
            to("configuration", "configurations"),
            Column("added"),
            Column("removed"),
        ),
        primary_key=("release", "configuration"),
    ),
    Table(
        "release_packages",
        (
            to("release", "releases"),
            to("package", "packages"),
            Column("configuration_count"),
            Column("spec_count"),
            to("newest_version", "versions"),
        ),
        primary_key=("release", "package"),
    ),
    Table(
        "configuration_stacks",
        (to("configuration", "configurations"), to("stack", "stacks"), Column("spec_count")),
        primary_key=("configuration", "stack"),
        indexes=(("stack",),),
    ),
    Table(
        "pages",
        (
            row_id(),
            to("release", "releases"),
            to("package", "packages"),
            text("path"),
            text("sha256"),
            text("format"),
            Column("spec_count"),
        ),
        unique=(("release", "package"),),
    ),
    Table(
        "mirrors",
        (
            row_id(),
            to("release", "releases"),
            to("stack", "stacks"),
            text("path"),
            text("sha256"),
            text("format"),
            text("url", nullable=True),
            Column("record_count"),
            Column("spec_count"),
        ),
        indexes=(("release",), ("stack",)),
    ),
    Table("target_descriptions", (row_id(), text("description")), unique=(("description",),)),
    Table(
        "nodes",
        (
            row_id(),
            text("namespace"),
            text("package_hash", nullable=True),
            text("parameters"),
            to("target", "target_descriptions", nullable=True),
            text("external", nullable=True),
            text("rest"),
        ),
    ),
    Table(
        "records",
        (
            to("spec", "specs"),
            to("mirror", "mirrors"),
            to("node", "nodes"),
            Column("ref_count", nullable=True),
            Column("in_buildcache", nullable=True),
            text("rest", nullable=True),
        ),
        primary_key=("spec", "mirror"),
        indexes=(("mirror",), ("node",)),
    ),
    Table(
        "installs",
        (
            to("spec", "specs"),
            to("mirror", "mirrors"),
            text("prefix", nullable=True),
            Column("explicit", nullable=True),
            text("installed_at", nullable=True),
        ),
        primary_key=("spec", "mirror"),
    ),
    Table(
        "old_hashes",
        (
            to("spec", "specs"),
            to("mirror", "mirrors"),
            text("full_hash", nullable=True),
            text("build_hash", nullable=True),
        ),
        primary_key=("spec", "mirror"),
    ),
    Table(
        "splices",
        (to("spec", "specs"), to("mirror", "mirrors"), to("build_spec", "specs")),
        primary_key=("spec", "mirror"),
        indexes=(("build_spec",),),
    ),
    Table("dependency_types", (row_id(), text("types")), unique=(("types",),)),
    Table("dependency_virtuals", (row_id(), text("virtuals")), unique=(("virtuals",),)),
    Table(
        "dependencies",
        (
            to("spec", "specs"),
            to("dependency", "specs"),
            to("types", "dependency_types"),
            to("virtuals", "dependency_virtuals"),
            Column("direct", nullable=True),
        ),
        primary_key=("spec", "dependency", "types", "virtuals"),
        indexes=(("dependency",),),
    ),
    Table(
        "known_packages",
        (
            row_id(),
            text("name"),
            text("description", nullable=True),
            text("homepage", nullable=True),
            text("build_system", nullable=True),
            text("latest_version", nullable=True),
            text("recipe", nullable=True),
            Column("dependent_count"),
            Column("versions_behind", nullable=True),
            # Lists as JSON: a row for each member takes two to three times as much of the file.
            text("versions"),
            text("variants"),
        ),
        unique=(("name",),),
    ),
    Table("variant_meanings", (row_id(), text("name"), text("default_value"), text("description"))),
    Table(
        "known_dependents",
        (text("dependency"), to("types", "dependency_types"), text("packages")),
        primary_key=("dependency", "types"),
    ),
    Table(
        "providers",
        (text("virtual"), to("package", "known_packages")),
        primary_key=("virtual", "package"),
    ),
    Table("package_rests", (row_id(), Column("data", bytes))),
    Table(
        "facet_counts",
        (
            row_id(),
            to("release", "releases", nullable=True),
            text("facet"),
            text("value"),
            Column("spec_count"),
            Column("package_count"),
        ),
        indexes=(("release", "facet"),),
    ),
    Table(
        "problems",
        (
            row_id(),
            to("page", "pages", nullable=True),
            to("mirror", "mirrors", nullable=True),
            text("code"),
            text("message"),
            text("declared", nullable=True),
        ),
        indexes=(("page",), ("mirror",), ("code",)),
    ),
)
