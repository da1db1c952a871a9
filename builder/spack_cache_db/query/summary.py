"""What a file says of itself: its counts, whose build cache it holds, examples of queries."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from spack_cache_db import schema
from spack_cache_db.arguments import AnyPath, checked_file
from spack_cache_db.query.catalogue import configurations_by_id
from spack_cache_db.query.connection import connected, select
from spack_cache_db.query.installation import EXAMPLES
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.records import Configuration
from spack_cache_db.releases import PUBLIC_SITE, is_public_mirror

_BESIDE_SPACK = """
SELECT
  (SELECT count(*) FROM package_status WHERE versions_behind > 0) AS packages_behind,
  (SELECT count(*) FROM package_status WHERE spec_count = 0) AS packages_missing,
  count(*) FILTER (WHERE is_known) AS versions_deprecated,
  count(*) FILTER (WHERE NOT is_known) AS versions_unknown
FROM (
  SELECT DISTINCT configurations.version, known_versions.version IS NOT NULL AS is_known
  FROM known_packages JOIN packages ON packages.name = known_packages.name
  JOIN configurations ON configurations.package = packages.id AND configurations.spec_count > 0
  JOIN versions ON versions.id = configurations.version
  LEFT JOIN known_versions ON known_versions.package = known_packages.name
    AND known_versions.version = versions.name
  WHERE coalesce(known_versions.deprecated, known_versions.version IS NULL)
    AND known_packages.versions <> '[]')
"""


def info(file: AnyPath) -> dict[str, Any]:
    """Return what is in a file and where it came from, as plain values.

    Raises:
        ArgumentError: the file is no path.
        DatabaseError: see `open_database`; or the file is damaged.
    """
    path = checked_file("file", file)
    with connected(path) as conn:
        counts = {
            name: conn.execute(f"SELECT count(*) FROM {counted}").fetchone()[0]
            for name, counted in schema.COUNTED.items()
        }
        formats = {
            f"{name}_by_format": dict(
                conn.execute(
                    f"SELECT format, count(*) FROM {schema.COUNTED[name]} GROUP BY 1 ORDER BY 1"
                )
            )
            for name in ("pages", "indexes")
        }
        beside_spack = {}
        if counts["known_packages"]:
            found = conn.execute(_BESIDE_SPACK)
            beside_spack = dict(zip((each[0] for each in found.description), *found, strict=True))
        kinds = dict(conn.execute("SELECT kind, count(*) FROM releases GROUP BY kind"))
        first, last = conn.execute("SELECT min(date), max(date) FROM releases").fetchone()
        origin = dict(conn.execute("SELECT name, value FROM origin ORDER BY name"))
    return {
        "file": str(path),
        "size": path.stat().st_size,
        "schema_version": schema.SCHEMA_VERSION,
        **counts,
        **formats,
        "compared_with_spack": beside_spack,
        "releases_by_kind": kinds,
        "first_snapshot": first,
        "last_snapshot": last,
        "origin": origin,
    }


HAS_PAGES = "SELECT EXISTS (SELECT 1 FROM pages)"
URLS = """
SELECT DISTINCT url FROM mirrors JOIN releases ON releases.id = mirrors.release
WHERE releases.kind <> 'installed' ORDER BY url
"""
TREES = "SELECT name FROM releases WHERE kind = 'installed' ORDER BY position"

PUBLIC = "Spack's public build cache"
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose build cache a file holds.

    Attributes:
        title: what to call a site that shows it.
        owner: who lists its binaries, as the subject of a sentence.
        url: the address of all of it on the web; None where there is none, or several.
        is_public: whether all of it is Spack's public build cache.
    """

    title: str
    owner: str
    url: str | None
    is_public: bool


def read_origin(conn: sqlite3.Connection) -> Origin:
    """Return whose build cache a file holds."""
    has_pages = bool(next(select(conn, HAS_PAGES))[0])
    urls = [url for (url,) in select(conn, URLS)]
    has_public = has_pages or any(url and is_public_mirror(url) for url in urls)
    own = [url for url in urls if not (url and is_public_mirror(url))]
    trees = [name for (name,) in select(conn, TREES)]
    owners = [f"the installed tree{'s' * (len(trees) > 1)} {_listed(trees)}"] if trees else []
    if trees and not (has_pages or urls):
        return Origin("Installed software", owners[0], None, is_public=False)
    if not own:
        owners.append(PUBLIC)
        url = None if trees else PUBLIC_SITE
        return Origin("Spack build cache", " and ".join(owners), url, is_public=not trees)
    names = sorted({_name(url) for url in own if url})
    known = _listed(names) if names else None
    title = (
        f"Build {'cache' if len(names) == 1 else 'caches'} of {known}" if known else "Build cache"
    )
    owners += [PUBLIC] if has_public else []
    owners += [f"{'the mirror' if len(names) == 1 else 'mirrors'} at {known}"] if known else []
    owners += ["a mirror"] if None in own else []
    web = own[0] if len(own) == 1 and not (has_public or trees) else None
    url = web if web and web.startswith(("http://", "https://")) else None
    return Origin(title, " and ".join(owners), url, is_public=False)


def _name(url: str) -> str:
    """Return the host in an address, or all of an address that has none."""
    return urlsplit(url).netloc or url


def _listed(names: list[str]) -> str:
    """Return names as one text; of many the first ones, and how many more there are."""
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


VARIANTS = ("+mpi", "+cuda", "+shared")
"""Variants that many know, the best known first."""

OF_PACKAGE = """
SELECT configurations.id FROM json_each(:names) AS wanted
CROSS JOIN packages ON packages.name = wanted.value
CROSS JOIN configurations
  ON configurations.package = packages.id AND configurations.spec_count > 0
ORDER BY wanted.key, configurations.spec_count DESC, configurations.id LIMIT 200
"""
LARGEST = """
SELECT id FROM configurations WHERE spec_count > 0 ORDER BY spec_count DESC, id LIMIT 1
"""


class Examples(NamedTuple):
    """Queries in Spack's syntax: a package, a compiler for a target, and both in one."""

    package: str
    platform: str
    whole: str


def read_examples(conn: sqlite3.Connection, lookups: Lookups) -> Examples | None:
    """Return queries that find something; None where there is nothing to be found."""
    ids = [key for (key,) in select(conn, OF_PACKAGE, names=json.dumps(EXAMPLES))]
    ids = ids or [key for (key,) in select(conn, LARGEST)]
    found = [each.configuration for each in configurations_by_id(conn, lookups, ids)]
    if not found:
        return None
    one = min((each for each in found if each.package == found[0].package), key=_known)
    compiler, _, version = one.compiler.partition("@")
    major = version.partition(".")[0]
    target = f"target={one.target}"
    package = " ".join([one.package, *VARIANTS[_known(one) :][:1]])
    built_by = [f"%{compiler}@{major}"] if major else []
    return Examples(package, " ".join([target, *built_by]), f"{package} {target}")


def _known(each: Configuration) -> int:
    """Return how well-known the best of its variants is: 0 for the best known."""
    places = (place for place, text in enumerate(VARIANTS) if text in each.variants)
    return next(places, len(VARIANTS))
