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

from .consistency import computed_meta, declared_meta
from .normal import as_set, normal_configuration
from .records import Configuration, Page

_LISTINGS = """
SELECT specs.hash, packages.name, versions.name, compilers.name, operating_systems.name,
  platforms.name, targets.name, configurations.variants, listings.stacks,
  build_listings.size, build_listings.tarball
FROM pages
JOIN releases ON releases.id = pages.release
JOIN packages ON packages.id = pages.package
JOIN build_listings
  ON build_listings.release = releases.name AND build_listings.package = packages.name
JOIN specs ON specs.hash = build_listings.hash
JOIN listings ON listings.release = pages.release AND listings.spec = specs.id
LEFT JOIN listing_configurations
  ON listing_configurations.release = pages.release AND listing_configurations.spec = specs.id
JOIN configurations
  ON configurations.id = coalesce(listing_configurations.configuration, specs.configuration)
JOIN versions ON versions.id = configurations.version
JOIN compilers ON compilers.id = configurations.compiler
JOIN operating_systems ON operating_systems.id = configurations.os
JOIN platforms ON platforms.id = configurations.platform
JOIN targets ON targets.id = configurations.target
WHERE pages.id = ?
"""


def page_values(connection: sqlite3.Connection, page_id: int) -> dict[str, Any]:
    """Return the front matter of a page, from the database alone.

    Raises:
        KeyError: the database has no such page.
    """
    named = connection.execute(
        "SELECT packages.name, releases.name FROM pages "
        "JOIN packages ON packages.id = pages.package "
        "JOIN releases ON releases.id = pages.release WHERE pages.id = ?",
        [page_id],
    ).fetchone()
    if named is None:
        raise KeyError(page_id)
    configurations, stack_sets, details = [], [], []
    variant_sets = _sets(connection, "variant_set", "variant", "text")
    all_stack_sets = _sets(connection, "stack_set", "stack", "name")
    for spec_hash, *parts, variants, stacks, size, tarball in connection.execute(
        _LISTINGS, [page_id]
    ):
        configuration = Configuration._make([*parts, variant_sets.get(variants, ())])
        configurations.append(configuration)
        stack_sets.append(all_stack_sets.get(stacks, ()))
        details.append(_detail(spec_hash, configuration, stack_sets[-1], size, tarball))
    meta = computed_meta(set(configurations), Counter(stack_sets).items())
    declared = connection.execute(
        "SELECT code, declared FROM problems WHERE page = ? AND declared IS NOT NULL", [page_id]
    )
    meta.update({key: json.loads(text) for key, text in declared})
    package, release = named
    return _front_matter(package, release, meta, details)


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
