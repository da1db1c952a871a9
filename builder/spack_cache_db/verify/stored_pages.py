"""A page in normal form, as its source says it and as a built file gives it back.

Lists are sorted in normal form: their order says nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import UNSET

from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION
from spack_cache_db.sources.pages.consistency import computed_meta, declared_meta
from spack_cache_db.sources.pages.page_format import Meta, Page, SpecDetail
from spack_cache_db.sources.pages.page_parser import read_details
from spack_cache_db.sources.pages.page_reader import (
    UNKNOWN_SIZE,
    as_set,
    detail_fault,
    normal_configuration,
)

_PAGE = """
SELECT pages.id FROM pages
JOIN releases ON releases.id = pages.release
JOIN packages ON packages.id = pages.package
WHERE releases.name = :release AND packages.name = :package
"""

_WORDS = ", ".join(column for column in CONFIGURATION if column != "variants")
_LISTINGS = f"""
SELECT hash, size, tarball, {_WORDS}
FROM build_listings WHERE release = :release AND package = :package
"""  # noqa: S608 - our own text

# The view joins the names of a set into one text, which need not come apart again.
_SETS = """
SELECT specs.hash, configurations.variants, shown.stacks
FROM packages
CROSS JOIN releases ON releases.name = :release
CROSS JOIN configurations ON configurations.package = packages.id
CROSS JOIN release_specs AS shown
  ON shown.release = releases.id AND shown.configuration = configurations.id
CROSS JOIN specs ON specs.id = shown.spec
WHERE packages.name = :package
"""

IS_BINARY = """CASE
  WHEN records.in_buildcache IS NOT NULL THEN records.in_buildcache
  ELSE nodes.external IS NULL AND json_extract(records.rest, '$.installed') IS NOT 0
END"""
"""Whether a record is one of a binary, in SQL: see `sources.indexes.mirrors`."""

# Of a spec that a release shows as another package than its own, both packages' pages are told.
_OF_INDEXES = f"""
SELECT specs.hash, stacks.name
FROM (
  SELECT specs.id
  FROM packages
  JOIN configurations ON configurations.package = packages.id
  JOIN specs ON specs.configuration = configurations.id
  WHERE packages.name = :package
  UNION
  SELECT other.spec
  FROM packages
  JOIN configurations ON configurations.package = packages.id
  JOIN listings AS other ON other.configuration = configurations.id
  WHERE packages.name = :package
) AS known
JOIN specs ON specs.id = known.id
JOIN records ON records.spec = specs.id
JOIN nodes ON nodes.id = records.node
JOIN mirrors ON mirrors.id = records.mirror
JOIN releases ON releases.id = mirrors.release
JOIN stacks ON stacks.id = mirrors.stack
WHERE releases.name = :release AND {IS_BINARY}
"""  # noqa: S608 - our own text

_DECLARED = "SELECT code, declared FROM problems WHERE page = ? AND declared IS NOT NULL"


def page_values(page: Page) -> dict[str, Any]:
    """Return the `meta` of a page, and its `spec_details` by hash.

    Raises:
        InputError: a detail has no normal form.
    """
    return {
        "meta": declared_meta(page.meta),
        "spec_details": {each.hash: _detail_values(page, each) for each in read_details(page)},
    }


def _detail_values(page: Page, detail: SpecDetail) -> dict[str, Any]:
    """Return every field of a detail; those that have a normal form in theirs."""
    values = {
        name: value
        for name in SpecDetail.__struct_fields__
        if (value := getattr(detail, name)) is not UNSET
    }
    try:
        configuration = normal_configuration(page.package, detail)
        stacks = as_set("stack", detail.stacks)
    except ValueError as error:
        raise detail_fault(page, detail, error) from None
    return values | {
        "compiler": configuration.compiler,
        "versions": [configuration.version],
        "variants": [*configuration.variants],
        "stacks": [*stacks],
    }


class _Listed(NamedTuple):
    configuration: Configuration
    stacks: tuple[str, ...]
    size: str
    tarball: str | None


class StoredPages:
    """The pages of a database, as it gives them back itself."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._variant_sets = _sets(connection, "variant_set", "variant", "text")
        self._stack_sets = _sets(connection, "stack_set", "stack", "name")
        self._has_indexes = connection.execute("SELECT 1 FROM mirrors").fetchone() is not None

    def values(
        self, release: str, package: str, page_says: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Return the `meta` of a page and its `spec_details` by hash; None if there is no page.

        Args:
            page_says: the `spec_details` of the page. What they lack, and an index of the same
                release adds, is left out: the file holds what both say together.
        """
        names = {"release": release, "package": package}
        page = self._connection.execute(_PAGE, names).fetchone()
        if page is None:
            return None
        sets = {
            dag_hash: (self._variant_sets.get(variants, ()), self._stack_sets.get(stacks, ()))
            for dag_hash, variants, stacks in self._connection.execute(_SETS, names)
        }
        listed = {}
        for dag_hash, size, tarball, *words in self._connection.execute(_LISTINGS, names):
            variants, stacks = sets.get(dag_hash, ((), ()))
            configuration = Configuration._make([*words, variants])
            listed[dag_hash] = _Listed(configuration, stacks, size, tarball)
        if page_says is not None and self._has_indexes:
            listed = self._of_the_page(names, listed, page_says)
        meta = computed_meta(
            {each.configuration for each in listed.values()},
            Counter(each.stacks for each in listed.values()).items(),
        )
        details = {dag_hash: _listed_values(dag_hash, each) for dag_hash, each in listed.items()}
        return {"meta": meta | self._declared(page[0]), "spec_details": details}

    def _of_the_page(
        self, names: Mapping[str, str], listed: dict[str, _Listed], page_says: Mapping[str, Any]
    ) -> dict[str, _Listed]:
        """Return listings without what a page does not say and an index of its release does."""
        indexed: dict[str, set[str]] = defaultdict(set)
        for dag_hash, stack in self._connection.execute(_OF_INDEXES, names):
            indexed[dag_hash].add(stack)
        found = {}
        for dag_hash, each in listed.items():
            said = page_says.get(dag_hash)
            if dag_hash not in indexed:
                found[dag_hash] = each
            elif said is not None:
                added = indexed[dag_hash].difference(said["stacks"])
                found[dag_hash] = _Listed(
                    each.configuration,
                    tuple(stack for stack in each.stacks if stack not in added),
                    UNKNOWN_SIZE if said["size"] == UNKNOWN_SIZE else each.size,
                    each.tarball if "tarball" in said else None,
                )
        return found

    def _declared(self, page_id: int) -> dict[str, Any]:
        """Return what a page declares and does not list: `problems` keeps it."""
        rows = self._connection.execute(_DECLARED, [page_id])
        return {key: json.loads(text) for key, text in rows if key in Meta.__struct_fields__}


def _listed_values(dag_hash: str, listed: _Listed) -> dict[str, Any]:
    """Return the fields of a detail; without those that its source does not have."""
    configuration, stacks, size, tarball = listed
    values = configuration._asdict()
    del values["package"], values["version"]
    values |= {
        "hash": dag_hash,
        "versions": [configuration.version],
        "variants": [*configuration.variants],
        "stacks": [*stacks],
        "size": size,
        "tarball": tarball,
    }
    return {key: value for key, value in values.items() if value is not None}


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
