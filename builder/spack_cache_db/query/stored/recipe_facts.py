"""Maintainers, licenses and tags of packages, as package data has them."""

from __future__ import annotations

from collections.abc import Mapping

from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select
from spack_cache_db.query.rows import grouped

_MAINTAINERS = "SELECT maintainer, package FROM known_maintainers ORDER BY 1, 2"
_LICENSES = "SELECT DISTINCT license, package FROM known_licenses ORDER BY 1, 2"
_TAGS = "SELECT tag, package FROM known_tags ORDER BY 1, 2"
_STATEMENTS = {"maintainer": _MAINTAINERS, "license": _LICENSES, "tag": _TAGS}

RECIPE_KINDS = tuple(_STATEMENTS)
"""The kinds of names that package data gives to packages."""

PackagesByName = Mapping[str, tuple[str, ...]]
"""Packages by the name of a maintainer, a license or a tag."""


def packages_with(lookups: Lookups, kind: str) -> PackagesByName:
    """Return the packages of each maintainer, license or tag; cached.

    `packages_with(lookups, "tag")` is `{"e4s": ("adios2", "hdf5")}`.
    """
    sql = _STATEMENTS[kind]
    return lookups.once(sql, lambda: grouped(select(lookups.conn, sql)))
