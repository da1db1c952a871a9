"""Every view, as SQL: the tables in words.

DuckDB reads these statements too, when it attaches a file: functions and casts are those that both
know, but for `installations` and `known_versions`.
"""

from __future__ import annotations

from string import Formatter

from spack_cache_db.schema.tables import CONFIGURATION

TARBALL_PATH = (
    "/build_cache/",
    "{platform}-{os}-{target}/",
    "{compiler}/",
    "{package}-{version}/",
    "{platform}-{os}-{target}-",
    "{compiler}-",
    "{package}-{version}-{hash}.spack",
)
"""What follows a mirror's prefix in a tarball's URL, in pieces; a compiler has a dash for its `@`.

The layout of Spack's build caches before version 3 (Spack 0.23 `binary_distribution.py`).
"""


def word_of(column: str) -> str:
    """Return where the words of a configuration's column stand, once its table is joined."""
    return f"{CONFIGURATION[column]}.{'text' if column == 'variants' else 'name'}"


_BUILD_COLUMNS = ",\n".join(
    f"  {word_of(column)} AS {column}" for column in CONFIGURATION if column != "package"
)

# For sorting and grouping. They stand last, so that the columns before them keep their places.
_FOR_ANALYSIS = """\
  versions.position AS version_position,
  compilers.compiler AS compiler_name"""

# These foreign keys are never NULL, so LEFT JOIN gives what JOIN would. It leaves SQLite's planner
# fewer orders to weigh: of twelve inner joins it takes one that begins with all pairs of names, and
# does not come to an end (SQLite docs, "Query Planner", 9). A condition on a name makes it an
# inner join again.
CONFIGURATION_JOINS = "\n".join(
    f"LEFT JOIN {table} ON {table}.id = configurations.{column}"
    for column, table in CONFIGURATION.items()
)
"""What brings the words of a configuration's columns beside its row: see `word_of`."""

_SPEC_COLUMNS = f"""\
  specs.hash,
  packages.name AS package,
{_BUILD_COLUMNS},
  stack_sets.shown AS stacks,
  specs.release_count AS releases,
  specs.first_seen,
  specs.last_seen,
{_FOR_ANALYSIS}"""

_SPEC_JOINS = f"""\
LEFT JOIN stack_sets ON stack_sets.id = specs.stacks
{CONFIGURATION_JOINS}"""


def _joined(piece: str) -> str:
    """Return a piece of a tarball's path as an expression in SQL."""
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

# The last condition follows from the one before. With it SQLite finds the listings of a
# configuration by indexes; it has none for coalesce() (SQLite docs, "OR optimizations").
_SHOWN = """\
FROM releases
JOIN listings ON listings.release = releases.id
JOIN specs ON specs.id = listings.spec
JOIN configurations
  ON configurations.id = coalesce(listings.configuration, specs.configuration)
  AND (specs.configuration = configurations.id OR specs.id IN (
    SELECT other.spec FROM listings AS other WHERE other.configuration = configurations.id))"""

_LISTING_COLUMNS = f"""\
  releases.name AS release,
  packages.name AS package,
  specs.hash,
{_BUILD_COLUMNS},
  stack_sets.stacks,
  coalesce(listings.size, '-') AS size,
  {_TARBALL},
{_FOR_ANALYSIS},
  CASE
    WHEN trim(listings.size, '0123456789') = '' AND length(listings.size) BETWEEN 1 AND 18
    THEN CAST(listings.size AS BIGINT)
  END AS size_bytes"""

_LISTING_JOINS = f"""\
LEFT JOIN stack_sets ON stack_sets.id = listings.stacks
LEFT JOIN tarball_prefixes ON tarball_prefixes.id = listings.tarball
{CONFIGURATION_JOINS}"""

MARKS = {
    ("number", None): "-",
    ("number", False): "n",
    ("number", True): "N",
    ("branch", None): "~",
    ("branch", False): "b",
    ("branch", True): "B",
}
"""What stands before a version in `known_packages.versions`, by its kind and whether Spack has
deprecated it."""

_MARK = "substr(each.value, 1, 1)"
_DEPRECATED = " ".join(
    f"WHEN '{mark}' THEN {known:d}" for (_, known), mark in MARKS.items() if known is not None
)
_KIND = " ".join(f"WHEN '{mark}' THEN '{kind}'" for (kind, _), mark in MARKS.items())

VIEWS: dict[str, str] = {
    "builds": f"""\
SELECT
{_SPEC_COLUMNS}
FROM specs
JOIN configurations ON configurations.id = specs.configuration
{_SPEC_JOINS}
WHERE specs.release_count > 0""",
    "build_listings": f"""\
SELECT
{_LISTING_COLUMNS}
{_SHOWN}
{_LISTING_JOINS}""",
    "spec_variants": """\
SELECT specs.hash, variants.name, variant_values.value
FROM specs
JOIN configurations ON configurations.id = specs.configuration
JOIN variant_set_members ON variant_set_members.variant_set = configurations.variants
JOIN variants ON variants.id = variant_set_members.variant
JOIN variant_values ON variant_values.variant = variants.id
WHERE specs.release_count > 0""",
    "spec_stacks": """\
SELECT releases.name AS release, specs.hash, stacks.name AS stack
FROM listings
JOIN releases ON releases.id = listings.release
JOIN specs ON specs.id = listings.spec
JOIN stack_set_members ON stack_set_members.stack_set = listings.stacks
JOIN stacks ON stacks.id = stack_set_members.stack
WHERE NOT stacks.is_root""",
    "release_specs": f"""\
SELECT
  releases.id AS release,
  specs.id AS spec,
  configurations.id AS configuration,
  listings.stacks
{_SHOWN}""",
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
  installs.installed_at
FROM installs
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
  releases.name AS release,
  previous_releases.name AS previous,
  packages.name AS package,
{_BUILD_COLUMNS},
  CASE
    WHEN here.spec_count IS NULL THEN 'removed'
    WHEN there.spec_count IS NULL THEN 'added'
    ELSE 'rebuilt'
  END AS change,
  coalesce(here.spec_count, 0) - configuration_changes.added AS kept,
  configuration_changes.added,
  configuration_changes.removed,
{_FOR_ANALYSIS}
FROM configuration_changes
JOIN releases ON releases.id = configuration_changes.release
JOIN configurations ON configurations.id = configuration_changes.configuration
LEFT JOIN releases AS previous_releases ON previous_releases.id = releases.previous
LEFT JOIN configuration_releases AS here
  ON here.configuration = configuration_changes.configuration AND here.release = releases.id
LEFT JOIN configuration_releases AS there
  ON there.configuration = configuration_changes.configuration
  AND there.release = releases.previous
{CONFIGURATION_JOINS}""",
    "package_status": """\
SELECT
  known_packages.name,
  known_packages.description,
  known_packages.homepage,
  known_packages.latest_version,
  packages.newest_version,
  known_packages.versions_behind,
  coalesce(packages.spec_count, 0) AS spec_count
FROM known_packages
LEFT JOIN packages ON packages.name = known_packages.name""",
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
{_SPEC_JOINS}
WHERE specs.release_count > 0""",
}
