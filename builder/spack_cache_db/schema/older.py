"""The databases of older schema versions, each as views that give it the tables of
today.

A build replaces its output, so no database is changed in place:
`build OLD.db -o NEW.db` reads the old one. `database_file.open_source` compares the
statements of its tables with the checksums in `FORMS`, and creates TEMP views that hide
the tables under the names of today.

After a change of the schema, add the old version to `FORMS` with views for the tables
in `READ` that have changed, and its database in `tests/data/old_databases/`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Views = Mapping[str, str]
"""The SELECT statements of TEMP views, by the names of the tables that they hide."""

READ = (
    "compilers", "configurations", "dependencies", "dependency_types", "dependency_virtuals",
    "document_listings", "installs", "listings", "mirrors", "modules", "nodes",
    "operating_systems", "origin", "package_rests", "packages", "pages", "platforms", "problems",
    "recipes", "record_ranges", "records", "releases", "specs", "splices", "stack_sets", "stacks",
    "tarball_prefixes", "targets", "variant_set_members", "variant_sets", "variants", "versions",
)  # fmt: skip
"""The tables that `sources/databases.py` reads, and no others."""

MAX_PACKAGES = 2**28
"""Bytes of package data that one row may unpack to."""

# A snapshot is a copy if each of its mirrors is one of the release that it is named
# for: with the same stack and URL; without a URL, with the same path. A dated release
# of the public cache is a mirror of its own, with its own URL. A copy has no pages.
_RELEASES = """
SELECT id, name, kind, date, position, previous, package_count, spec_count,
  kind = 'snapshot'
  AND NOT EXISTS (SELECT 1 FROM main.pages WHERE release = releases.id)
  AND EXISTS (SELECT 1 FROM main.mirrors WHERE release = releases.id)
  AND NOT EXISTS (
    SELECT 1 FROM main.mirrors AS own WHERE own.release = releases.id AND NOT EXISTS (
      SELECT 1 FROM main.mirrors AS other
      JOIN main.releases AS branch ON branch.id = other.release
      WHERE branch.name = substr(releases.name, 1, length(releases.name) - 11)
        AND other.stack = own.stack AND other.url IS own.url
        AND (own.url IS NOT NULL OR other.path = own.path)
    )
  ) AS is_copy
FROM main.releases AS releases
"""

_MIRRORS = """
SELECT id, release, stack, path, sha256, format, url, is_named,
  NULL AS is_signed, NULL AS settings
FROM main.mirrors
"""

_MODULES = """
SELECT id, path, release, name, compiler, tree, hash, package, version, is_hidden,
  NULL AS parents
FROM main.modules
"""

_NO_MODULES = """
SELECT NULL AS id, NULL AS path, NULL AS release, NULL AS name, NULL AS compiler, NULL AS tree,
  NULL AS hash, NULL AS package, NULL AS version, NULL AS is_hidden, NULL AS parents
WHERE 0
"""

# A node that names its compiler is of Spack before 1.0, in which each node did.
_NODES = """
SELECT id, namespace, package_hash, parameters, external, has_compiler,
  has_compiler AS is_before_1_0
FROM main.nodes
"""

# Two columns had each other's names.
_COMPILERS = """
SELECT id, name AS compiler, compiler AS name, version FROM main.compilers
"""

# The externals of an installation were not listed.
_RECORDS = """
SELECT spec, mirror, node,
  is_binary OR EXISTS (
    SELECT 1 FROM main.installs
    WHERE installs.spec = records.spec AND installs.mirror = records.mirror
  ) AS is_listed
FROM main.records AS records
"""

# Nodes had all of their keys; an external is now only its path and its modules.
_NODES_18 = """
SELECT id, namespace, package_hash, parameters, external, has_compiler,
  coalesce(spec_format < 5, has_compiler) AS is_before_1_0
FROM (
  SELECT id, namespace, package_hash, parameters,
    place_of_external(external) AS external,
    json_extract(rest, '$.compiler') IS NOT NULL
      OR json_extract(rest, '$.annotations.compiler') IS NOT NULL AS has_compiler,
    json_extract(rest, '$.annotations.original_specfile_version') AS spec_format
  FROM main.nodes
)
"""

# Versions of package data had their checksums.
_PACKAGE_RESTS = """
SELECT id, without_checksums(data) AS data FROM main.package_rests
"""

# Unknown keys were kept; a database of today leaves them out.
_PROBLEMS = """
SELECT id, source, page, mirror, code, replace(message, 'kept as it is', 'left out') AS message,
  hash, value
FROM main.problems WHERE code = 'unknown_key'
UNION ALL
SELECT id, source, page, mirror, code, message, hash, value
FROM main.problems WHERE code <> 'unknown_key'
"""

# An index of database 5 does not say which records are binaries (Spack 0.16
# `database.py`).
_RECORDS_15 = """
SELECT spec, mirror, node,
  coalesce(
    in_buildcache,
    (SELECT external IS NULL FROM main.nodes WHERE id = records.node)
      AND coalesce(json_extract(rest, '$.installed'), 1)
  ) OR EXISTS (
    SELECT 1 FROM main.installs
    WHERE installs.spec = records.spec AND installs.mirror = records.mirror
  ) AS is_listed
FROM main.records AS records
"""

# Before version 23, the columns with ids were not called ids.
_IDS = {
    "configurations": """
SELECT id, package AS package_id, version AS version_id, compiler AS compiler_id, os AS os_id,
  platform AS platform_id, target AS target_id, variants AS variant_set_id
FROM {}
""",
    "dependencies": """
SELECT spec AS spec_id, dependency AS dependency_id, types AS dependency_type_id,
  virtuals AS dependency_virtual_id, direct
FROM {}
""",
    "document_listings": """
SELECT id, page AS page_id, mirror AS mirror_id, spec AS spec_id, stacks AS stack_set_id, size,
  tarball AS tarball_prefix_id
FROM {}
""",
    "installs": """
SELECT spec AS spec_id, mirror AS mirror_id, prefix, explicit, installed_at FROM {}
""",
    "listings": """
SELECT release AS release_id, spec AS spec_id, stacks AS stack_set_id, size,
  tarball AS tarball_prefix_id
FROM {}
""",
    "mirrors": """
SELECT id, release AS release_id, stack AS stack_id, path, sha256, format, url, is_named,
  is_signed, settings
FROM {}
""",
    "modules": """
SELECT id, path, release AS release_id, name, compiler, tree, hash, package, version, is_hidden,
  parents
FROM {}
""",
    "pages": """
SELECT id, release AS release_id, package AS package_id, path, sha256, format FROM {}
""",
    "problems": """
SELECT id, source, page AS page_id, mirror AS mirror_id, code, message, hash, value FROM {}
""",
    "records": """
SELECT spec AS spec_id, mirror AS mirror_id, node AS node_id, is_listed FROM {}
""",
    "specs": "SELECT id, hash, configuration AS configuration_id FROM {}",
    "splices": """
SELECT spec AS spec_id, mirror AS mirror_id, build_spec AS build_spec_id FROM {}
""",
    "variant_set_members": """
SELECT variant_set AS variant_set_id, variant AS variant_id FROM {}
""",
    "versions": "SELECT id, package AS package_id, name FROM {}",
}
"""The columns that are read of each table with ids; `{}` is the table of version 22."""


def _with_ids(views: Views) -> Views:
    """Return views of today from those that have the tables of version 22."""
    renamed = dict(views)
    for name, sql in _IDS.items():
        source = f"main.{name}"
        if name in views:
            source = f"({views[name]})"
        renamed[name] = sql.format(source)
    return renamed


_VIEWS_21 = {
    "releases": _RELEASES,
    "mirrors": _MIRRORS,
    "modules": _MODULES,
    "nodes": _NODES,
}
_BEFORE_MODULES = {**_VIEWS_21, "modules": _NO_MODULES}
_BEFORE_NAMES = {
    **_BEFORE_MODULES,
    "mirrors": _MIRRORS.replace("is_named", "0 AS is_named"),
}
_FIRST_21 = {**_BEFORE_NAMES, "compilers": _COMPILERS}
_VIEWS_20 = {**_FIRST_21, "records": _RECORDS}
_VIEWS_18 = {
    **_VIEWS_20,
    "nodes": _NODES_18,
    "package_rests": _PACKAGE_RESTS,
    "problems": _PROBLEMS,
}
_VIEWS_15 = {**_VIEWS_18, "records": _RECORDS_15}

FORMS: Mapping[int, Mapping[str, Views]] = {
    15: {
        "9dff503d5a69948e42b9a8c26a111f1c8c7d4fd886fd017c5e4a9e40a70135fe": _with_ids(
            _VIEWS_15
        )
    },
    16: {
        "504539fac00750f1809a05c00575c9f781ad30cf83d1201011d1730332dc15d5": _with_ids(
            _VIEWS_18
        )
    },
    17: {
        "504539fac00750f1809a05c00575c9f781ad30cf83d1201011d1730332dc15d5": _with_ids(
            _VIEWS_18
        )
    },
    18: {
        "4f87050447ea7c7b1e589c6ff8c003005c293a70b70b04df37d6e456075beee3": _with_ids(
            _VIEWS_18
        )
    },
    19: {
        "49e3b6d63dc47cf5737edc653de4f65028623fefb747a05fc6841b0f4f613e95": _with_ids(
            _VIEWS_20
        )
    },
    20: {
        "c5ad8d374be4c0c4abfbe689458e9f9617a201d3db22250a170a7d47fce9ce43": _with_ids(
            _VIEWS_20
        )
    },
    21: {
        "9e4543469538f5062533f6d7b195a4066bf49a7a2912c9d39c3fb4193016352e": _with_ids(
            _FIRST_21
        ),
        "35f7fcd0454426541cccbd8c70579a50553f2694498886e5316fb922c4f06d0b": _with_ids(
            _BEFORE_NAMES
        ),
        "00cbeecc8e5d775276713212e3bff7170910f4fa414c65256e7981e42abf03be": _with_ids(
            _BEFORE_MODULES
        ),
        "8639c89e168b021faec39e5fb1176b4f4b5e4515221e0b49189606e4969b7a3b": _with_ids(
            _VIEWS_21
        ),
    },
    22: {
        "6eb889064247aa03e1a2af35e0eaec875fd31bb948f496a9ef182fd4fc9f6f0f": _with_ids(
            {}
        )
    },
    # The tables of today, except for columns that are not read.
    23: {"7e229e6826d78d1c2759aaa06c7be5f842f7b829618464d1ce58b23a48081bbc": {}},
    # The records of each mirror were a table; today a view has the same columns.
    24: {"2897617d8a6cc2ce900e905dbadbbdcf9f93a905262d06037f4d27c9fa699f86": {}},
    # What runs on a machine did not depend on platforms.
    25: {"94d7cf4463ae6b37a105d87082e4a6da92a3c9b55076900b20233baad7411cb7": {}},
}
"""The views of each older version, by the checksum (`tables_sha256`) of its tables.

Since version 22, a version has one checksum.
"""


_NOT_AS_BUILT = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Raised by values that no build wrote; the reader of the column reports them."""


def tables_sha256(statements: Iterable[tuple[str, str]]) -> str:
    """Return a checksum of the tables in `READ`.

    Args:
        statements: the columns `name` and `sql` of `sqlite_master`; other names are
            ignored.
    """
    read = sorted(statement for statement in statements if statement[0] in READ)
    return hashlib.sha256(repr(read).encode()).hexdigest()


def place_of_external(external: str | None) -> str | None:
    """Return the path and the modules of an external, as JSON with sorted keys."""
    if external is None:
        return None
    try:
        values = json.loads(external)
        place = {key: values[key] for key in ("module", "path") if values.get(key)}
    except _NOT_AS_BUILT:
        return external
    return json.dumps(place, ensure_ascii=False, separators=(",", ":"))


def without_checksums(data: bytes) -> bytes:
    """Return package data without the third value of versions, compressed as it was."""
    # Commands that only read databases do not need it.
    import zstandard

    try:
        text = zstandard.ZstdDecompressor().decompress(
            data, max_output_size=MAX_PACKAGES
        )
        packages = json.loads(text)
        for package in packages:
            versions = package["versions"]
            package["versions"] = {name: facts[:2] for name, facts in versions.items()}
    except (*_NOT_AS_BUILT, zstandard.ZstdError):
        return data
    return zstandard.ZstdCompressor().compress(json.dumps(packages).encode())


FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "place_of_external": place_of_external,
    "without_checksums": without_checksums,
}
"""The SQL functions of views, with one argument."""
