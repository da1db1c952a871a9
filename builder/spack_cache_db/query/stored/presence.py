"""Where configurations and specs are: releases, stacks and days."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from spack_cache_db.database_damage import stored_json
from spack_cache_db.query.conditions.conditions import Conditions, condition_value
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import IDS_AT_ONCE, json_pieces, select, select_in
from spack_cache_db.query.stored.binary import COUNTED_BY, Spec
from spack_cache_db.query.stored.configurations import OF_IDS

# Grouped into a row per configuration, because there are many pairs.
IN_PLACES = """
SELECT configuration_id, json_group_array({place}_id) FROM {table}
WHERE spec_count > 0 AND configuration_id IN (SELECT value FROM json_each(:ids))
GROUP BY configuration_id
"""
FIRST_RELEASES = """
SELECT id FROM releases WHERE EXISTS (
  SELECT 1 FROM configuration_history AS listed
  WHERE listed.release_id = releases.id AND listed.spec_count > 0
    AND listed.configuration_id IN (SELECT value FROM json_each(:ids)))
ORDER BY position LIMIT :limit
"""
DAYS = f"SELECT id, first_seen, last_seen FROM configurations WHERE id {OF_IDS}"
# Only (release, spec) is a key of listings, and the specs of a configuration have
# consecutive ids.
SPEC_RELEASES = """
SELECT listings.spec_id, listings.release_id
FROM json_each(:runs) AS run CROSS JOIN releases CROSS JOIN listings
  ON listings.release_id = releases.id
  AND listings.spec_id BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')
"""
PROVISIONS = """
SELECT specs.id, installations.is_external, prefix, module_load, module_tree
FROM json_each(:ids) AS wanted CROSS JOIN specs ON specs.id = wanted.value
CROSS JOIN installations ON installations.hash = specs.hash
CROSS JOIN releases ON releases.name = installations.release
WHERE :release IS NULL OR releases.id = :release
ORDER BY releases.position DESC, prefix DESC
"""
_COUNTS = """
SELECT {place}_id, count(*) FROM {table}
WHERE spec_count > 0 AND configuration_id IN (SELECT value FROM json_each(:ids))
GROUP BY {place}_id
"""
_RELEASE_COUNTS_IN_STACK = """
SELECT listings.release_id, count(DISTINCT specs.configuration_id)
FROM json_each(:ids) AS wanted CROSS JOIN listings
JOIN specs ON specs.id = listings.spec_id AND specs.configuration_id = wanted.value
WHERE listings.stack_set_id IN (
  SELECT stack_set_id FROM stack_set_members WHERE stack_id = :within)
GROUP BY listings.release_id
"""
_STACK_COUNTS_IN_RELEASE = """
SELECT member.stack_id, count(DISTINCT specs.configuration_id)
FROM json_each(:ids) AS wanted
CROSS JOIN listings ON listings.release_id = :within
JOIN specs ON specs.id = listings.spec_id AND specs.configuration_id = wanted.value
CROSS JOIN stack_set_members AS member ON member.stack_set_id = listings.stack_set_id
GROUP BY member.stack_id
"""
_COUNTS_WITHIN = {
    "release": _RELEASE_COUNTS_IN_STACK,
    "stack": _STACK_COUNTS_IN_RELEASE,
}
_PACKAGES_IN_STACKS = """
SELECT packages.name, stacks.name, count(*)
FROM listings
JOIN specs ON specs.id = listings.spec_id
JOIN configurations ON configurations.id = specs.configuration_id
JOIN packages ON packages.id = configurations.package_id
JOIN stack_set_members AS members ON members.stack_set_id = listings.stack_set_id
JOIN stacks ON stacks.id = members.stack_id
WHERE listings.release_id = :release AND NOT stacks.is_root GROUP BY packages.id, stacks.id
"""
_PACKAGES_IN_RELEASE = """
SELECT packages.name, release_packages.spec_count
FROM release_packages JOIN packages ON packages.id = release_packages.package_id
WHERE release_packages.release_id = :release ORDER BY packages.name
"""


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
        differences: how it differs from the other specs of its configuration in the
            answer (see `differences.distinctions`); empty if not requested.
        is_gone: whether its mirror has lost it.
        is_external: whether the system provides it, and Spack did not build it.
        prefix: the folder where an installation has it; None if unknown.
        modules: the modules that load it.
        module_tree: the folder of modules to use first, if several have a module of
            this name.
    """

    hash: str
    differences: tuple[str, ...] = ()
    is_gone: bool = False
    is_external: bool = False
    prefix: str | None = None
    modules: tuple[str, ...] = ()
    module_tree: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the spec as an object of JSON, without the fields of its
        configuration.
        """
        return asdict(self)


def releases_of(conn: sqlite3.Connection, ids: Collection[int]) -> dict[int, list[int]]:
    """Return the ids of the releases that list each configuration, by its id."""
    return _in_places(conn, "release", ids)


def first_releases(lookups: Lookups, ids: Iterable[int], limit: int) -> tuple[str, ...]:
    """Return the names of the first releases that list one of these configurations."""
    rows = select_in(lookups.conn, FIRST_RELEASES, ids, limit=limit)
    return lookups.release_names({release for (release,) in rows})[:limit]


def _in_places(
    conn: sqlite3.Connection, place: str, ids: Collection[int]
) -> dict[int, list[int]]:
    """Return the releases or the stacks (`place`) of each configuration."""
    sql = IN_PLACES.format(place=place, table=COUNTED_BY[place])
    rows = dict(select_in(conn, sql, ids))
    return {key: stored_json(rows.get(key, "[]")) for key in ids}


def count_by_place(
    conn: sqlite3.Connection, place: str, ids: Iterable[int], conditions: Conditions
) -> Counter[int]:
    """Return the number of these configurations in each release or stack, by its id.

    Releases are counted within the stack of the conditions, and stacks within the
    release.
    """
    release = condition_value(conditions, "release")
    stack = condition_value(conditions, "stack")
    within = stack if place == "release" else release
    sql = _COUNTS_WITHIN[place]
    if within is None:
        sql = _COUNTS.format(place=place, table=COUNTED_BY[place])
    counts = Counter[int]()
    for key, count in select_in(conn, sql, ids, within=within):
        counts[key] += count
    return counts


def packages_in_release(
    conn: sqlite3.Connection, release: int
) -> Iterator[tuple[str, int]]:
    """Yield the packages of a release by name, with their numbers of binaries."""
    return select(conn, _PACKAGES_IN_RELEASE, release=release)


def packages_in_stacks(
    conn: sqlite3.Connection, release: int
) -> Iterator[tuple[str, str, int]]:
    """Yield the packages of each stack of a release: package, stack and number of
    binaries.
    """
    return select(conn, _PACKAGES_IN_STACKS, release=release)


def presence_of_configurations(
    lookups: Lookups, ids: Sequence[int]
) -> dict[int, Presence]:
    """Return the releases, stacks and days of configurations, by their ids."""
    releases = _in_places(lookups.conn, "release", ids)
    stacks = _in_places(lookups.conn, "stack", ids)
    # Many configurations are in the same few releases.
    release_names = lru_cache(maxsize=None)(lookups.release_names)
    presence = {}
    for key, first_seen, last_seen in select_in(lookups.conn, DAYS, ids):
        presence[key] = Presence(
            releases=release_names(tuple(releases[key])),
            stacks=lookups.stack_names(stacks[key]),
            first_seen=first_seen,
            last_seen=last_seen,
        )
    return presence


def found_specs(
    lookups: Lookups,
    specs: Iterable[Spec],
    release: int | None = None,
    differences: Mapping[int, tuple[str, ...]] = {},
) -> Iterator[FoundSpec]:
    """Yield the specs with releases, stacks, days, prefixes and modules, in their
    order.

    Prefixes and modules are those of the installation `release`, or else of the first
    one.
    """
    specs = list(specs)

    # Read the releases of each spec, and where it is installed.
    releases = _releases_of_specs(lookups, [spec.id for spec in specs])
    provisions: dict[int, _Provision] = {}
    if lookups.trees(release):
        provisions = _read_provisions(lookups, releases, release)

    # Many specs are in the same few releases.
    release_names = lru_cache(maxsize=None)(lookups.release_names)
    names_of_stacks = lookups.stack_sets()
    for spec in specs:
        provision = provisions.get(spec.id, _NOT_PROVIDED)
        yield FoundSpec(
            releases=release_names(tuple(releases[spec.id])),
            stacks=names_of_stacks[spec.stacks],
            first_seen=spec.first_seen,
            last_seen=spec.last_seen,
            hash=spec.hash,
            differences=differences.get(spec.id, ()),
            is_gone=bool(spec.is_gone),
            is_external=provision.is_external,
            prefix=provision.prefix,
            modules=provision.modules,
            module_tree=provision.module_tree,
        )


class _Provision(NamedTuple):
    """Where an installation has a spec (see `FoundSpec`)."""

    is_external: bool
    prefix: str | None
    modules: tuple[str, ...]
    module_tree: str | None


_NOT_PROVIDED = _Provision(False, None, (), None)


def _read_provisions(
    lookups: Lookups, specs: Iterable[int], release: int | None
) -> dict[int, _Provision]:
    provisions = {}
    # The last row of a spec counts.
    for row in select_in(lookups.conn, PROVISIONS, specs, release=release):
        spec, is_external, prefix, modules, module_tree = row
        provisions[spec] = _Provision(
            is_external=bool(is_external),
            prefix=prefix,
            modules=tuple((modules or "").split()),
            module_tree=module_tree,
        )
    return provisions


def presence_of_specs(
    lookups: Lookups, groups: Mapping[int, Sequence[Spec]]
) -> dict[int, Presence]:
    """Return the releases, stacks and days of groups of specs, by the key of the
    group.
    """
    ids = [spec.id for group in groups.values() for spec in group]
    releases_of_spec = _releases_of_specs(lookups, ids)
    names_of_stacks = lookups.stack_sets()
    # Many groups are in the same few releases.
    release_names = lru_cache(maxsize=None)(lookups.release_names)
    presence = {}
    for key, group in groups.items():
        releases: set[int] = set()
        stacks: set[str] = set()
        first_days = []
        last_days = []
        for spec in group:
            releases.update(releases_of_spec[spec.id])
            stacks.update(names_of_stacks[spec.stacks])
            # A spec that no snapshot has has no days.
            if spec.first_seen:
                first_days.append(spec.first_seen)
            if spec.last_seen:
                last_days.append(spec.last_seen)
        presence[key] = Presence(
            releases=release_names(frozenset(releases)),
            stacks=tuple(sorted(stacks)),
            first_seen=min(first_days, default=None),
            last_seen=max(last_days, default=None),
        )
    return presence


def _releases_of_specs(lookups: Lookups, specs: Iterable[int]) -> dict[int, list[int]]:
    """Return the ids of the releases that list each spec."""
    releases: dict[int, list[int]] = {spec: [] for spec in specs}
    for runs in json_pieces(runs_of(sorted(releases)), IDS_AT_ONCE // 4):
        for spec, release in select(lookups.conn, SPEC_RELEASES, runs=runs):
            releases[spec].append(release)
    return releases


def runs_of(ids: Iterable[int]) -> list[list[int]]:
    """Return the first and last id of each run of consecutive ids; the ids are
    sorted.

    >>> runs_of([3, 4, 5, 9])
    [[3, 5], [9, 9]]
    """
    runs: list[list[int]] = []
    for number in ids:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs
