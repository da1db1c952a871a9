"""The schema of the published file, once, as data.

Every table, column, index and view stands here and nowhere else: `database.py` creates what it
reads here, the documentation and the tests of `metadata.yml` are checked against it. This module
runs no SQL, and does not know where rows come from.
"""

from __future__ import annotations

from dataclasses import dataclass

APPLICATION_ID = 0x53504442
"""`PRAGMA application_id` of a published file: the bytes of "SPDB"."""

SCHEMA_VERSION = 2
"""`PRAGMA user_version`; raised by one whenever a public table, column or view changes."""

PAGE_SIZE = 4096
"""Bytes in a page of the file: fixed, because the same pages must give the same bytes."""


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

    A table whose primary key is not the single column `id` is stored WITHOUT ROWID, in the order
    of its key.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ("id",)
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()

    @property
    def without_rowid(self) -> bool:
        """Whether the rows are stored in the order of a key of their own."""
        return self.primary_key != ("id",)


def _id() -> Column:
    return Column("id")


def _text(name: str, *, nullable: bool = False) -> Column:
    return Column(name, str, nullable=nullable)


def _to(name: str, table: str, *, nullable: bool = False) -> Column:
    return Column(name, references=table, nullable=nullable)


_SEEN = (_text("first_seen", nullable=True), _text("last_seen", nullable=True))

TABLES: tuple[Table, ...] = (
    Table(
        "releases",
        (
            _id(),
            _text("name"),
            _text("kind"),
            _text("date", nullable=True),
            Column("position"),
            Column("package_count"),
            Column("spec_count"),
        ),
        unique=(("name",),),
    ),
    Table(
        "packages",
        (
            _id(),
            _text("name"),
            Column("spec_count"),
            Column("configuration_count"),
            Column("release_count"),
            _text("newest_version", nullable=True),
            *_SEEN,
        ),
        unique=(("name",),),
    ),
    Table(
        "versions",
        (_id(), _to("package", "packages"), _text("name"), Column("position")),
        unique=(("package", "name"),),
    ),
    Table(
        "compilers",
        (_id(), _text("name"), _text("compiler"), _text("version", nullable=True)),
        unique=(("name",),),
    ),
    Table("operating_systems", (_id(), _text("name")), unique=(("name",),)),
    Table("platforms", (_id(), _text("name")), unique=(("name",),)),
    Table("targets", (_id(), _text("name"), _text("family")), unique=(("name",),)),
    Table(
        "target_runs_on",
        (_text("host"), _to("target", "targets")),
        primary_key=("host", "target"),
        indexes=(("target",),),
    ),
    Table(
        "stacks",
        (
            _id(),
            _text("name"),
            Column("is_root"),
            Column("release_count"),
            Column("spec_count"),
        ),
        unique=(("name",),),
    ),
    Table("stack_sets", (_id(), _text("stacks"), _text("shown")), unique=(("stacks",),)),
    Table(
        "stack_set_members",
        (_to("stack_set", "stack_sets"), _to("stack", "stacks")),
        primary_key=("stack_set", "stack"),
        indexes=(("stack",),),
    ),
    Table(
        "variants",
        (_id(), _text("name"), _text("value"), _text("text")),
        unique=(("text",),),
        indexes=(("name",),),
    ),
    Table(
        "variant_values",
        (_to("variant", "variants"), _text("value")),
        primary_key=("variant", "value"),
    ),
    Table("variant_sets", (_id(), _text("text"))),
    Table(
        "variant_set_members",
        (_to("variant_set", "variant_sets"), _to("variant", "variants")),
        primary_key=("variant_set", "variant"),
        indexes=(("variant",),),
    ),
    Table(
        "configurations",
        (
            _id(),
            _to("package", "packages"),
            _to("version", "versions"),
            _to("compiler", "compilers"),
            _to("os", "operating_systems"),
            _to("platform", "platforms"),
            _to("target", "targets"),
            _to("variants", "variant_sets"),
            Column("spec_count"),
            Column("release_count"),
            *_SEEN,
        ),
        indexes=(
            ("package",),
            ("version",),
            ("compiler",),
            ("os",),
            ("platform",),
            ("target",),
            ("variants",),
        ),
    ),
    Table(
        "specs",
        (
            _id(),
            _text("hash"),
            _to("configuration", "configurations"),
            _to("stacks", "stack_sets"),
            Column("release_count"),
            *_SEEN,
        ),
        unique=(("hash",),),
        indexes=(("configuration",),),
    ),
    Table(
        "tarball_prefixes",
        (_id(), _text("url"), Column("is_whole")),
        unique=(("url", "is_whole"),),
    ),
    Table(
        "listings",
        (
            _to("release", "releases"),
            _to("spec", "specs"),
            _to("stacks", "stack_sets"),
            _text("size", nullable=True),
            _to("tarball", "tarball_prefixes", nullable=True),
        ),
        # No index on spec: there are few releases, so SQLite skips through the key (SQLite docs,
        # "Skip-Scan Optimization"), and an index would be a seventh of the whole file.
        primary_key=("release", "spec"),
    ),
    Table(
        "listing_configurations",
        (
            _to("release", "releases"),
            _to("spec", "specs"),
            _to("configuration", "configurations"),
        ),
        primary_key=("release", "spec"),
        indexes=(("configuration",),),
    ),
    Table(
        "configuration_releases",
        (
            _to("configuration", "configurations"),
            _to("release", "releases"),
            Column("spec_count"),
        ),
        primary_key=("configuration", "release"),
    ),
    Table(
        "configuration_stacks",
        (
            _to("configuration", "configurations"),
            _to("stack", "stacks"),
            Column("spec_count"),
        ),
        primary_key=("configuration", "stack"),
        indexes=(("stack",),),
    ),
    Table(
        "pages",
        (
            _id(),
            _to("release", "releases"),
            _to("package", "packages"),
            _text("path"),
            _text("sha256"),
            _text("format"),
            Column("spec_count"),
        ),
        unique=(("release", "package"),),
    ),
    Table(
        "facet_counts",
        (
            _id(),
            _to("release", "releases", nullable=True),
            _text("facet"),
            _text("value"),
            Column("spec_count"),
            Column("package_count"),
        ),
        indexes=(("release", "facet"),),
    ),
    Table(
        "problems",
        (
            _id(),
            _to("page", "pages", nullable=True),
            _text("code"),
            _text("message"),
            _text("declared", nullable=True),
        ),
        indexes=(("page",), ("code",)),
    ),
)

TOKENIZER = "unicode61 tokenchars '!#$%&()*+,-./:;<=>?@[\\]^_`{|}~'"
"""A word is what stands between blanks, as in Spack: `+cuda`, `%gcc@13`, `libs=shared,static`.

All punctuation of ASCII but the quotes is part of words (SQLite FTS5 docs, 4.3.1): a character that
is none divides what a person types as well, and `%gcc` would find what `gcc` finds.
"""

FULL_TEXT: dict[str, str] = {
    "configurations_fts": "configurations",
    "packages_fts": "packages",
}
"""Contentless FTS5 tables, each with one column `tokens`; a rowid there is an `id` here."""

_BUILD_COLUMNS = """\
  versions.name AS version,
  compilers.name AS compiler,
  operating_systems.name AS os,
  platforms.name AS platform,
  targets.name AS target,
  variant_sets.text AS variants"""

# These foreign keys are never NULL, so LEFT JOIN gives what JOIN would. It leaves SQLite's planner
# fewer orders to weigh: of twelve inner joins it takes one that begins with all pairs of names, and
# does not come to an end (SQLite docs, "Query Planner", 9). A condition on a name makes it an
# inner join again.
_BUILD_JOINS = """\
LEFT JOIN packages ON packages.id = configurations.package
LEFT JOIN versions ON versions.id = configurations.version
LEFT JOIN compilers ON compilers.id = configurations.compiler
LEFT JOIN operating_systems ON operating_systems.id = configurations.os
LEFT JOIN platforms ON platforms.id = configurations.platform
LEFT JOIN targets ON targets.id = configurations.target
LEFT JOIN variant_sets ON variant_sets.id = configurations.variants"""

_SPEC_COLUMNS = f"""\
  specs.hash,
  packages.name AS package,
{_BUILD_COLUMNS},
  stack_sets.shown AS stacks,
  specs.release_count AS releases,
  specs.first_seen,
  specs.last_seen"""

_SPEC_JOINS = f"""\
LEFT JOIN stack_sets ON stack_sets.id = specs.stacks
{_BUILD_JOINS}"""

_TARBALL = """\
CASE
    WHEN tarball_prefixes.is_whole THEN tarball_prefixes.url
    ELSE tarball_prefixes.url || '/build_cache/'
      || platforms.name || '-' || operating_systems.name || '-' || targets.name || '/'
      || replace(compilers.name, '@', '-') || '/'
      || packages.name || '-' || versions.name || '/'
      || platforms.name || '-' || operating_systems.name || '-' || targets.name || '-'
      || replace(compilers.name, '@', '-') || '-'
      || packages.name || '-' || versions.name || '-' || specs.hash || '.spack'
  END AS tarball"""

_LISTING_COLUMNS = f"""\
  releases.name AS release,
  packages.name AS package,
  specs.hash,
{_BUILD_COLUMNS},
  stack_sets.stacks,
  coalesce(listings.size, '-') AS size,
  {_TARBALL}"""

_LISTING_JOINS = f"""\
LEFT JOIN stack_sets ON stack_sets.id = listings.stacks
LEFT JOIN tarball_prefixes ON tarball_prefixes.id = listings.tarball
{_BUILD_JOINS}"""

VIEWS: dict[str, str] = {
    "builds": f"""\
SELECT
{_SPEC_COLUMNS}
FROM specs
JOIN configurations ON configurations.id = specs.configuration
{_SPEC_JOINS}""",
    "build_listings": f"""\
SELECT
{_LISTING_COLUMNS}
FROM listings
JOIN releases ON releases.id = listings.release
JOIN specs ON specs.id = listings.spec
JOIN configurations ON configurations.id = specs.configuration
{_LISTING_JOINS}
WHERE NOT EXISTS (
  SELECT 1 FROM listing_configurations AS other
  WHERE other.release = listings.release AND other.spec = listings.spec
)
UNION ALL
SELECT
{_LISTING_COLUMNS}
FROM listing_configurations
JOIN listings
  ON listings.release = listing_configurations.release
  AND listings.spec = listing_configurations.spec
JOIN releases ON releases.id = listings.release
JOIN specs ON specs.id = listings.spec
JOIN configurations ON configurations.id = listing_configurations.configuration
{_LISTING_JOINS}""",
    "spec_variants": """\
SELECT specs.hash, variants.name, variant_values.value
FROM specs
JOIN configurations ON configurations.id = specs.configuration
JOIN variant_set_members ON variant_set_members.variant_set = configurations.variants
JOIN variants ON variants.id = variant_set_members.variant
JOIN variant_values ON variant_values.variant = variants.id""",
    "spec_stacks": """\
SELECT releases.name AS release, specs.hash, stacks.name AS stack
FROM listings
JOIN releases ON releases.id = listings.release
JOIN specs ON specs.id = listings.spec
JOIN stack_set_members ON stack_set_members.stack_set = listings.stacks
JOIN stacks ON stacks.id = stack_set_members.stack
WHERE NOT stacks.is_root""",
    "host_builds": f"""\
SELECT
  target_runs_on.host,
{_SPEC_COLUMNS}
FROM target_runs_on
JOIN configurations ON configurations.target = target_runs_on.target
JOIN specs ON specs.configuration = configurations.id
{_SPEC_JOINS}""",
}


def table(name: str) -> Table:
    """Return the table called `name`; `KeyError` if the schema has none."""
    return _BY_NAME[name]


_BY_NAME = {each.name: each for each in TABLES}
