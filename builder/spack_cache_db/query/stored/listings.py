"""One spec as a database has it: its listings, and what contradicts them."""

from __future__ import annotations

import re
import sqlite3
from typing import NamedTuple

from spack_cache_db.database_damage import stored_json
from spack_cache_db.query.open.sql import select

STORED = """
SELECT specs.id, configuration_id, stack_sets.shown, release_count, first_seen, last_seen
FROM specs JOIN stack_sets ON stack_sets.id = specs.stack_set_id WHERE hash = :hash
"""
LISTINGS = """
SELECT releases.name, releases.kind, stack_sets.shown, releases.is_copy, build_listings.size,
  build_listings.tarball
FROM specs
JOIN listings ON listings.spec_id = specs.id
JOIN releases ON releases.id = listings.release_id
JOIN stack_sets ON stack_sets.id = listings.stack_set_id
JOIN build_listings ON build_listings.release = releases.name AND build_listings.hash = :hash
WHERE specs.hash = :hash ORDER BY releases.position
"""
CONTRADICTIONS = """
SELECT source, message FROM problems WHERE hash = :hash AND code LIKE 'two_%' ORDER BY id
"""
_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)


class StoredSpec(NamedTuple):
    """A spec, listed or not, with the id of its configuration and the names of its
    stacks.
    """

    id: int
    configuration: int
    stacks: tuple[str, ...]
    release_count: int
    first_seen: str | None
    last_seen: str | None


class Listing(NamedTuple):
    """A spec's presence in one release; `is_copy` if `build --snapshot` made the
    release.
    """

    release: str
    kind: str
    stacks: tuple[str, ...]
    is_copy: bool
    size: str
    tarball: str | None

    @property
    def has_link(self) -> bool:
        """Whether the tarball's address is a web address, not a script or a file."""
        return bool(self.tarball and _WEB.match(self.tarball))


def stored_spec(conn: sqlite3.Connection, dag_hash: str) -> StoredSpec | None:
    """Return the spec with this full hash, listed or not; None if there is none."""
    row = next(select(conn, STORED, hash=dag_hash), None)
    if row is None:
        return None
    spec, configuration, stacks, release_count, first_seen, last_seen = row
    return StoredSpec(
        id=spec,
        configuration=configuration,
        stacks=tuple(stored_json(stacks)),
        release_count=release_count,
        first_seen=first_seen,
        last_seen=last_seen,
    )


def listings_of(conn: sqlite3.Connection, dag_hash: str) -> tuple[Listing, ...]:
    """Return the presence of a spec in each release, in the database's order."""
    listings = []
    for row in select(conn, LISTINGS, hash=dag_hash):
        release, kind, stacks, is_copy, size, tarball = row
        listings.append(
            Listing(
                release=release,
                kind=kind,
                stacks=tuple(stored_json(stacks)),
                is_copy=bool(is_copy),
                size=size,
                tarball=tarball,
            )
        )
    return tuple(listings)


def contradictions_of(
    conn: sqlite3.Connection, dag_hash: str
) -> tuple[tuple[str, str], ...]:
    """Return the sources that contradict what is stored about a spec, with their
    messages.
    """
    contradictions = []
    for path, message in select(conn, CONTRADICTIONS, hash=dag_hash):
        # The reader knows which spec it is.
        without_hash = message.replace(f" {dag_hash}", "", 1)
        contradictions.append((path, without_hash))
    return tuple(contradictions)
