"""How much each release changed, compared with the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select_in

_AMOUNTS = """
SELECT id, added_count, removed_count FROM releases
WHERE previous_release_id IS NOT NULL AND id IN (SELECT value FROM json_each(:ids))
"""
_CONFIGURATION_AMOUNTS = """
SELECT
  release_id,
  sum(added > 0 AND removed = 0 AND spec_count = added),
  sum(removed > 0 AND spec_count = 0)
FROM configuration_history
WHERE (added > 0 OR removed > 0)
  AND release_id IN (SELECT value FROM json_each(:ids))
GROUP BY release_id
"""


def amounts_of_releases(
    lookups: Lookups, releases: Sequence[int]
) -> Mapping[int, tuple[int, int]]:
    """Return how many binaries each release added and removed, compared with the one
    before.
    """
    return _amounts(lookups, _AMOUNTS, releases)


def configuration_amounts_of_releases(
    lookups: Lookups, releases: Sequence[int]
) -> Mapping[int, tuple[int, int]]:
    """Return how many configurations each release added and removed, compared with the
    one before. Other hashes of the same configurations do not count.
    """
    return _amounts(lookups, _CONFIGURATION_AMOUNTS, releases)


def _amounts(
    lookups: Lookups, sql: str, releases: Sequence[int]
) -> Mapping[int, tuple[int, int]]:
    """Return what each release added and removed, by a statement; cached."""

    def read() -> dict[int, tuple[int, int]]:
        rows = select_in(lookups.conn, sql, releases)
        return {release: (added, removed) for release, added, removed in rows}

    return lookups.once((sql, *releases), read)
