"""The commands that install what was found: a spec, and a release that lists it."""

from __future__ import annotations

import sqlite3

from spack_cache_db.query.conditions import rows
from spack_cache_db.query.find import Found
from spack_cache_db.query.install import Install, install_spec, shortest_prefix

TARBALL = """
SELECT tarball FROM build_listings WHERE release = :release AND hash = :hash
"""
LISTED = """
SELECT releases.name FROM releases
JOIN specs ON specs.hash = :hash
JOIN listings ON listings.release = releases.id AND listings.spec = specs.id
ORDER BY releases.position
"""
NEIGHBOURS = """
SELECT max(hash) FROM specs WHERE hash < :hash
UNION ALL
SELECT min(hash) FROM specs WHERE hash > :hash
"""


def install_commands(conn: sqlite3.Connection, found: Found, release: str | None) -> Install | None:
    """Give the commands for the spec of a configuration that was seen last.

    Args:
        conn: a connection to the file.
        found: a configuration with its hashes.
        release: the release to take it from; None for the first that lists it, which is a branch
            where one does, because mirrors of old snapshots may be gone.

    Returns:
        None where nothing lists the spec.
    """
    for dag_hash in found.hashes or ():
        listed = [row[0] for row in rows(conn, LISTED, {"hash": dag_hash})]
        if not listed or (release is not None and release not in listed):
            continue
        chosen = release or listed[0]
        where = {"release": chosen, "hash": dag_hash}
        tarball = next((row[0] for row in rows(conn, TARBALL, where)), None)
        near = tuple(row[0] for row in rows(conn, NEIGHBOURS, where) if row[0] is not None)
        return install_spec(found.package, shortest_prefix(dag_hash, near), chosen, tarball)
    return None
