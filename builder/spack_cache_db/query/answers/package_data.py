"""Spack's data of a package, beside its binaries."""

from __future__ import annotations

from spack_cache_db.arguments import checked
from spack_cache_db.query.names.spellings import read_spellings
from spack_cache_db.query.open.lookups import Database, opened
from spack_cache_db.query.stored.package_data import PackageData, read_package


@checked
def package_data(db: Database, name: str) -> PackageData | None:
    """Return the package data of a package, and its number of binaries.

    Args:
        db: a database made by `build`, as text or `Path`, or a `Cache` or connection to
            one.
        name: the package, in any spelling (`spellings`).

    Returns:
        None if the database has neither a binary nor package data of it.

    Raises:
        ArgumentError: an argument has a wrong type.
        DatabaseError: the database was not made by this builder.
    """
    with opened(db) as lookups:
        return read_package(
            lookups.conn, read_spellings(lookups).canonical("package", name)
        )
