"""The names that pasted text may mean in a database."""

from __future__ import annotations

from spack_cache_db.query.catalogue import hashes_beginning
from spack_cache_db.query.conditions import VIRTUALS
from spack_cache_db.query.connection import Lookups, select
from spack_cache_db.spack.pasted_specs import KnownNames

_KNOWN = """
SELECT 1 WHERE EXISTS (SELECT 1 FROM known_packages WHERE name = :name)
OR EXISTS (SELECT 1 FROM providers WHERE virtual = :name)
"""


def known_names(lookups: Lookups) -> KnownNames:
    """Return the packages and hashes of a database.

    A package is known if the database has a binary of it, if it is a dependency of one, or if the
    package data of the database names it; so are virtual packages. Capitals do not matter.
    """

    def is_package(name: str) -> bool:
        name = name.lower()
        if name in lookups.packages or name in VIRTUALS:
            return True
        return any(select(lookups.conn, _KNOWN, name=name))

    def is_hash(prefix: str) -> bool:
        return bool(hashes_beginning(lookups.conn, prefix, 1))

    return KnownNames(is_package, is_hash)
