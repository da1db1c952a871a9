"""The views of a database: its tables with names instead of ids."""

from __future__ import annotations

from spack_cache_db.schema.changes import CHANGE, CHANGE_COLUMNS
from spack_cache_db.schema.sizes import is_size, size_in_bytes
from spack_cache_db.schema.tables import CONFIGURATION, ID_COLUMNS
from spack_cache_db.schema.tarballs import TARBALL
from spack_cache_db.schema.words import BUILD_COLUMNS

# For sorting and grouping. They come last, so that the positions of other columns stay
# the same.
_FOR_ANALYSIS = """\
  versions.position AS version_position,
  compilers.name AS compiler_name"""

# These foreign keys are never NULL, so LEFT JOIN returns the same rows as JOIN, and the
# planner of SQLite has fewer orders to compare. With twelve inner joins it starts with
# all pairs of names and takes forever (SQLite docs, "Query Planner", 9). A condition on
# a name makes it an inner join.
#
# SQLite leaves out the joins that a query does not use, but not if it has GROUP BY: a
# fifth of the time of counting all changes by release and kind is for such names.
# Subqueries in place of joins would read only what is used, but then a condition on a
# name would compare the names of all rows.
CONFIGURATION_JOINS = "\n".join(
    f"LEFT JOIN {table} ON {table}.id = configurations.{ID_COLUMNS[part]}"
    for part, table in CONFIGURATION.items()
    if part != "platform"
)
"""The joins that add the words of a configuration's columns to its row: see
`word_of`.
"""

# Lists of stacks are read by a subquery: with a LEFT JOIN, SQLite returns no rows for
# `json_each(builds.stacks) JOIN builds`, which is how Datasette counts the values of a
# list.
_SPEC_COLUMNS = f"""\
  specs.hash,
  packages.name AS package,
{BUILD_COLUMNS},
  (SELECT shown FROM stack_sets WHERE id = specs.stack_set_id) AS stacks,
  specs.release_count,
  specs.first_seen,
  specs.last_seen,
  specs.is_current,
{_FOR_ANALYSIS},
  NOT specs.is_binary AS is_external,
  specs.is_gone"""

# The statistics that a build writes make SQLite read release by release, so that rows
# grouped by release need no sorting. A CROSS JOIN would force it, and leave
# `json_each(stacks)` without rows.
_LISTED = """\
FROM releases
JOIN listings ON listings.release_id = releases.id
JOIN specs ON specs.id = listings.spec_id
JOIN configurations ON configurations.id = specs.configuration_id"""

_LISTING_COLUMNS = f"""\
  releases.name AS release,
  packages.name AS package,
  specs.hash,
{BUILD_COLUMNS},
  (SELECT stacks FROM stack_sets WHERE id = listings.stack_set_id) AS stacks,
  coalesce(listings.size, '-') AS size,
  {TARBALL},
{_FOR_ANALYSIS},
  CASE
    WHEN {is_size("listings.size")}
    THEN {size_in_bytes("listings.size")}
  END AS size_bytes,
  NOT specs.is_binary AS is_external"""

_LISTING_JOINS = f"""\
LEFT JOIN tarball_prefixes ON tarball_prefixes.id = listings.tarball_prefix_id
{CONFIGURATION_JOINS}"""

MARKS = {
    ("number", None): "-",
    ("number", False): "n",
    ("number", True): "N",
    ("branch", None): "~",
    ("branch", False): "b",
    ("branch", True): "B",
}
"""The character before a version in `known_packages.versions`, by its kind and whether
Spack has deprecated it.
"""

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
    "records": "SELECT coalesce(sum(record_count), 0) FROM mirrors",
}
"""The number of rows of the largest views, as SQL that reads one table: counting the
rows of the view itself takes ten times as long.
"""

VIEWS: dict[str, str] = {
    "builds": f"""\
SELECT
{_SPEC_COLUMNS}
FROM specs
JOIN configurations ON configurations.id = specs.configuration_id
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
{BUILD_COLUMNS},
  configurations.spec_count,
  configurations.release_count,
  configurations.first_seen,
  configurations.last_seen,
  configurations.is_current,
{_FOR_ANALYSIS}
FROM configurations
{CONFIGURATION_JOINS}
WHERE configurations.spec_count > 0""",
    # Counted by sets of variants first, because there are few sets.
    "variant_counts": """\
SELECT
  packages.name AS package,
  variants.name,
  variant_values.value,
  sum(counted.spec_count) AS spec_count,
  sum(counted.configuration_count) AS configuration_count
FROM (
  SELECT
    package_id,
    variant_set_id,
    sum(spec_count) AS spec_count,
    count(*) AS configuration_count
  FROM configurations
  WHERE spec_count > 0
  GROUP BY package_id, variant_set_id
) AS counted
JOIN packages ON packages.id = counted.package_id
JOIN variant_set_members ON variant_set_members.variant_set_id = counted.variant_set_id
JOIN variants ON variants.id = variant_set_members.variant_id
JOIN variant_values ON variant_values.variant_id = variants.id
GROUP BY packages.name, variants.name, variant_values.value""",
    "spec_variants": """\
SELECT specs.hash, variants.name, variant_values.value
FROM specs
JOIN configurations ON configurations.id = specs.configuration_id
JOIN variant_set_members ON variant_set_members.variant_set_id = configurations.variant_set_id
JOIN variants ON variants.id = variant_set_members.variant_id
JOIN variant_values ON variant_values.variant_id = variants.id
WHERE specs.release_count > 0""",
    "spec_stacks": """\
SELECT specs.hash, stacks.name AS stack
FROM specs
JOIN stack_set_members ON stack_set_members.stack_set_id = specs.stack_set_id
JOIN stacks ON stacks.id = stack_set_members.stack_id
WHERE NOT stacks.is_root AND specs.release_count > 0""",
    "listing_stacks": """\
SELECT releases.name AS release, specs.hash, stacks.name AS stack
FROM listings
JOIN releases ON releases.id = listings.release_id
JOIN specs ON specs.id = listings.spec_id
JOIN stack_set_members ON stack_set_members.stack_set_id = listings.stack_set_id
JOIN stacks ON stacks.id = stack_set_members.stack_id
WHERE NOT stacks.is_root""",
    "configuration_releases": """\
SELECT
  releases.name AS release,
  listed.release_id,
  listed.configuration_id,
  listed.spec_count
FROM configuration_history AS listed
LEFT JOIN releases ON releases.id = listed.release_id
WHERE listed.spec_count > 0""",
    "release_specs": """\
SELECT
  releases.name AS release,
  specs.hash,
  listings.release_id,
  listings.spec_id,
  specs.configuration_id,
  listings.stack_set_id
FROM listings
JOIN specs ON specs.id = listings.spec_id
LEFT JOIN releases ON releases.id = listings.release_id""",
    # The mirrors of a range follow each other. With CROSS JOIN, SQLite begins with the
    # ranges; it would compare each mirror with all ranges otherwise.
    "records": """\
SELECT
  record_ranges.spec_id,
  mirrors.id AS mirror_id,
  record_ranges.node_id,
  record_ranges.is_listed
FROM record_ranges
CROSS JOIN mirrors AS first
CROSS JOIN mirrors AS last
CROSS JOIN mirrors
WHERE first.id = record_ranges.first_mirror_id
  AND last.id = record_ranges.last_mirror_id
  AND mirrors.position BETWEEN first.position AND last.position""",
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
JOIN specs ON specs.id = dependencies.spec_id
JOIN specs AS needed ON needed.id = dependencies.dependency_id
LEFT JOIN dependency_types ON dependency_types.id = dependencies.dependency_type_id
LEFT JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.dependency_virtual_id
LEFT JOIN configurations ON configurations.id = specs.configuration_id
LEFT JOIN packages ON packages.id = configurations.package_id
LEFT JOIN versions ON versions.id = configurations.version_id
LEFT JOIN configurations AS needed_configurations
  ON needed_configurations.id = needed.configuration_id
LEFT JOIN packages AS needed_packages ON needed_packages.id = needed_configurations.package_id
LEFT JOIN versions AS needed_versions ON needed_versions.id = needed_configurations.version_id""",
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
    WHERE other.name = modules.name AND other.release_id = modules.release_id
      AND other.tree <> modules.tree
  ) THEN modules.tree END AS module_tree,
  coalesce(
    (SELECT group_concat(value, ' ') FROM json_each(nodes.external, '$.module')),
    (SELECT group_concat(value, ' ') FROM json_each(modules.parents, '$[0]'))
      || ' ' || modules.name,
    modules.name
  ) AS module_load
FROM installs
LEFT JOIN modules ON modules.id = installs.module_id
JOIN records ON records.spec_id = installs.spec_id AND records.mirror_id = installs.mirror_id
JOIN nodes ON nodes.id = records.node_id
JOIN mirrors ON mirrors.id = installs.mirror_id
JOIN releases ON releases.id = mirrors.release_id
JOIN specs ON specs.id = installs.spec_id
JOIN configurations ON configurations.id = specs.configuration_id
LEFT JOIN packages ON packages.id = configurations.package_id
LEFT JOIN versions ON versions.id = configurations.version_id""",
    "release_counts": f"""\
SELECT
  releases.name AS release,
  releases.kind,
  releases.date,
  packages.name AS package,
{BUILD_COLUMNS},
  listed.spec_count,
{_FOR_ANALYSIS}
FROM configuration_history AS listed
JOIN configurations ON configurations.id = listed.configuration_id
LEFT JOIN releases ON releases.id = listed.release_id
{CONFIGURATION_JOINS}
WHERE listed.spec_count > 0""",
    "release_changes": f"""\
SELECT
{CHANGE_COLUMNS},
  CASE
{CHANGE}
  END AS change,
  listed.spec_count - listed.added AS kept,
  listed.added,
  listed.removed,
{_FOR_ANALYSIS}
FROM configuration_history AS listed
JOIN configurations ON configurations.id = listed.configuration_id
LEFT JOIN releases ON releases.id = listed.release_id
LEFT JOIN releases AS previous_releases ON previous_releases.id = releases.previous_release_id
{CONFIGURATION_JOINS}
WHERE listed.added > 0 OR listed.removed > 0""",
    "replaced_configurations": f"""\
SELECT
  packages.name AS package,
{BUILD_COLUMNS},
  replaced.replacements,
  replaced.removed
FROM (
  SELECT configuration_id, count(*) AS replacements, sum(removed) AS removed
  FROM configuration_history
  WHERE added > 0 AND removed > 0
  GROUP BY configuration_id
) AS replaced
JOIN configurations ON configurations.id = replaced.configuration_id
{CONFIGURATION_JOINS}""",
    "facet_counts": """\
SELECT
  releases.name AS release,
  facet_values.facet,
  facet_values.value,
  facet_values.spec_count,
  facet_values.package_count
FROM facet_values
LEFT JOIN releases ON releases.id = facet_values.release_id
UNION ALL
SELECT
  NULL AS release,
  'version' AS facet,
  versions.name AS value,
  sum(configurations.spec_count) AS spec_count,
  count(DISTINCT configurations.package_id) AS package_count
FROM configurations
JOIN versions ON versions.id = configurations.version_id
WHERE configurations.spec_count > 0
GROUP BY versions.name
UNION ALL
SELECT
  releases.name AS release,
  'version' AS facet,
  versions.name AS value,
  sum(listed.spec_count) AS spec_count,
  count(DISTINCT configurations.package_id) AS package_count
FROM configuration_history AS listed
JOIN releases ON releases.id = listed.release_id
JOIN configurations ON configurations.id = listed.configuration_id
JOIN versions ON versions.id = configurations.version_id
WHERE listed.spec_count > 0
GROUP BY releases.name, versions.name""",
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
  ON versions.package_id = packages.id AND versions.name = packages.newest_version""",
    "dropped_versions": """\
SELECT
  packages.name AS package,
  versions.name AS version,
  CASE WHEN known_versions.version IS NULL THEN 'unknown' ELSE 'deprecated' END AS status,
  sum(configurations.spec_count) AS spec_count,
  max(configurations.last_seen) AS last_seen,
  max(configurations.is_current) AS is_current
FROM known_packages
JOIN packages ON packages.name = known_packages.name
JOIN versions ON versions.package_id = packages.id
JOIN configurations ON configurations.version_id = versions.id AND configurations.spec_count > 0
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
FROM known_packages, json_each(known_packages.variant_meaning_ids) AS each
JOIN variant_meanings ON variant_meanings.id = CAST(each.value AS BIGINT)""",
    "known_maintainers": """\
SELECT known_packages.name AS package, package_maintainers.maintainer
FROM package_maintainers
JOIN known_packages ON known_packages.id = package_maintainers.known_package_id""",
    "known_licenses": """\
SELECT
  known_packages.name AS package,
  package_licenses.license,
  package_licenses.condition
FROM package_licenses
JOIN known_packages ON known_packages.id = package_licenses.known_package_id""",
    "known_tags": """\
SELECT known_packages.name AS package, package_tags.tag
FROM package_tags
JOIN known_packages ON known_packages.id = package_tags.known_package_id""",
    "known_dependencies": """\
SELECT
  known_dependents.dependency,
  known_packages.name AS package,
  nullif(dependency_types.types, '') AS types
FROM known_dependents, json_each(known_dependents.known_package_ids) AS each
JOIN known_packages ON known_packages.id = CAST(each.value AS BIGINT)
LEFT JOIN dependency_types ON dependency_types.id = known_dependents.dependency_type_id""",
    "host_builds": f"""\
SELECT
  target_runs_on.host,
{_SPEC_COLUMNS}
FROM target_runs_on
JOIN configurations
  ON configurations.target_id = target_runs_on.target_id
  AND configurations.platform_id = target_runs_on.platform_id
JOIN specs ON specs.configuration_id = configurations.id
{CONFIGURATION_JOINS}
WHERE specs.release_count > 0""",
}
"""Every view, as SQL: the tables with words instead of ids.

DuckDB runs these statements too when it attaches a database, so they use functions and
casts that both support, except in `installations` and `known_versions`.
"""
