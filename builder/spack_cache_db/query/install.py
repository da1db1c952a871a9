"""The commands that install a spec from a release that lists it, ready to paste into a shell."""

from __future__ import annotations

import shlex
import sqlite3
from dataclasses import dataclass

from spack_cache_db.query.find import Found
from spack_cache_db.query.open import select

MIRRORS = "https://binaries.spack.io"
TRUST_KEYS = "spack buildcache keys --install --trust"
SHORTEST_HASH = 7
EXAMPLE = "spack install --cache-only hdf5"

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


@dataclass(frozen=True, slots=True)
class Install:
    """The three commands, and the release whose mirror they use."""

    release: str
    mirror: str
    trust: str
    install: str


def install_found(conn: sqlite3.Connection, found: Found, release: str | None) -> Install | None:
    """Return the commands for the first spec of a configuration that has its hashes.

    Args:
        conn: a connection to the file.
        found: a configuration with its hashes.
        release: the release to take it from; None for the first that lists it, which is a branch
            where one does, because mirrors of old snapshots may be gone.

    Returns:
        None where nothing lists the spec.
    """
    for dag_hash in found.hashes or ():
        listed = [row[0] for row in select(conn, LISTED, hash=dag_hash)]
        if not listed or (release is not None and release not in listed):
            continue
        chosen = release or listed[0]
        tarball = next(row[0] for row in select(conn, TARBALL, release=chosen, hash=dag_hash))
        return install_spec(conn, found.configuration.package, dag_hash, chosen, tarball)
    return None


def install_spec(
    conn: sqlite3.Connection, package: str, dag_hash: str, release: str, tarball: str | None
) -> Install:
    """Return the commands that install one spec from the mirror of a release.

    Args:
        tarball: the address of its tarball in that release, where it is known.
    """
    near = tuple(row[0] for row in select(conn, NEIGHBOURS, hash=dag_hash) if row[0] is not None)
    command = shlex.join(["spack", "install", f"{package}/{shortest_prefix(dag_hash, near)}"])
    return Install(release, mirror_command(release, tarball), TRUST_KEYS, command)


def install_example(release: str) -> Install:
    """Return the commands for a new user of a release."""
    return Install(release, mirror_command(release), TRUST_KEYS, EXAMPLE)


def mirror_command(release: str, tarball: str | None = None) -> str:
    """Return the command that adds the mirror of a release.

    A tarball's address tells where its mirror was; without one, the mirror of a release is
    called like the release.
    """
    url = f"{MIRRORS}/{release}"
    if tarball and "/build_cache/" in tarball:
        url = tarball.partition("/build_cache/")[0]
    return shlex.join(["spack", "mirror", "add", release, url])


def shortest_prefix(dag_hash: str, neighbours: tuple[str, ...]) -> str:
    """Return the shortest prefix, of 7 characters or more, that no neighbouring hash shares."""
    length = SHORTEST_HASH
    while length < len(dag_hash) and any(each.startswith(dag_hash[:length]) for each in neighbours):
        length += 1
    return dag_hash[:length]
