"""One SQLite file → the pages it was built from: the proof that nothing was lost.

Both sides of the comparison stand here: a page's values as the database gives them back, and as
its source says them. Both are in normal form (see `normal.py`): lists are sorted, for their
order says nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from spack_cache_db.records import Configuration
from spack_cache_db.sources.pages.consistency import computed_meta, declared_meta
from spack_cache_db.sources.pages.normal import as_set, normal_configuration
from spack_cache_db.sources.pages.records import Page

_LISTINGS = """
SELECT hash, package, version, compiler, os, platform, target, size, tarball
FROM build_listings WHERE release = :release AND package = :package
"""

# The view joins the names of a set into one text, which need not come apart again.
_SETS = """
SELECT specs.hash, configurations.variants, listings.stacks
FROM listings
JOIN specs ON specs.id = listings.spec
LEFT JOIN listing_configurations
  ON listing_configurations.release = listings.release
  AND listing_configurations.spec = listings.spec
JOIN configurations
  ON configurations.id = coalesce(listing_configurations.configuration, specs.configuration)
WHERE listings.release = (SELECT id FROM releases WHERE name = ?)
"""


class PageReader:
    """Gives the pages of a database back, from the database alone."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._variant_sets = _sets(connection, "variant_set", "variant", "text")
        self._stack_sets = _sets(connection, "stack_set", "stack", "name")
        self._release: str | None = None
        self._listed: dict[str, tuple[int, int]] = {}

    def values(self, page_id: int) -> dict[str, Any]:
        """Return the front matter of a page.

        Raises:
            KeyError: the database has no such page.
        """
        named = self._connection.execute(
            "SELECT releases.name, packages.name FROM pages "
            "JOIN packages ON packages.id = pages.package "
            "JOIN releases ON releases.id = pages.release WHERE pages.id = ?",
            [page_id],
        ).fetchone()
        if named is None:
            raise KeyError(page_id)
        release, package = named
        self._read_release(release)
        configurations, stack_sets, details = [], [], []
        for spec_hash, *parts, size, tarball in self._connection.execute(
            _LISTINGS, {"release": release, "package": package}
        ):
            variants, stacks = self._listed[spec_hash]
            configuration = Configuration._make([*parts, self._variant_sets.get(variants, ())])
            configurations.append(configuration)
            stack_sets.append(self._stack_sets.get(stacks, ()))
            details.append(_detail(spec_hash, configuration, stack_sets[-1], size, tarball))
        meta = computed_meta(set(configurations), Counter(stack_sets).items())
        meta.update(self._declared(page_id))
        return _front_matter(package, release, meta, details)

    def _read_release(self, release: str) -> None:
        """Learn the sets of a release's listings; pages mostly come release by release."""
        if release != self._release:
            rows = self._connection.execute(_SETS, [release])
            self._listed = {spec_hash: (variants, stacks) for spec_hash, variants, stacks in rows}
            self._release = release

    def _declared(self, page_id: int) -> dict[str, Any]:
        """Return what a page declares and does not list: `problems` keeps it."""
        declared = self._connection.execute(
            "SELECT code, declared FROM problems WHERE page = ? AND declared IS NOT NULL",
            [page_id],
        )
        return {key: json.loads(text) for key, text in declared}


def normal_page(page: Page) -> dict[str, Any]:
    """Return the front matter of a page as its source says it, in the same normal form."""
    details = [
        _detail(
            each.hash,
            normal_configuration(page.package, each),
            as_set("stack", each.stacks),
            each.size,
            None if each.tarball is UNSET else each.tarball,
        )
        for each in page.details
    ]
    return _front_matter(page.package, page.release, declared_meta(page.meta), details)


def _front_matter(
    package: str, release: str, meta: dict[str, Any], details: Iterable[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "title": package,
        "layout": "cache",
        "categories": ["package", release],
        "meta": meta,
        "spec_details": sorted(details, key=lambda detail: str(detail["hash"])),
    }


def _detail(
    spec_hash: str,
    configuration: Configuration,
    stacks: tuple[str, ...],
    size: str,
    tarball: object | None,
) -> dict[str, Any]:
    detail = {
        "hash": spec_hash,
        "compiler": configuration.compiler,
        "versions": [configuration.version],
        "os": configuration.os,
        "platform": configuration.platform,
        "target": configuration.target,
        "variants": [*configuration.variants],
        "stacks": [*stacks],
        "size": size,
    }
    return detail if tarball is None else detail | {"tarball": tarball}


def _sets(
    connection: sqlite3.Connection, table: str, member: str, name: str
) -> dict[int, tuple[str, ...]]:
    """Return the members of every set of a kind, sorted, by the set's id."""
    sets: dict[int, list[str]] = {}
    query = (
        f"SELECT {table}, {member}s.{name} FROM {table}_members "  # noqa: S608 - our own names
        f"JOIN {member}s ON {member}s.id = {table}_members.{member}"
    )
    for number, text in connection.execute(query):
        sets.setdefault(number, []).append(text)
    return {number: tuple(sorted(texts)) for number, texts in sets.items()}
