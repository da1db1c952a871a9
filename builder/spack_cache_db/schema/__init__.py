"""The schema of a database as data: every table, column, index and view.

`build/sqlite_file.py` creates them, and `database_file.py` compares a file with them.
`descriptions.toml` describes each table and column. This module opens no file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from string import Formatter
from typing import NamedTuple

from spack_cache_db.schema.tables import CONFIGURATION as CONFIGURATION
from spack_cache_db.schema.tables import FACETS as FACETS
from spack_cache_db.schema.tables import LABELS as LABELS
from spack_cache_db.schema.tables import TABLES as TABLES
from spack_cache_db.schema.tables import Column as Column
from spack_cache_db.schema.tables import Table as Table
from spack_cache_db.schema.tables import TableIndex as TableIndex

APPLICATION_ID = 0x53504442
"""`PRAGMA application_id` of a database: the bytes of "SPDB"."""

SCHEMA_VERSION = 22
"""`PRAGMA user_version`; raised by one whenever a public table, column or view changes."""

STATEMENTS_SHA256 = "2b249d19515d948eaf844c0da933b4e0d769b5a1518ceeee79047fce4e3a0c87"
"""The checksum (`statements_sha256`) of a database of this schema version. After a change of the
schema, the next build fails and names the new value."""

PATHS, LEFT_OUT = "paths", "left out"
"""The row of `origin` in a database that was built without the paths of installed specs."""

AS_OF = "as_of"
"""The name of the row of `origin` with the newest date of a source."""

COUNTED = {
    "pages": "pages",
    "indexes": "mirrors",
    "records": "records",
    "listings": "listings",
    "specs": "specs WHERE release_count > 0 AND NOT is_gone",
    "configurations": "configurations WHERE spec_count > 0",
    "dependencies": "dependencies",
    "packages": "packages WHERE spec_count > 0",
    "releases": "releases",
    "stacks": "stacks WHERE NOT is_root",
    "problems": "problems",
    "known_packages": "known_packages",
}
"""The counts of a database, as SQL; the website counts the same by the same names. Specs that no
release lists, and binaries that the mirror has lost, are not counted. An installation lists its
externals, which count as it does."""

PAGE_SIZE = 4096
"""Bytes in a page of the file: fixed, because the same input must give the same bytes."""

TOKENIZER = "unicode61 categories 'L* M* N* P* S* C*'"
"""Words are separated by blanks, as in Spack: `+cuda`, `%gcc@13`, `libs=shared,static` (SQLite FTS5
docs, 4.3.1). A quoted text without blanks is therefore one word, which an index without positions
can search (4.6)."""


class FullText(NamedTuple):
    """A contentless FTS5 table with the column `tokens`, without the positions of words.

    Attributes:
        content: the indexed table; the rowid is its `id`.
        tokenizer: the tokenizer that splits a text into words.
    """

    content: str
    tokenizer: str = TOKENIZER


FULL_TEXT: dict[str, FullText] = {
    "configurations_fts": FullText("configurations"),
    "packages_fts": FullText("packages"),
    # A search for `solvers` finds `solver` (SQLite FTS5 docs, 4.3.3).
    "known_packages_fts": FullText("known_packages", f"porter {TOKENIZER}"),
}
"""The FTS5 tables by name."""

TARBALL_PATH = (
    "/build_cache/",
    "{platform}-{os}-{target}/",
    "{compiler}/",
    "{package}-{version}/",
    "{platform}-{os}-{target}-",
    "{compiler}-",
    "{package}-{version}-{hash}.spack",
)
"""The part of a tarball's URL after its mirror, in pieces; a compiler has a dash for its `@`.

The layout of Spack's build caches before version 3 (Spack 0.23 `binary_distribution.py`).
"""


def word_of(column: str) -> str:
    """Return the SQL expression for the word in a column of a configuration.

    Platforms are read by a subquery: most rows have the same platform, and with a join SQLite would
    start from a condition on it.
    """
    if column == "platform":
        return "(SELECT name FROM platforms WHERE id = configurations.platform)"
    return f"{CONFIGURATION[column]}.{LABELS.get(column, 'name')}"


_BUILD_COLUMNS = ",\n".join(
    f"  {word_of(column)} AS {column}" for column in CONFIGURATION if column != "package"
)

# For sorting and grouping. They come last, so that the positions of other columns stay the same.
_FOR_ANALYSIS = """\
  versions.position AS version_position,
  compilers.name AS compiler_name"""

# These foreign keys are never NULL, so LEFT JOIN returns the same rows as JOIN, and the planner of
# SQLite has fewer orders to compare. With twelve inner joins it starts with all pairs of names and
# takes forever (SQLite docs, "Query Planner", 9). A condition on a name makes it an inner join.
CONFIGURATION_JOINS = "\n".join(
    f"LEFT JOIN {table} ON {table}.id = configurations.{column}"
    for column, table in CONFIGURATION.items()
    if column != "platform"
)
"""The joins that add the words of a configuration's columns to its row: see `word_of`."""

# Lists of stacks are read by a subquery: with a LEFT JOIN, SQLite returns no rows for
# `json_each(builds.stacks) JOIN builds`, which is how Datasette counts the values of a list.
_SPEC_COLUMNS = f"""\
  specs.hash,
  packages.name AS package,
{_BUILD_COLUMNS},
  (SELECT shown FROM stack_sets WHERE id = specs.stacks) AS stacks,
  specs.release_count,
  specs.first_seen,
  specs.last_seen,
  specs.is_current,
{_FOR_ANALYSIS},
  NOT specs.is_binary AS is_external,
  specs.is_gone"""


def _joined(piece: str) -> str:
    """Return a piece of a tarball's path as an SQL expression."""
    words = {column: word_of(column) for column in CONFIGURATION}
    words |= {"compiler": f"replace({word_of('compiler')}, '@', '-')", "hash": "specs.hash"}
    parts = []
    for text, field, *_ in Formatter().parse(piece):
        parts += [f"'{text}'"] if text else []
        parts += [words[field]] if field else []
    return " || ".join(parts)


_TARBALL = f"""\
CASE
    WHEN tarball_prefixes.is_whole THEN tarball_prefixes.url
    ELSE tarball_prefixes.url || {f"{chr(10)}      || ".join(map(_joined, TARBALL_PATH))}
  END AS tarball"""

# The statistics that a build writes make SQLite read release by release, so that rows grouped by
# release need no sorting. A CROSS JOIN would force it, and leave `json_each(stacks)` without rows.
_LISTED = """\
FROM releases
JOIN listings ON listings.release = releases.id
JOIN specs ON specs.id = listings.spec
JOIN configurations ON configurations.id = specs.configuration"""

_LISTING_COLUMNS = f"""\
  releases.name AS release,
  packages.name AS package,
  specs.hash,
{_BUILD_COLUMNS},
  (SELECT stacks FROM stack_sets WHERE id = listings.stacks) AS stacks,
  coalesce(listings.size, '-') AS size,
  {_TARBALL},
{_FOR_ANALYSIS},
  CASE
    WHEN trim(listings.size, '0123456789') = '' AND length(listings.size) BETWEEN 1 AND 18
    THEN CAST(listings.size AS BIGINT)
  END AS size_bytes,
  NOT specs.is_binary AS is_external"""

_LISTING_JOINS = f"""\
LEFT JOIN tarball_prefixes ON tarball_prefixes.id = listings.tarball
{CONFIGURATION_JOINS}"""

CHANGES = {
    (False, False, True): "removed",
    (False, True, False): "added",
    (True, True, False): "grown",
    (True, False, True): "shrunk",
    (False, True, True): "rebuilt",
    (True, True, True): "rebuilt",
}
"""The change of a configuration, by whether hashes of it were kept, added and removed."""

CHANGE_WORDS = (*dict.fromkeys(CHANGES.values()),)
"""The words for a changed configuration, in the order in which reports list them."""

_CHANGE_COLUMNS = f"""\
  releases.name AS release,
  previous_releases.name AS previous,
  packages.name AS package,
{_BUILD_COLUMNS}"""

_COUNTS_OF_CHANGES = ("listed.spec_count - listed.added", "listed.added", "listed.removed")
_CHANGE = "\n".join(
    "    WHEN "
    + " AND ".join(
        f"{count} {'>' if is_above else '='} 0"
        for count, is_above in zip(_COUNTS_OF_CHANGES, counts, strict=True)
    )
    + f" THEN '{word}'"
    for counts, word in CHANGES.items()
)

MARKS = {
    ("number", None): "-",
    ("number", False): "n",
    ("number", True): "N",
    ("branch", None): "~",
    ("branch", False): "b",
    ("branch", True): "B",
}
"""The character before a version in `known_packages.versions`, by its kind and whether Spack has
deprecated it."""

_MARK = "substr(each.value, 1, 1)"
_DEPRECATED = " ".join(
    f"WHEN '{mark}' THEN {is_deprecated:d}"
    for (_, is_deprecated), mark in MARKS.items()
    if is_deprecated is not None
)
_KIND = " ".join(f"WHEN '{mark}' THEN '{kind}'" for (kind, _), mark in MARKS.items())

VIEW_COUNTS = {
    "builds": "SELECT count(*) FROM specs WHERE release_count > 0",
    "build_listings": "SELECT count(*) FROM listings",
}
"""The number of rows of the largest views, as SQL that reads one table: counting the rows of the
view itself takes ten times as long."""

VIEWS: dict[str, str] = {
    "builds": f"""\
SELECT
{_SPEC_COLUMNS}
FROM specs
JOIN configurations ON configurations.id = specs.configuration
{CONFIGURATION_JOINS}
WHERE specs.release_count > 0""",
    "build_listings": f"""\
SELECT
{_LISTING_COLUMNS}
{_LISTED}
{_LISTING_JOINS}""",
    "configuration_counts": f"""\
SELECT
  packages.name AS package,
{_BUILD_COLUMNS},
  configurations.spec_count AS specs,
  configurations.release_count,
  configurations.first_seen,
  configurations.last_seen,
{_FOR_ANALYSIS}
FROM configurations
{CONFIGURATION_JOINS}
WHERE configurations.spec_count > 0""",
    "variant_counts": """\
SELECT
  packages.name AS package,
  variants.name,
  variant_values.value,
  sum(configurations.spec_count) AS specs,
  count(*) AS configurations
FROM configurations
JOIN packages ON packages.id = configurations.package
JOIN variant_set_members ON variant_set_members.variant_set = configurations.variants
JOIN variants ON variants.id = variant_set_members.variant
JOIN variant_values ON variant_values.variant = variants.id
WHERE configurations.spec_count > 0
GROUP BY packages.name, variants.name, variant_values.value""",
    "spec_variants": """\
SELECT specs.hash, variants.name, variant_values.value
FROM specs
JOIN configurations ON configurations.id = specs.configuration
JOIN variant_set_members ON variant_set_members.variant_set = configurations.variants
JOIN variants ON variants.id = variant_set_members.variant
JOIN variant_values ON variant_values.variant = variants.id
WHERE specs.release_count > 0""",
    "spec_stacks": """\
SELECT specs.hash, stacks.name AS stack
FROM specs
JOIN stack_set_members ON stack_set_members.stack_set = specs.stacks
JOIN stacks ON stacks.id = stack_set_members.stack
WHERE NOT stacks.is_root AND specs.release_count > 0""",
    "listing_stacks": """\
SELECT releases.name AS release, specs.hash, stacks.name AS stack
FROM listings
JOIN releases ON releases.id = listings.release
JOIN specs ON specs.id = listings.spec
JOIN stack_set_members ON stack_set_members.stack_set = listings.stacks
JOIN stacks ON stacks.id = stack_set_members.stack
WHERE NOT stacks.is_root""",
    "configuration_releases": """\
SELECT configuration, release, spec_count FROM configuration_history WHERE spec_count > 0""",
    "release_specs": """\
SELECT
  listings.release,
  listings.spec,
  specs.configuration,
  listings.stacks
FROM listings
JOIN specs ON specs.id = listings.spec""",
    "dependency_edges": """\
SELECT
  specs.hash,
  packages.name AS package,
  versions.name AS version,
  needed.hash AS dependency_hash,
  needed_packages.name AS dependency_package,
  needed_versions.name AS dependency_version,
  dependency_types.types,
  dependency_virtuals.virtuals
FROM dependencies
JOIN specs ON specs.id = dependencies.spec
JOIN specs AS needed ON needed.id = dependencies.dependency
LEFT JOIN dependency_types ON dependency_types.id = dependencies.types
LEFT JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.virtuals
LEFT JOIN configurations ON configurations.id = specs.configuration
LEFT JOIN packages ON packages.id = configurations.package
LEFT JOIN versions ON versions.id = configurations.version
LEFT JOIN configurations AS needed_configurations
  ON needed_configurations.id = needed.configuration
LEFT JOIN packages AS needed_packages ON needed_packages.id = needed_configurations.package
LEFT JOIN versions AS needed_versions ON needed_versions.id = needed_configurations.version""",
    "installations": """\
SELECT
  specs.hash,
  packages.name AS package,
  versions.name AS version,
  releases.name AS release,
  installs.prefix,
  installs.explicit,
  installs.installed_at,
  nodes.external IS NOT NULL AS is_external,
  coalesce(
    (SELECT group_concat(value, ' ') FROM json_each(nodes.external, '$.module')), modules.name
  ) AS module,
  CASE WHEN EXISTS (
    SELECT 1 FROM modules AS other
    WHERE other.name = modules.name AND other.release = modules.release
      AND other.tree <> modules.tree
  ) THEN modules.tree END AS module_tree,
  coalesce(
    (SELECT group_concat(value, ' ') FROM json_each(nodes.external, '$.module')),
    (SELECT group_concat(value, ' ') FROM json_each(modules.parents, '$[0]'))
      || ' ' || modules.name,
    modules.name
  ) AS module_load
FROM installs
LEFT JOIN modules ON modules.id = installs.module
JOIN records ON records.spec = installs.spec AND records.mirror = installs.mirror
JOIN nodes ON nodes.id = records.node
JOIN mirrors ON mirrors.id = installs.mirror
JOIN releases ON releases.id = mirrors.release
JOIN specs ON specs.id = installs.spec
JOIN configurations ON configurations.id = specs.configuration
LEFT JOIN packages ON packages.id = configurations.package
LEFT JOIN versions ON versions.id = configurations.version""",
    "release_counts": f"""\
SELECT
  releases.name AS release,
  releases.kind,
  releases.date,
  packages.name AS package,
{_BUILD_COLUMNS},
  configuration_releases.spec_count AS specs,
{_FOR_ANALYSIS}
FROM configuration_releases
JOIN configurations ON configurations.id = configuration_releases.configuration
LEFT JOIN releases ON releases.id = configuration_releases.release
{CONFIGURATION_JOINS}""",
    "release_changes": f"""\
SELECT
{_CHANGE_COLUMNS},
  CASE
{_CHANGE}
  END AS change,
  listed.spec_count - listed.added AS kept,
  listed.added,
  listed.removed,
{_FOR_ANALYSIS}
FROM configuration_history AS listed
JOIN configurations ON configurations.id = listed.configuration
LEFT JOIN releases ON releases.id = listed.release
LEFT JOIN releases AS previous_releases ON previous_releases.id = releases.previous
{CONFIGURATION_JOINS}
WHERE listed.added > 0 OR listed.removed > 0""",
    "replaced_configurations": f"""\
SELECT
  packages.name AS package,
{_BUILD_COLUMNS},
  replaced.replacements,
  replaced.removed
FROM (
  SELECT configuration, count(*) AS replacements, sum(removed) AS removed
  FROM configuration_history
  WHERE added > 0 AND removed > 0
  GROUP BY configuration
) AS replaced
JOIN configurations ON configurations.id = replaced.configuration
{CONFIGURATION_JOINS}""",
    "facet_counts": """\
SELECT release, facet, value, spec_count, package_count FROM facet_values
UNION ALL
SELECT
  NULL AS release,
  'version' AS facet,
  versions.name AS value,
  sum(configurations.spec_count) AS spec_count,
  count(DISTINCT configurations.package) AS package_count
FROM configurations
JOIN versions ON versions.id = configurations.version
WHERE configurations.spec_count > 0
GROUP BY versions.name
UNION ALL
SELECT
  configuration_releases.release,
  'version' AS facet,
  versions.name AS value,
  sum(configuration_releases.spec_count) AS spec_count,
  count(DISTINCT configurations.package) AS package_count
FROM configuration_releases
JOIN configurations ON configurations.id = configuration_releases.configuration
JOIN versions ON versions.id = configurations.version
GROUP BY configuration_releases.release, versions.name""",
    "package_status": """\
SELECT
  known_packages.name,
  known_packages.description,
  known_packages.homepage,
  known_packages.latest_version,
  packages.newest_version,
  versions.versions_behind,
  coalesce(packages.spec_count, 0) AS spec_count
FROM known_packages
LEFT JOIN packages ON packages.name = known_packages.name
LEFT JOIN versions
  ON versions.package = packages.id AND versions.name = packages.newest_version""",
    "dropped_versions": """\
SELECT
  packages.name AS package,
  versions.name AS version,
  CASE WHEN known_versions.version IS NULL THEN 'unknown' ELSE 'deprecated' END AS status,
  sum(configurations.spec_count) AS specs,
  max(configurations.last_seen) AS last_seen
FROM known_packages
JOIN packages ON packages.name = known_packages.name
JOIN versions ON versions.package = packages.id
JOIN configurations ON configurations.version = versions.id AND configurations.spec_count > 0
LEFT JOIN known_versions
  ON known_versions.package = known_packages.name AND known_versions.version = versions.name
WHERE known_packages.versions <> '[]'
  AND coalesce(known_versions.deprecated, known_versions.version IS NULL)
GROUP BY packages.name, versions.name, known_versions.version""",
    "known_versions": f"""\
SELECT
  known_packages.name AS package,
  each.key + 1 AS position,
  substr(each.value, 2) AS version,
  CASE {_MARK} {_DEPRECATED} END AS deprecated,
  CASE {_MARK} {_KIND} END AS kind
FROM known_packages, json_each(known_packages.versions) AS each""",
    "known_variants": """\
SELECT
  known_packages.name AS package,
  variant_meanings.name,
  variant_meanings.default_value,
  variant_meanings.description
FROM known_packages, json_each(known_packages.variants) AS each
JOIN variant_meanings ON variant_meanings.id = CAST(each.value AS BIGINT)""",
    "known_dependencies": """\
SELECT
  known_dependents.dependency,
  known_packages.name AS package,
  nullif(dependency_types.types, '') AS types
FROM known_dependents, json_each(known_dependents.packages) AS each
JOIN known_packages ON known_packages.id = CAST(each.value AS BIGINT)
LEFT JOIN dependency_types ON dependency_types.id = known_dependents.types""",
    "host_builds": f"""\
SELECT
  target_runs_on.host,
{_SPEC_COLUMNS}
FROM target_runs_on
JOIN configurations ON configurations.target = target_runs_on.target
JOIN specs ON specs.configuration = configurations.id
{CONFIGURATION_JOINS}
WHERE specs.release_count > 0""",
}
"""Every view, as SQL: the tables with words instead of ids.

DuckDB runs these statements too when it attaches a database, so they use functions and casts that
both support, except in `installations` and `known_versions`.
"""

NAMES = (
    *(table.name for table in TABLES),
    *FULL_TEXT,
    *VIEWS,
    *(index.name for table in TABLES for index in table.every_index()),
)
"""The names of all tables, full-text tables, views and indexes."""


def table(name: str) -> Table:
    """Return the table called `name`; `KeyError` if the schema has none."""
    return _BY_NAME[name]


def statements_sha256(statements: Iterable[tuple[str, str]]) -> str:
    """Return a checksum of a database's schema.

    Args:
        statements: the columns `name` and `sql` of `sqlite_master`; names that are not in `NAMES`
            are ignored.
    """
    sorted_statements = sorted(statement for statement in statements if statement[0] in NAMES)
    return hashlib.sha256(repr(sorted_statements).encode()).hexdigest()


_BY_NAME = {entry.name: entry for entry in TABLES}
