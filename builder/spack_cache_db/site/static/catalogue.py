"""`catalogue.json`: what the static export's scripts read before the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from spack_cache_db.query.commands.install import TRUST_KEYS, add_commands
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.stored.mirrors import every_mirror
from spack_cache_db.query.stored.origin import read_origin
from spack_cache_db.query.stored.totals import largest_packages, read_totals
from spack_cache_db.releases import public_mirror
from spack_cache_db.schema.tarballs import TARBALL_PATH

CATALOGUE = "catalogue.json"
"""A folder that contains this file was written by `export-static`."""
CLOSURE = """
WITH RECURSIVE closure(spec) AS (
  SELECT id FROM specs WHERE hash = :hash
  UNION
  SELECT dependencies.dependency_id FROM closure
  CROSS JOIN dependencies ON dependencies.spec_id = closure.spec
  CROSS JOIN dependency_types ON dependency_types.id = dependencies.dependency_type_id
  WHERE ',' || dependency_types.types || ',' LIKE '%,link,%'
    OR ',' || dependency_types.types || ',' LIKE '%,run,%'
)
SELECT specs.hash, packages.name, (
  SELECT json_group_array(records.mirror_id) FROM records
  WHERE records.is_listed AND records.spec_id = coalesce(
    (SELECT build_spec_id FROM splices WHERE splices.spec_id = specs.id LIMIT 1), specs.id))
FROM closure
CROSS JOIN specs ON specs.id = closure.spec
CROSS JOIN configurations ON configurations.id = specs.configuration_id
CROSS JOIN packages ON packages.id = configurations.package_id
WHERE specs.is_binary OR NOT specs.is_external
ORDER BY specs.hash <> :hash, packages.name, specs.hash
"""
"""The specs that an installation of a binary needs as binaries, and the mirrors that
list each; the binary itself comes first.

The mirrors of a spliced spec are those of the spec that it was built as
(`build_spec_id`). CROSS JOIN makes SQLite start from the closure, so that it reads
little over the network.
"""
TARBALL = """
SELECT tarball FROM build_listings WHERE release = :release AND hash = :hash
"""
"""The address of a binary in a release."""
PACKAGE = "/package/"
"""The beginning of the path of a package."""
LARGEST_PACKAGES = 12
"""Number of packages that the page shows before a search."""


def catalogue(
    conn: sqlite3.Connection, name: str, size: int, files: Mapping[str, str]
) -> dict[str, Any]:
    """Return the facts that the page shows before it reads the database.

    Args:
        conn: a connection to the database.
        name: the name of its copy.
        size: the bytes of the copy.
        files: the files of the exported pages, by their paths on the site.
    """
    totals = read_totals(conn)
    lookups = read_lookups(conn)
    # The mirrors, the preferred one first, with the ids of their indexes. If commands
    # add two mirrors of one release, the second one gets another name.
    mirrors = []
    for mirror, ids in every_mirror(lookups).items():
        (add_command,) = add_commands([mirror])
        _, add_command_of_second = add_commands([mirror, mirror])
        mirror_facts = {
            "ids": list(ids),
            "release": mirror.release,
            "add": add_command,
            "addBeside": add_command_of_second,
            # Signed unless the mirror says otherwise.
            "isSigned": mirror.is_signed is not False,
        }
        mirrors.append(mirror_facts)
    # The files of packages whose names cannot be those of files as they are.
    renamed = {}
    for path, file in files.items():
        if path.startswith(PACKAGE) and file != f"{path.removeprefix('/')}.html":
            renamed[path.removeprefix(PACKAGE)] = file
    release_names = [release.name for release in lookups.releases.values()]
    return {
        "database": name,
        "size": size,
        "title": read_origin(conn).title,
        "statements": {"closure": CLOSURE, "tarball": TARBALL},
        "mirrors": mirrors,
        "tarballPath": TARBALL_PATH[0],
        "publicMirrors": {name: public_mirror(name) for name in release_names},
        "trust": TRUST_KEYS,
        "totals": {
            "binaries": totals.specs,
            "packages": totals.packages,
            "releases": totals.releases,
        },
        "renamedFiles": renamed,
        "packages": list(largest_packages(conn, LARGEST_PACKAGES)),
    }
