"""What Spack's package data says of a query without an answer: which part of it Spack has not."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Iterator

from spack_cache_db.query.connection import select
from spack_cache_db.spack.constraints import SpecQuery
from spack_cache_db.spack.versions import newest_version, preference_key

_PACKAGE = "SELECT id FROM known_packages WHERE name = :name"
_PROVIDERS = """
SELECT known_packages.name FROM providers
JOIN known_packages ON known_packages.id = providers.package
WHERE virtual = :name ORDER BY known_packages.name
"""
_VERSIONS = "SELECT version FROM known_versions WHERE package = :package"
_WITH_BINARY = """
SELECT DISTINCT versions.name FROM packages
JOIN configurations ON configurations.package = packages.id AND configurations.spec_count > 0
JOIN versions ON versions.id = configurations.version
WHERE packages.name = :name
"""
_VARIANTS = "SELECT name FROM known_variants WHERE package = :package"

_EVERYWHERE = frozenset(("commit", "dev_path", "patches"))
"""What Spack 1.1 takes as a variant of any package (`variant.py`, `RESERVED_NAMES`)."""


def recipe_notes(conn: sqlite3.Connection, query: SpecQuery) -> tuple[str, ...]:
    """Return what Spack does not have of a package, or has without a binary.

    Empty where no package is asked for, or the file has no package data of it.
    """
    if query.name is None:
        return ()
    (key,) = next(select(conn, _PACKAGE, name=query.name), (None,))
    if key is None:
        providers = [name for (name,) in select(conn, _PROVIDERS, name=query.name)]
        named = f"{query.name!r} is a virtual package, provided by {', '.join(providers)}"
        return (named,) if providers else ()
    binaries = {name for (name,) in select(conn, _WITH_BINARY, name=query.name)}
    notes = [] if binaries else [f"Spack has the package {query.name!r}, no binary of it is here"]
    notes += _of_versions(conn, key, query, binaries)
    return (*notes, *_of_variants(conn, key, query))


def _of_versions(
    conn: sqlite3.Connection, key: int, query: SpecQuery, binaries: set[str]
) -> Iterator[str]:
    known = {version for (version,) in select(conn, _VERSIONS, package=key)}
    if query.versions is None or not known:
        return
    fitting = {each for each in known if query.versions.contains(each)}
    if not fitting:
        numbered = [each for each in known if not preference_key(each)[0]]
        newest = newest_version(numbered or known)
        yield f"Spack has no version {query.versions.text} of {query.name}, its newest is {newest}"
    elif binaries and not any(map(query.versions.contains, binaries)):
        yield f"Spack has version {newest_version(fitting)} of {query.name}, no binary does"


def _of_variants(conn: sqlite3.Connection, key: int, query: SpecQuery) -> Iterator[str]:
    known = [name for (name,) in select(conn, _VARIANTS, package=key)]
    for each in query.variants if known else ():
        if each.name not in known and each.name not in _EVERYWHERE:
            close = difflib.get_close_matches(each.name, known, 3)
            hint = f"; close: {', '.join(close)}" if close else ""
            yield f"Spack has no variant {each.name!r} of {query.name}{hint}"
