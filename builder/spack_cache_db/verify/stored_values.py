"""Pages and package data in one normal form, read from their sources or from a published file.

Lists whose order says nothing are sorted. Package data does not pass through the reader that filled
the file: that is what is on trial.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import zstandard
from msgspec import UNSET

from spack_cache_db.build.known_packages import PACKAGES_PER_REST
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import LISTED, NAMED, PUBLISHED
from spack_cache_db.sources.packages import TYPES, read_facts
from spack_cache_db.sources.pages.consistency import computed_meta, declared_meta
from spack_cache_db.sources.pages.page_format import Meta, Page, SpecDetail
from spack_cache_db.sources.pages.page_parser import read_details
from spack_cache_db.sources.pages.page_reader import (
    UNKNOWN_SIZE,
    as_set,
    detail_fault,
    normal_configuration,
)
from spack_cache_db.sources.strictness import read_strictly

Values = dict[str, Any]

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


def page_values(page: Page) -> Values:
    """Return the `meta` of a page, and its `spec_details` by hash.

    Raises:
        InputError: a detail has no normal form.
    """
    return {
        "meta": declared_meta(page.meta),
        "spec_details": {each.hash: _detail_values(page, each) for each in read_details(page)},
    }


def _detail_values(page: Page, detail: SpecDetail) -> Values:
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
    ) -> Values | None:
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

    def _declared(self, page_id: int) -> Values:
        """Return what a page declares and does not list: `problems` keeps it."""
        rows = self._connection.execute(_DECLARED, [page_id])
        return {key: json.loads(text) for key, text in rows if key in Meta.__struct_fields__}


def _listed_values(dag_hash: str, listed: _Listed) -> Values:
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


_PACKAGES = """
SELECT id, name, description, homepage, build_system, latest_version, recipe FROM known_packages
"""
_VERSIONS = """
SELECT version, deprecated FROM known_versions WHERE package = :name ORDER BY position
"""
_VARIANTS = """
SELECT name, default_value, description FROM known_variants WHERE package = :name
"""
_EDGES = "SELECT dependency, package, types FROM known_dependencies"
_REST = "SELECT data FROM package_rests WHERE id = :id"

_LISTS = ("versions", "versions_deprecated", "variants", "dependencies", "dependent_to")


def said_packages(file: RawFile) -> Iterator[tuple[str, str, Values]]:
    """Yield each package of a file: its name, the form in which it is told of, what is said.

    Raises:
        InputError: the file is refused.
    """
    read_facts(file)
    values = read_strictly(file.data)
    if isinstance(values, dict):
        yield values["name"], PUBLISHED, normal(values)
        return
    for each in values:
        if isinstance(each, str):
            yield each, NAMED, {"name": each}
        else:
            yield each["name"], LISTED, normal(each)


def normal(values: Mapping[str, Any]) -> Values:
    """Return what is said of a package with all sets sorted."""
    found = dict(values)
    for key in _LISTS:
        some = found.get(key)
        if isinstance(some, list):
            found[key] = sorted(some, key=_sorted_json)
        elif isinstance(some, dict):
            found[key] = {
                name: sorted(each, key=_sorted_json) if isinstance(each, list) else each
                for name, each in some.items()
            }
    return found


def _sorted_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


class StoredPackages:
    """The packages of which a built file has package data."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows = {row[1]: row for row in connection.execute(_PACKAGES)}
        self._needed: dict[str, dict[str, str | None]] = defaultdict(dict)
        self._dependents: dict[str, list[str]] = defaultdict(list)
        for dependency, name, types in connection.execute(_EDGES):
            self._needed[name][dependency] = types
            self._dependents[dependency].append(name)
        self._rests: dict[int, Any] = {}

    def values(self, name: str, form: str) -> Values | None:
        """Return what the file says of a package in a form; None if it has none of that form."""
        row = self._rows.get(name)
        if row is None:
            return None
        place = row[0] - 1
        rest = self._rest(place // PACKAGES_PER_REST + 1)[place % PACKAGES_PER_REST].get(form)
        if rest is None:
            return None
        if form == NAMED:
            return {"name": name}
        _, _, description, homepage, build_system, latest_version, recipe = row
        found: Values = {"name": name, "homepage": homepage, "latest_version": latest_version}
        if form == PUBLISHED:
            found |= {"description": description, "build_system": build_system}
            found |= self._published(name, rest)
        else:
            found |= {"file": recipe}
            found |= self._listed(name)
        found = {key: value for key, value in found.items() if value is not None}
        for absent in rest.get("absent", ()):
            found.pop(absent, None)
        return normal(found | rest.get("keys", {}))

    def _published(self, name: str, rest: Values) -> Values:
        versions = self._connection.execute(_VERSIONS, {"name": name}).fetchall()
        more = rest.get("versions") or [{}] * len(versions)
        lists: dict[int, list[Values]] = {0: [], 1: []}
        if not {"versions", "versions_deprecated"} & rest.get("keys", {}).keys():
            for (version, deprecated), other in zip(versions, more, strict=True):
                lists[deprecated or 0].append({"name": version, **other})
        variants = self._connection.execute(_VARIANTS, {"name": name})
        named = {"dependencies": self._needed[name], "dependent_to": self._dependents[name]}
        more, fewer = rest.get("more", {}), rest.get("fewer", {})
        said = rest.get("descriptions", {})
        return {
            "versions": lists[0],
            "versions_deprecated": lists[1],
            "variants": [
                {"name": each, "default": _default(default), "description": text}
                for each, default, text in variants
            ],
            **{
                key: [
                    {"name": each, "description": self._description(each, said)}
                    for each in {*names, *more.get(key, ())}.difference(fewer.get(key, ()))
                ]
                for key, names in named.items()
            },
        }

    def _description(self, name: str, said: Mapping[str, str]) -> str | None:
        for described in (said, self._rest(0)):
            if name in described:
                return described[name]
        text = self._rows[name][2] if name in self._rows else None
        return text.rstrip() if text else text

    def _listed(self, name: str) -> Values:
        dependencies: dict[str, list[str]] = {each: [] for each in TYPES}
        for dependency, types in self._needed[name].items():
            for each in types.split(",") if types else ():
                dependencies[each].append(dependency)
        versions = self._connection.execute(_VERSIONS, {"name": name})
        return {"versions": [version for version, _ in versions], "dependencies": dependencies}

    def _rest(self, number: int) -> Any:
        if number not in self._rests:
            (data,) = self._connection.execute(_REST, {"id": number}).fetchone()
            self._rests[number] = json.loads(zstandard.ZstdDecompressor().decompress(data))
        return self._rests[number]


def _default(text: str) -> str | bool:
    return {"True": True, "False": False}.get(text, text)
