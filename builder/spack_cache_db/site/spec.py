"""The page of one spec: where it is listed, its siblings and how to install it."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass

from spack_cache_db.query.install import Install, install_spec, shortest_prefix
from spack_cache_db.site.catalog import Catalog

SIBLINGS_SHOWN = 100
CANDIDATES_SHOWN = 50

BY_PREFIX = """
SELECT hash FROM specs WHERE hash >= :prefix AND hash < :prefix || '~' ORDER BY hash LIMIT :limit
"""
NEIGHBOURS = """
SELECT max(hash) FROM specs WHERE hash < :hash
UNION ALL
SELECT min(hash) FROM specs WHERE hash > :hash
"""
CANDIDATES = """
SELECT hash, package, version, compiler, os, target, variants FROM builds
WHERE hash IN (SELECT value FROM json_each(:hashes)) ORDER BY hash
"""
SPEC = """
SELECT specs.id, specs.hash, packages.name, versions.name, configurations.compiler,
  configurations.os, configurations.platform, configurations.target, configurations.variants,
  stack_sets.shown, specs.release_count, specs.first_seen, specs.last_seen,
  configurations.id, configurations.spec_count
FROM specs
JOIN configurations ON configurations.id = specs.configuration
JOIN packages ON packages.id = configurations.package
JOIN versions ON versions.id = configurations.version
JOIN stack_sets ON stack_sets.id = specs.stacks
WHERE specs.hash = :hash
"""
LISTINGS = """
SELECT releases.name, releases.kind, stack_sets.shown, build_listings.size,
  build_listings.tarball
FROM listings
JOIN releases ON releases.id = listings.release
JOIN stack_sets ON stack_sets.id = listings.stacks
JOIN build_listings ON build_listings.release = releases.name AND build_listings.hash = :hash
WHERE listings.spec = :spec
ORDER BY releases.position
"""
SIBLINGS = """
SELECT specs.hash, specs.release_count, specs.last_seen FROM specs
WHERE specs.configuration = :configuration AND specs.hash != :hash
ORDER BY specs.last_seen DESC, specs.release_count DESC, specs.hash LIMIT :limit OFFSET :offset
"""

_PREFIX = re.compile(r"[a-z2-7]{7,32}")


@dataclass(frozen=True, slots=True)
class Listing:
    """A spec's presence in one release."""

    release: str
    kind: str
    stacks: tuple[str, ...]
    size: str
    tarball: str | None


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another spec of the same configuration."""

    hash: str
    release_count: int
    last_seen: str | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several specs that a short hash may mean."""

    hash: str
    package: str
    version: str
    compiler: str
    os: str
    target: str
    variants: str


@dataclass(frozen=True, slots=True)
class SpecPage:
    """Everything the page of a spec shows."""

    hash: str
    package: str
    version: str
    compiler: str
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    stacks: tuple[str, ...]
    release_count: int
    first_seen: str | None
    last_seen: str | None
    listings: tuple[Listing, ...]
    sibling_count: int
    siblings: tuple[Sibling, ...]
    page: int
    page_count: int
    install: Install


def is_hash_prefix(text: str) -> bool:
    """Tell whether a text can be a hash or the beginning of one."""
    return _PREFIX.fullmatch(text) is not None


def hashes_beginning(conn: sqlite3.Connection, prefix: str, limit: int) -> tuple[str, ...]:
    """Return the hashes that begin with `prefix`, in order."""
    rows = conn.execute(BY_PREFIX, {"prefix": prefix, "limit": limit})
    return tuple(row[0] for row in rows)


def load_candidates(conn: sqlite3.Connection, hashes: tuple[str, ...]) -> tuple[Candidate, ...]:
    """Describe the specs that a short hash may mean."""
    rows = conn.execute(CANDIDATES, {"hashes": json.dumps(hashes)})
    return tuple(Candidate(*row) for row in rows)


def load_spec(
    conn: sqlite3.Connection, catalog: Catalog, hash_: str, page: int = 1
) -> SpecPage | None:
    """Read the page of the spec with this full hash; `None` if there is none."""
    found = conn.execute(SPEC, {"hash": hash_}).fetchone()
    if found is None:
        return None
    (spec, _, package, version, compiler, system, platform, target, variants) = tuple(found)[:9]
    (stacks, release_count, first_seen, last_seen, configuration, spec_count) = tuple(found)[9:]
    listings = _listings(conn, spec, hash_)
    siblings = _siblings(conn, configuration, hash_, page)
    return SpecPage(
        hash=hash_,
        package=package,
        version=version,
        compiler=catalog.compilers[compiler],
        os=catalog.systems[system],
        platform=catalog.platforms[platform],
        target=catalog.targets[target],
        variants=catalog.variants(conn, [variants])[variants],
        stacks=tuple(json.loads(stacks)),
        release_count=release_count,
        first_seen=first_seen,
        last_seen=last_seen,
        listings=listings,
        sibling_count=spec_count - 1,
        siblings=siblings,
        page=page,
        page_count=max(1, -(-(spec_count - 1) // SIBLINGS_SHOWN)),
        install=_install(conn, package, hash_, listings),
    )


def _listings(conn: sqlite3.Connection, spec: int, hash_: str) -> tuple[Listing, ...]:
    rows = conn.execute(LISTINGS, {"spec": spec, "hash": hash_})
    return tuple(
        Listing(release, kind, tuple(json.loads(stacks)), size, tarball)
        for release, kind, stacks, size, tarball in rows
    )


def _siblings(
    conn: sqlite3.Connection, configuration: int, hash_: str, page: int
) -> tuple[Sibling, ...]:
    window = {"limit": SIBLINGS_SHOWN, "offset": (page - 1) * SIBLINGS_SHOWN}
    rows = conn.execute(SIBLINGS, {"configuration": configuration, "hash": hash_, **window})
    return tuple(Sibling(*row) for row in rows)


def _install(
    conn: sqlite3.Connection, package: str, hash_: str, listings: tuple[Listing, ...]
) -> Install:
    rows = conn.execute(NEIGHBOURS, {"hash": hash_}).fetchall()
    prefix = shortest_prefix(hash_, tuple(row[0] for row in rows if row[0] is not None))
    if not listings:
        return install_spec(package, prefix, "develop", None)
    return install_spec(package, prefix, listings[0].release, listings[0].tarball)
