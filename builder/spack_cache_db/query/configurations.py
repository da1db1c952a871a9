"""Reads configurations and specs by their ids: words, counts, releases, stacks and installations.

Statements consist of the fixed fragments below, never of input. A spec that no release lists is not
a binary and is not counted. A binary that the mirror has lost counts in the releases that list it,
and not in the database or a stack as a whole.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from spack_cache_db.database_file import stored_json
from spack_cache_db.model import Configuration
from spack_cache_db.query.conditions import PLACES, Conditions, asked, only
from spack_cache_db.query.database import (
    IDS_AT_ONCE,
    Lookups,
    json_pieces,
    select,
    select_ids,
    select_in,
)
from spack_cache_db.schema.tables import CONFIGURATION

_CONFIGURATION = ", ".join(("id", *CONFIGURATION, "spec_count"))
_OF_IDS = "IN (SELECT value FROM json_each(:ids))"
# Grouped into a row per configuration, because there are many pairs.
IN_PLACES = """
SELECT configuration, json_group_array({place}) FROM configuration_{place}s
WHERE configuration IN (SELECT value FROM json_each(:ids)) GROUP BY configuration
"""
FIRST_RELEASES = """
SELECT id FROM releases WHERE EXISTS (
  SELECT 1 FROM configuration_releases AS listed
  WHERE listed.release = releases.id
    AND listed.configuration IN (SELECT value FROM json_each(:ids)))
ORDER BY position LIMIT :limit
"""
COUNTED_IN = """
SELECT configuration, spec_count FROM configuration_{place}s
WHERE {place} = :{place} AND configuration IN (SELECT value FROM json_each(:ids))
"""
HASH_BEGINS = "(:hash = '' OR (specs.hash >= :hash AND specs.hash < :hash || '{'))"
IN_STACK = """
(:stack IS NULL OR {}.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack))
"""
HASHES_AT_ONCE = 4_000
"""Number of hashes in a JSON text below 200 kB, the longest value that the site allows."""
IDS_OF_HASHES = "SELECT hash, id FROM specs WHERE hash IN (SELECT value FROM json_each(:hashes))"
SPEC_COLUMNS = (
    "specs.id, specs.hash, specs.stacks, specs.first_seen, specs.last_seen, specs.is_gone"
)
AVAILABLE = "specs.release_count > 0 AND NOT specs.is_gone"
"""The specs that count without a release: listed, and not lost by their mirror."""
_PLACES = {
    "file": f"specs WHERE {AVAILABLE}",
    "release": f"""specs
CROSS JOIN listings ON listings.release = :release AND listings.spec = specs.id
WHERE {IN_STACK.format("listings")}""",
    "stack": f"specs WHERE {AVAILABLE} AND {IN_STACK.format('specs')}",
}
"""The listed specs of the database, a release or a stack."""
STORED = """
SELECT specs.id, configuration, stack_sets.shown, release_count, first_seen, last_seen
FROM specs JOIN stack_sets ON stack_sets.id = specs.stacks WHERE hash = :hash
"""
LISTINGS = """
SELECT releases.name, releases.kind, stack_sets.shown, releases.is_copy, build_listings.size,
  build_listings.tarball
FROM specs
JOIN listings ON listings.spec = specs.id
JOIN releases ON releases.id = listings.release
JOIN stack_sets ON stack_sets.id = listings.stacks
JOIN build_listings ON build_listings.release = releases.name AND build_listings.hash = :hash
WHERE specs.hash = :hash ORDER BY releases.position
"""
CONTRADICTIONS = """
SELECT source, message FROM problems WHERE hash = :hash AND code LIKE 'two_%' ORDER BY id
"""
CONFIGURATIONS_BEGINNING = """
SELECT hash, configuration FROM specs
WHERE hash >= :prefix AND hash < :prefix || '{' ORDER BY hash LIMIT :limit
"""
# Only (release, spec) is a key of listings, and the specs of a configuration have consecutive ids.
SPEC_RELEASES = """
SELECT listings.spec, listings.release
FROM json_each(:runs) AS run CROSS JOIN releases CROSS JOIN listings
  ON listings.release = releases.id
  AND listings.spec BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')
"""
# The last row of a spec counts.
PROVISIONS = """
SELECT specs.id, installations.is_external, prefix, module_load, module_tree
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.id = wanted.value
CROSS JOIN installations ON installations.hash = specs.hash
CROSS JOIN releases ON releases.name = installations.release
WHERE :release IS NULL OR releases.id = :release
ORDER BY releases.position DESC, prefix DESC
"""
BY_PREFIX = """
SELECT id, hash FROM specs
WHERE hash >= :prefix AND hash < :prefix || '{' ORDER BY hash LIMIT :limit
"""
# The positions in rows (`_CONFIGURATION`) of the two columns whose words are read at first use.
_VERSION, _VARIANTS = (1 + [*CONFIGURATION].index(column) for column in ("version", "variants"))
_COUNTS = """
SELECT {place}, count(*) FROM configuration_{place}s
WHERE configuration IN (SELECT value FROM json_each(:ids)) GROUP BY {place}
"""
_RELEASE_COUNTS_IN_STACK = """
SELECT shown.release, count(DISTINCT shown.configuration)
FROM json_each(:ids) AS wanted CROSS JOIN release_specs AS shown
  ON shown.configuration = wanted.value
WHERE shown.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :within)
GROUP BY shown.release
"""
_STACK_COUNTS_IN_RELEASE = """
SELECT member.stack, count(DISTINCT shown.configuration)
FROM json_each(:ids) AS wanted
CROSS JOIN release_specs AS shown
  ON shown.configuration = wanted.value AND shown.release = :within
CROSS JOIN stack_set_members AS member ON member.stack_set = shown.stacks
GROUP BY member.stack
"""
_COUNTS_WITHIN = {"release": _RELEASE_COUNTS_IN_STACK, "stack": _STACK_COUNTS_IN_RELEASE}
_PACKAGES_IN_STACKS = """
SELECT packages.name, stacks.name, count(*)
FROM release_specs AS shown
JOIN configurations ON configurations.id = shown.configuration
JOIN packages ON packages.id = configurations.package
JOIN stack_set_members AS members ON members.stack_set = shown.stacks
JOIN stacks ON stacks.id = members.stack
WHERE shown.release = :release AND NOT stacks.is_root GROUP BY packages.id, stacks.id
"""


_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)


class Counted(NamedTuple):
    """A configuration, the position of its version in Spack's order, and its number of specs."""

    id: int
    configuration: Configuration
    position: int
    spec_count: int


class Spec(NamedTuple):
    """A spec.

    Attributes:
        stacks: the id of the set of stacks that have it in any release.
        is_gone: 1 if its mirror has lost it, or else 0.
    """

    id: int
    hash: str
    stacks: int
    first_seen: str | None
    last_seen: str | None
    is_gone: int = 0


class StoredSpec(NamedTuple):
    """A spec, listed or not, with the id of its configuration and the names of its stacks."""

    id: int
    configuration: int
    stacks: tuple[str, ...]
    release_count: int
    first_seen: str | None
    last_seen: str | None


class Listing(NamedTuple):
    """A spec's presence in one release; `is_copy` if `build --snapshot` made the release."""

    release: str
    kind: str
    stacks: tuple[str, ...]
    is_copy: bool
    size: str
    tarball: str | None

    @property
    def has_link(self) -> bool:
        """Whether the tarball's address is a web address, not a script or a file."""
        return bool(self.tarball and _WEB.match(self.tarball))


@dataclass(frozen=True, slots=True)
class Presence:
    """Releases in the database's order, sorted stacks, and the first and last day."""

    releases: tuple[str, ...]
    stacks: tuple[str, ...]
    first_seen: str | None
    last_seen: str | None


@dataclass(frozen=True, slots=True)
class FoundSpec(Presence):
    """A spec that satisfies a query, with all its releases and stacks.

    Attributes:
        hash: its hash.
        differences: how it differs from the other specs of its configuration in the answer (see
            `comparison.distinctions`); empty if not requested.
        is_gone: whether its mirror has lost it.
        is_external: whether the system provides it, and Spack did not build it.
        prefix: the folder where an installation has it; None if unknown.
        modules: the modules that load it.
        module_tree: the folder of modules to use first, if several have a module of this name.
    """

    hash: str
    differences: tuple[str, ...] = ()
    is_gone: bool = False
    is_external: bool = False
    prefix: str | None = None
    modules: tuple[str, ...] = ()
    module_tree: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the spec as an object of JSON, without the fields of its configuration."""
        return asdict(self)


def configurations_of_package(lookups: Lookups, package: int) -> list[Counted]:
    """Return the configurations of a package, given its id; `spec_count` counts all specs."""
    sql = f"SELECT {_CONFIGURATION} FROM configurations WHERE package = :package"
    return _in_words(lookups, [*select(lookups.conn, sql, package=package)])


def configurations_by_id(lookups: Lookups, ids: Sequence[int]) -> list[Counted]:
    """Return configurations in the order of `ids`; `spec_count` counts all specs."""
    sql = f"SELECT {_CONFIGURATION} FROM configurations WHERE id {_OF_IDS}"
    by_id = {row.id: row for row in _in_words(lookups, [*select_in(lookups.conn, sql, ids)])}
    return [by_id[key] for key in ids]


def _in_words(lookups: Lookups, rows: list[tuple[Any, ...]]) -> list[Counted]:
    learn(lookups, rows)
    positions = lookups.positions
    return [
        Counted(row[0], configuration_of(lookups, row[1:-1]), positions[row[_VERSION]], row[-1])
        for row in rows
    ]


def releases_of(conn: sqlite3.Connection, ids: Collection[int]) -> dict[int, list[int]]:
    """Return the ids of the releases that list each configuration, by its id."""
    return _in_places(conn, "release", ids)


def first_releases(lookups: Lookups, ids: Iterable[int], limit: int) -> tuple[str, ...]:
    """Return the names of the first releases that list one of these configurations."""
    rows = select_in(lookups.conn, FIRST_RELEASES, ids, limit=limit)
    return lookups.release_names({release for (release,) in rows})[:limit]


def _in_places(conn: sqlite3.Connection, place: str, ids: Collection[int]) -> dict[int, list[int]]:
    rows = dict(select_in(conn, IN_PLACES.format(place=place), ids))
    return {key: stored_json(rows.get(key, "[]")) for key in ids}


def count_by_place(
    conn: sqlite3.Connection, place: str, ids: Iterable[int], conditions: Conditions
) -> Counter[int]:
    """Return the number of these configurations in each release or stack, by its id.

    Releases are counted within the stack of the conditions, and stacks within the release.
    """
    release, stack = asked(conditions, "release"), asked(conditions, "stack")
    within = stack if place == "release" else release
    sql = _COUNTS.format(place=place) if within is None else _COUNTS_WITHIN[place]
    counts = Counter[int]()
    for key, count in select_in(conn, sql, ids, within=within):
        counts[key] += count
    return counts


def packages_in_stacks(conn: sqlite3.Connection, release: int) -> Iterator[tuple[str, str, int]]:
    """Yield the packages of each stack of a release: package, stack and number of binaries."""
    return select(conn, _PACKAGES_IN_STACKS, release=release)


def learn(lookups: Lookups, rows: Iterable[tuple[Any, ...]]) -> None:
    """Read the words of rows: an id and the columns of a configuration (`Lookups.learn`)."""
    rows = [*rows]
    lookups.learn({row[_VERSION] for row in rows}, {row[_VARIANTS] for row in rows})


def configuration_of(lookups: Lookups, keys: Iterable[int]) -> Configuration:
    """Return a configuration in words, which `learn` has read."""
    words = zip(CONFIGURATION, keys, strict=True)
    return Configuration._make(lookups.words[column][key] for column, key in words)


def shared_variants(configurations: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the variants that all configurations share; none for a single one."""
    if len(configurations) < 2:
        return ()
    shared = set[str].intersection(*map(set, configurations))
    return tuple(text for text in configurations[0] if text in shared)


def presence_of_configurations(lookups: Lookups, ids: Sequence[int]) -> dict[int, Presence]:
    """Return the releases, stacks and days of configurations, by their ids."""
    conn, releases = lookups.conn, releases_of(lookups.conn, ids)
    stacks = _in_places(conn, "stack", ids)
    # Many configurations are in the same few releases.
    names = lru_cache(maxsize=None)(lookups.release_names)
    seen = f"SELECT id, first_seen, last_seen FROM configurations WHERE id {_OF_IDS}"
    return {
        key: Presence(names(tuple(releases[key])), lookups.stack_names(stacks[key]), *days)
        for key, *days in select_in(conn, seen, ids)
    }


def configurations_of_listed(conn: sqlite3.Connection, specs: Iterable[int]) -> Set[int]:
    """Return the configurations of those specs that a release lists, all by id."""
    sql = f"SELECT configuration FROM specs WHERE id {_OF_IDS} AND release_count > 0"
    return select_ids(conn, sql, specs)


def specs_in_scope(
    conn: sqlite3.Connection, ids: Iterable[int], conditions: Conditions
) -> dict[int, list[Spec]]:
    """Return the specs of configurations that satisfy conditions, by configuration id.

    Conditions on words are ignored; with a release, the stack is that of the release. Specs are
    sorted by their first release in the database's order, then by hash; those that their mirror has
    lost come last. Configurations without such a spec are left out.
    """
    specs: dict[int, list[Spec]] = {}
    order = "ORDER BY specs.is_gone, specs.id"
    for configuration, *spec in _in_scope(conn, ids, conditions, SPEC_COLUMNS, order):
        specs.setdefault(configuration, []).append(Spec._make(spec))
    return specs


def ids_of_hashes(conn: sqlite3.Connection, hashes: Iterable[str]) -> dict[str, int]:
    """Return the ids of specs by their hashes; unknown hashes have no key."""
    ids: dict[str, int] = {}
    for piece in json_pieces(hashes, HASHES_AT_ONCE):
        ids.update(select(conn, IDS_OF_HASHES, hashes=piece))
    return ids


def counts_in_scope(lookups: Lookups, ids: Collection[int], conditions: Conditions) -> Counter[int]:
    """Return the number of specs that `specs_in_scope` would return, by configuration."""
    specs = asked(conditions, "specs")
    places = {condition.kind for condition in only(conditions, *PLACES)}
    if places in ({"release"}, {"stack"}):
        (place,) = places
        sql = COUNTED_IN.format(place=place)
        return Counter(dict(select_in(lookups.conn, sql, ids, **{place: asked(conditions, place)})))
    if specs is None or places != {"specs"} or _is_few(specs.holds, ids):
        return Counter(row[0] for row in _in_scope(lookups.conn, ids, conditions, "specs.id"))
    # The configuration of each spec that is available, otherwise 0.
    counts_for = lookups.column("specs", f"configuration * ({AVAILABLE})")
    wanted_ids = {*ids}
    return Counter(key for spec in specs.holds if (key := counts_for[spec]) in wanted_ids)


def _in_scope(
    conn: sqlite3.Connection,
    ids: Iterable[int],
    conditions: Conditions,
    columns: str,
    order: str = "",
) -> Iterator[tuple[Any, ...]]:
    """Return rows of specs that satisfy conditions: a configuration, then `columns`, id first."""
    places = {kind: asked(conditions, kind) for kind in ("release", "stack", "hash")}
    place = next((kind for kind in ("release", "stack") if places[kind] is not None), "file")
    places["hash"] = places["hash"] or ""
    verdict = asked(conditions, "specs")
    configurations: Collection[int] = [*ids] if verdict is None else {*ids}
    is_few = verdict is not None and _is_few(verdict.holds, configurations)
    sql = f"""
SELECT specs.configuration, {columns} FROM {_PLACES[place]}
  AND specs.{"id" if is_few else "configuration"} {_OF_IDS}
  AND {HASH_BEGINS} {order}
"""
    if verdict is None:
        return select_in(conn, sql, configurations, **places)
    rows = select_in(conn, sql, verdict.holds if is_few else configurations, **places)
    return (row for row in rows if row[0] in configurations and row[1] in verdict.holds)


def _is_few(specs: Collection[int], configurations: Collection[int]) -> bool:
    """Return whether specs are searched by their own ids, not by ids of configurations."""
    # Rows of several pieces (`json_pieces`) would be out of order.
    return len(specs) <= min(len(configurations), IDS_AT_ONCE)


def found_specs(
    lookups: Lookups,
    specs: Iterable[Spec],
    release: int | None = None,
    differences: Mapping[int, tuple[str, ...]] = {},
) -> Iterator[FoundSpec]:
    """Yield the specs with releases, stacks, days, prefixes and modules, in their order.

    Prefixes and modules are those of the installation `release`, or else of the first one.
    """
    specs = [*specs]
    releases: dict[int, list[int]] = {spec.id: [] for spec in specs}
    installed = releases if lookups.trees(release) else ()
    provisions = {
        spec: {
            "is_external": bool(is_external),
            "prefix": prefix,
            "modules": tuple((module or "").split()),
            "module_tree": module_tree,
        }
        for spec, is_external, prefix, module, module_tree in select_in(
            lookups.conn, PROVISIONS, installed, release=release
        )
    }
    for runs in json_pieces(runs_of(sorted(releases)), IDS_AT_ONCE // 4):
        for spec, listing_release in select(lookups.conn, SPEC_RELEASES, runs=runs):
            releases[spec].append(listing_release)
    # Many specs are in the same few releases.
    names = lru_cache(maxsize=None)(lookups.release_names)
    for spec in specs:
        where = names(tuple(releases[spec.id])), lookups.stack_sets()[spec.stacks]
        days = spec.first_seen, spec.last_seen
        apart = differences.get(spec.id, ())
        facts = provisions.get(spec.id, {})
        yield FoundSpec(*where, *days, spec.hash, apart, bool(spec.is_gone), **facts)


def joined(lookups: Lookups, parts: Iterable[Presence]) -> Presence:
    """Return the union of several presences."""
    parts = [*parts]
    releases = {name for part in parts for name in part.releases}
    return Presence(
        tuple(release.name for release in lookups.releases.values() if release.name in releases),
        tuple(sorted({name for part in parts for name in part.stacks})),
        min((part.first_seen for part in parts if part.first_seen), default=None),
        max((part.last_seen for part in parts if part.last_seen), default=None),
    )


def specs_beginning(conn: sqlite3.Connection, prefix: str, limit: int = -1) -> dict[int, str]:
    """Return the first specs whose hashes begin with `prefix`, listed or not: ids and hashes."""
    return dict(select(conn, BY_PREFIX, prefix=prefix, limit=limit))


def specs_of_configurations(conn: sqlite3.Connection, ids: Collection[int]) -> frozenset[int]:
    """Return the ids of the specs of some configurations."""
    return select_ids(conn, f"SELECT id FROM specs WHERE configuration {_OF_IDS}", ids)


def runs_of(ids: Iterable[int]) -> list[list[int]]:
    """Return the first and last id of each run of consecutive ids; the ids are sorted."""
    runs: list[list[int]] = []
    for number in ids:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def stored_spec(conn: sqlite3.Connection, dag_hash: str) -> StoredSpec | None:
    """Return the spec with this full hash, listed or not; None if there is none."""
    for key, configuration, stacks, *facts in select(conn, STORED, hash=dag_hash):
        return StoredSpec(key, configuration, tuple(stored_json(stacks)), *facts)
    return None


def listings_of(conn: sqlite3.Connection, dag_hash: str) -> tuple[Listing, ...]:
    """Return the presence of a spec in each release, in the database's order."""
    return tuple(
        Listing(release, kind, tuple(stored_json(stacks)), bool(is_copy), *binary)
        for release, kind, stacks, is_copy, *binary in select(conn, LISTINGS, hash=dag_hash)
    )


def contradictions_of(conn: sqlite3.Connection, dag_hash: str) -> tuple[tuple[str, str], ...]:
    """Return the sources that contradict what is stored about a spec, with their messages."""
    return tuple(
        (path, message.replace(f" {dag_hash}", "", 1))
        for path, message in select(conn, CONTRADICTIONS, hash=dag_hash)
    )


def configurations_beginning(
    lookups: Lookups, prefix: str, limit: int
) -> list[tuple[str, Configuration]]:
    """Return the first specs whose hashes begin with `prefix`, listed or not."""
    rows = [*select(lookups.conn, CONFIGURATIONS_BEGINNING, prefix=prefix, limit=limit)]
    counted = configurations_by_id(lookups, [key for _, key in rows])
    return [(row[0], item.configuration) for row, item in zip(rows, counted, strict=True)]
