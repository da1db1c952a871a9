"""The names that pasted text may mean in a database."""

from __future__ import annotations

from spack_cache_db.query.catalogue import hashes_beginning
from spack_cache_db.query.connection import Lookups
from spack_cache_db.query.spellings import read_spellings
from spack_cache_db.spack.pasted_specs import KnownNames


def known_names(lookups: Lookups) -> KnownNames:
    """Return the packages and hashes of a database.

    A package is known if the database has a binary of it, if it is a dependency of one, or if the
    package data of the database names it; so are virtual packages. Names may have any spelling.
    """
    spellings = read_spellings(lookups)

    def is_package(name: str) -> bool:
        return spellings.knows("package", name) or spellings.knows("virtual", name)

    def is_hash(prefix: str) -> bool:
        return bool(hashes_beginning(lookups.conn, prefix, 1))

    return KnownNames(is_package, is_hash)
