"""Pages, read back from a database by its public views and tables, as values in normal
form.
"""

import json
import sqlite3
from typing import Any

from spack_cache_db.model import Configuration
from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.pages.checks import (
    as_set,
    computed_meta,
    declared_meta,
    normal_configuration,
)
from spack_cache_db.sources.pages.json_values import Meta, SpecDetail
from spack_cache_db.sources.pages.page import details_of, parse_page

Values = dict[str, Any]

_WORDS = ", ".join(column for column in CONFIGURATION if column != "variants")
LISTINGS = f"""
SELECT hash, size, tarball, {_WORDS} FROM build_listings WHERE release = ?
"""
SETS = """
SELECT specs.hash, configurations.variant_set_id, listings.stack_set_id
FROM listings JOIN releases ON releases.id = listings.release_id
JOIN specs ON specs.id = listings.spec_id
JOIN configurations ON configurations.id = specs.configuration_id
WHERE releases.name = ?
"""
PAGES = """
SELECT pages.id, path, releases.name, packages.name FROM pages
JOIN releases ON releases.id = pages.release_id JOIN packages ON packages.id = pages.package_id
"""


def values_of(path: str, data: bytes) -> Values:
    """Return the `meta` of a page and its `spec_details` by hash, as its text has
    them.
    """
    page = parse_page(RawFile(path, path, data))
    details = {}
    for detail in details_of(page):
        values: dict[str, object] = {
            name: getattr(detail, name) for name in SpecDetail.__struct_fields__
        }
        if not isinstance(detail.tarball, str):
            del values["tarball"]
        # What a page may write in several ways is in its normal form.
        configuration = normal_configuration(page.package, detail)
        values["compiler"] = configuration.compiler
        values["versions"] = [configuration.version]
        values["variants"] = list(configuration.variants)
        values["stacks"] = list(as_set("stack", detail.stacks))
        details[detail.hash] = values
    return {"meta": declared_meta(page.meta), "spec_details": details}


def pages_of(conn: sqlite3.Connection) -> dict[str, Values]:
    """Return all pages of a database that was built from pages alone, by their
    paths.
    """
    variants = _sets(conn, "variant_set", "variant", "text")
    stacks = _sets(conn, "stack_set", "stack", "name")
    found: dict[str, Values] = {}
    for page, path, release, package in conn.execute(PAGES).fetchall():
        # What this page says otherwise than another one, which was read first.
        problems = conn.execute(
            "SELECT code, hash, value FROM problems WHERE page_id = ? AND value IS NOT NULL",
            [page],
        ).fetchall()
        deviating = {
            dag_hash: json.loads(value)
            for code, dag_hash, value in problems
            if code == "two_configurations"
        }
        # Specs that another page of the release says otherwise, so that they are on it.
        elsewhere = {
            dag_hash
            for (dag_hash,) in conn.execute(
                "SELECT hash FROM problems JOIN pages ON pages.id = problems.page_id "
                "JOIN releases ON releases.id = pages.release_id "
                "WHERE code = 'two_configurations' AND releases.name = ? AND pages.id <> ?",
                [release, page],
            )
        }
        sets = {
            dag_hash: (variants.get(of, ()), stacks.get(in_stacks, ()))
            for dag_hash, of, in_stacks in conn.execute(SETS, [release])
        }

        # The listings of the release that are on this page.
        details: dict[str, Values] = {}
        configurations = set()
        stack_sets: list[tuple[str, ...]] = []
        for dag_hash, size, tarball, *words in conn.execute(LISTINGS, [release]):
            configuration = Configuration._make([*words, sets[dag_hash][0]])
            if dag_hash in deviating:
                said = deviating[dag_hash]
                configuration = Configuration(
                    **said | {"variants": tuple(said["variants"])}
                )
            if configuration.package != package or dag_hash in elsewhere:
                continue
            configurations.add(configuration)
            stack_sets.append(sets[dag_hash][1])
            details[dag_hash] = _detail(
                dag_hash, configuration, sets[dag_hash][1], size, tarball
            )

        # `meta` is stored only where it is not what the listings give.
        meta = computed_meta(configurations, stack_sets)
        meta |= {
            code: json.loads(value)
            for code, _, value in problems
            if code in Meta.__struct_fields__
        }
        found[path] = {"meta": meta, "spec_details": details}
    return found


def _detail(
    dag_hash: str,
    what: Configuration,
    stacks: tuple[str, ...],
    size: str,
    tarball: str | None,
) -> Values:
    words = what._asdict()
    del words["package"]
    words |= {"variants": list(words["variants"]), "versions": [words.pop("version")]}
    words |= {"hash": dag_hash, "stacks": list(stacks), "size": size}
    return words if tarball is None else words | {"tarball": tarball}


def _sets(
    conn: sqlite3.Connection, table: str, member: str, name: str
) -> dict[int, tuple[str, ...]]:
    """Return the members of every set of a kind, sorted, by the set's id."""
    sets: dict[int, list[str]] = {}
    query = (
        f"SELECT {table}_id, {member}s.{name} FROM {table}_members "
        f"JOIN {member}s ON {member}s.id = {table}_members.{member}_id"
    )
    for number, text in conn.execute(query):
        sets.setdefault(number, []).append(text)
    return {number: tuple(sorted(texts)) for number, texts in sets.items()}
