"""Finds the configurations that satisfy conditions, their order, releases, stacks and specs.

Conditions are evaluated on the small tables of words; large tables are searched by ids only.
Statements consist of the fixed fragments below, never of input. A spec that no release lists is not
a binary and is not counted.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

from spack_cache_db.query.conditions import (
    ANYWHERE,
    COLUMNS,
    PLACES,
    Condition,
    Conditions,
    OneOf,
    Verdict,
    Word,
    asked,
    is_of_specs,
    only,
    readable_variants,
    without,
)
from spack_cache_db.query.database import IDS_AT_ONCE, Lookups, json_pieces, select, select_in
from spack_cache_db.records import Configuration
from spack_cache_db.schema import CONFIGURATION
from spack_cache_db.spack.constraints import VariantConstraint, variant_matches
from spack_cache_db.spack.targets import ancestors

_CONFIGURATION = ", ".join(("id", *CONFIGURATION, "spec_count"))
OF_PACKAGE = f"SELECT {_CONFIGURATION} FROM configurations WHERE package = :package"
BY_ID = f"""
SELECT {_CONFIGURATION} FROM configurations WHERE id IN (SELECT value FROM json_each(:ids))
"""
# Grouped into a row per configuration, because there are many pairs.
IN_PLACES = """
SELECT configuration, json_group_array({place}) FROM configuration_{place}s
WHERE configuration IN (SELECT value FROM json_each(:ids)) GROUP BY configuration
"""
COUNTED_IN = """
SELECT configuration, spec_count FROM configuration_{place}s
WHERE {place} = :{place} AND configuration IN (SELECT value FROM json_each(:ids))
"""
SEEN = """
SELECT id, first_seen, last_seen FROM configurations
WHERE id IN (SELECT value FROM json_each(:ids))
"""
OF_LISTED = """
SELECT configuration FROM json_each(:ids) AS wanted
CROSS JOIN specs ON specs.id = wanted.value AND specs.release_count > 0
"""
HASH_BEGINS = "(:hash = '' OR (specs.hash >= :hash AND specs.hash < :hash || '{'))"
IN_STACK = """
(:stack IS NULL OR {}.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack))
"""
HASHES_AT_ONCE = 4_000
"""Number of hashes in a JSON text below 200 kB, the longest value that the site allows."""
_SPEC = "specs.id, specs.hash, specs.stacks, specs.first_seen, specs.last_seen"
_PLACES = {
    "file": "specs WHERE specs.release_count > 0",
    "release": f"""specs
CROSS JOIN listings ON listings.release = :release AND listings.spec = specs.id
WHERE {IN_STACK.format("listings")}""",
    "stack": f"specs WHERE {IN_STACK.format('specs')}",
}
"""The listed specs of the database, a release or a stack."""
OF_CONFIGURATIONS = """
SELECT id FROM specs WHERE configuration IN (SELECT value FROM json_each(:ids))
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
SELECT specs.id, installations.is_external, prefix, module, module_tree
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
MOST_HASHES = 5
"""Number of hashes in an error about an ambiguous prefix."""
# The positions in rows (`_CONFIGURATION`) of the two columns whose words are read at first use.
_VERSION, _VARIANTS = (1 + [*CONFIGURATION].index(column) for column in ("version", "variants"))
_PROVIDERS = """
SELECT virtual, known_packages.name FROM providers
JOIN known_packages ON known_packages.id = providers.package
ORDER BY virtual, known_packages.name
"""
ALL_VERSIONS = "SELECT id, name FROM versions"
VERSIONS_OF_PACKAGE = f"{ALL_VERSIONS} WHERE package = :package"
VARIANTS = "SELECT id, text FROM variants WHERE name = :name OR text = :text"
SETS_WITH = """
SELECT DISTINCT variant_set FROM variant_set_members
WHERE variant IN (SELECT value FROM json_each(:ids))
"""
_INSTALLED_FIRST = """
id NOT IN (
  SELECT specs.configuration FROM installations JOIN specs ON specs.hash = installations.hash
  WHERE installations.explicit),
id NOT IN (
  SELECT configuration FROM configuration_releases
  WHERE release IN (SELECT value FROM json_each(:trees))),
"""
"""Explicitly installed configurations come first, then other installed ones."""
# The ids of packages are in the order of their names, those of versions in Spack's preference.
_STACK_COUNTS = """
SELECT stack, count(*) FROM configuration_stacks
WHERE configuration IN (SELECT value FROM json_each(:ids)) AND spec_count > 0 GROUP BY stack
"""
_RELEASE_COUNTS_IN_STACK = """
SELECT shown.release, count(DISTINCT shown.configuration)
FROM json_each(:ids) AS wanted CROSS JOIN release_specs AS shown
  ON shown.configuration = wanted.value
WHERE shown.stacks IN (SELECT stack_set FROM stack_set_members WHERE stack = :stack)
GROUP BY shown.release
"""
_STACK_COUNTS_IN_RELEASE = """
SELECT member.stack, count(DISTINCT shown.configuration)
FROM json_each(:ids) AS wanted
CROSS JOIN release_specs AS shown
  ON shown.configuration = wanted.value AND shown.release = :release
CROSS JOIN stack_set_members AS member ON member.stack_set = shown.stacks
GROUP BY member.stack
"""
_PACKAGES_IN_STACKS = """
SELECT configurations.package, members.stack, count(*)
FROM release_specs AS shown
JOIN configurations ON configurations.id = shown.configuration
JOIN stack_set_members AS members ON members.stack_set = shown.stacks
WHERE shown.release = :release GROUP BY 1, 2
"""
_ORDER = """
platform <> (SELECT id FROM platforms WHERE name = 'linux'),
platform,
(SELECT iif(family = 'x86_64', '', family) FROM targets WHERE targets.id = configurations.target),
package,
-version,
{nearest}
(SELECT min(release) FROM configuration_releases WHERE configuration = configurations.id),
id
"""
"""By system and family of CPUs, the most common first; within a package by Spack's preferred
version, then the nearest target, then current releases."""
_NEAREST = "(SELECT key FROM json_each(:nearest) WHERE value = target),"
_FILTERS = {
    "release": """id IN (
  SELECT configuration FROM configuration_releases WHERE release = :release)""",
    "stack": """id IN (
  SELECT configuration FROM configuration_stacks WHERE stack = :stack)""",
    "words": "id IN (SELECT rowid FROM configurations_fts WHERE configurations_fts MATCH :words)",
    "hash": """id IN (
  SELECT configuration FROM specs WHERE hash >= :hash AND hash < :hash || '{')""",
}
# Configurations without specs are known as dependencies only.
_OWN = "spec_count > 0"
_COLUMNS = ", ".join(CONFIGURATION)
_ROWS = f"SELECT id, {_COLUMNS}, spec_count, 1 FROM configurations"
ROWS_OF_PACKAGE = f"{_ROWS} WHERE package = :package ORDER BY {{}}"
EVERY_ROW = f"{_ROWS} ORDER BY {{}}"
# SQLite takes the other columns from the row with the least id (SQLite docs, "SELECT", 2.5).
GROUPS = f"""
SELECT min(id), {_COLUMNS}, sum(spec_count), count(*)
FROM configurations GROUP BY {{}} ORDER BY 1
"""
_PLACE = {column: position for position, column in enumerate(CONFIGURATION)}
T = TypeVar("T")


class Counted(NamedTuple):
    """A configuration and the number of its specs that satisfy the conditions.

    `position` is the position of its version in Spack's order within the package.
    """

    id: int
    configuration: Configuration
    position: int
    spec_count: int


class Spec(NamedTuple):
    """A spec; `stacks` is the id of the set of stacks that have it in any release."""

    id: int
    hash: str
    stacks: int
    first_seen: str | None
    last_seen: str | None


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
        is_external: whether the system provides it, and Spack did not build it.
        prefix: the folder where an installation has it; None if unknown.
        modules: the modules that load it.
        module_tree: the folder of modules to use first, if several have a module of this name.
    """

    hash: str
    differences: tuple[str, ...] = ()
    is_external: bool = False
    prefix: str | None = None
    modules: tuple[str, ...] = ()
    module_tree: str | None = None


def configurations_of_package(lookups: Lookups, package: int) -> list[Counted]:
    """Return the configurations of a package, given its id; `spec_count` counts all specs."""
    return _in_words(lookups, [*select(lookups.conn, OF_PACKAGE, package=package)])


def releases_of(conn: sqlite3.Connection, ids: Collection[int]) -> dict[int, list[int]]:
    """Return the ids of the releases that list each configuration, by its id."""
    release_ids = _arrays(select_in(conn, IN_PLACES.format(place="release"), ids))
    return {key: release_ids.get(key, []) for key in ids}


def count_by_stack(
    conn: sqlite3.Connection, ids: Iterable[int], release: int | None = None
) -> Iterator[tuple[int, int]]:
    """Yield stacks with their number of these configurations, in one or all releases."""
    if release is None:
        return select_in(conn, _STACK_COUNTS, ids)
    return select_in(conn, _STACK_COUNTS_IN_RELEASE, ids, release=release)


def count_by_release(
    conn: sqlite3.Connection, ids: Iterable[int], stack: int
) -> Iterator[tuple[int, int]]:
    """Yield releases with the number of these configurations that they have in a stack."""
    return select_in(conn, _RELEASE_COUNTS_IN_STACK, ids, stack=stack)


def packages_in_stacks(conn: sqlite3.Connection, release: int) -> Iterator[tuple[int, int, int]]:
    """Yield the packages of each stack of a release: package, stack and number of binaries."""
    return select(conn, _PACKAGES_IN_STACKS, release=release)


def configurations_by_id(lookups: Lookups, ids: Sequence[int]) -> list[Counted]:
    """Return configurations in the order of `ids`; `spec_count` counts all specs."""
    by_id = {row.id: row for row in _in_words(lookups, [*select_in(lookups.conn, BY_ID, ids)])}
    return [by_id[key] for key in ids]


def learn(lookups: Lookups, rows: Iterable[tuple[Any, ...]]) -> None:
    """Read the words of rows: an id and the columns of a configuration (`Lookups.learn`)."""
    rows = [*rows]
    lookups.learn({row[_VERSION] for row in rows}, {row[_VARIANTS] for row in rows})


def configuration_of(lookups: Lookups, keys: Iterable[int]) -> Configuration:
    """Return a configuration in words, which `learn` has read."""
    words = zip(CONFIGURATION, keys, strict=True)
    return Configuration._make(lookups.words[column][key] for column, key in words)


def _in_words(lookups: Lookups, rows: list[tuple[Any, ...]]) -> list[Counted]:
    learn(lookups, rows)
    return [
        Counted(
            row[0], configuration_of(lookups, row[1:-1]), lookups.positions[row[_VERSION]], row[-1]
        )
        for row in rows
    ]


def presence_of_configurations(lookups: Lookups, ids: Sequence[int]) -> dict[int, Presence]:
    """Return the releases, stacks and days of configurations, by their ids."""
    releases = releases_of(lookups.conn, ids)
    stacks = _arrays(select_in(lookups.conn, IN_PLACES.format(place="stack"), ids))
    # Many configurations are in the same few releases.
    names = lru_cache(maxsize=None)(lookups.release_names)
    return {
        key: Presence(names(tuple(releases[key])), lookups.stack_names(stacks.get(key, ())), *days)
        for key, *days in select_in(lookups.conn, SEEN, ids)
    }


def configurations_of_listed(conn: sqlite3.Connection, specs: Iterable[int]) -> set[int]:
    """Return the configurations of those specs that a release lists, all by id."""
    return {row[0] for row in select_in(conn, OF_LISTED, specs)}


def specs_in_scope(
    conn: sqlite3.Connection, ids: Iterable[int], conditions: Conditions
) -> dict[int, list[Spec]]:
    """Return the specs of configurations that satisfy conditions, by configuration id.

    Args:
        conn: a connection to the database.
        ids: the configurations.
        conditions: conditions of the kinds in `PLACES`; with a release, the stack is that of the
            release. Conditions on words are ignored.

    Returns:
        Specs sorted by their first release in the database's order, then by hash. Configurations
        without such a spec are left out.
    """
    specs: dict[int, list[Spec]] = {}
    for configuration, *spec in _in_scope(conn, ids, conditions, _SPEC, "ORDER BY specs.id"):
        specs.setdefault(configuration, []).append(Spec._make(spec))
    return specs


def counts_in_scope(lookups: Lookups, ids: Collection[int], conditions: Conditions) -> Counter[int]:
    """Return the number of specs that `specs_in_scope` would return, by configuration."""
    specs = asked(conditions, "specs")
    places = {condition.kind for condition in conditions if condition.kind in PLACES}
    if places in ({"release"}, {"stack"}):
        (place,) = places
        sql = COUNTED_IN.format(place=place)
        return Counter(dict(select_in(lookups.conn, sql, ids, **{place: asked(conditions, place)})))
    if specs is None or places != {"specs"} or _is_few(specs.holds, ids):
        return Counter(row[0] for row in _in_scope(lookups.conn, ids, conditions, "specs.id"))
    # The configuration of each spec that a release lists, otherwise 0.
    counts_for, wanted_ids = lookups.column("specs", "configuration * (release_count > 0)"), {*ids}
    return Counter(key for spec in specs.holds if (key := counts_for[spec]) in wanted_ids)


def _in_scope(
    conn: sqlite3.Connection,
    ids: Iterable[int],
    conditions: Conditions,
    columns: str,
    order: str = "",
) -> Iterator[tuple[Any, ...]]:
    """Return rows of specs that satisfy conditions: a configuration, then `columns`.

    The first of `columns` is the spec's id.
    """
    places = {kind: asked(conditions, kind) for kind in ("release", "stack", "hash")}
    place = next((kind for kind in ("release", "stack") if places[kind] is not None), "file")
    places["hash"] = places["hash"] or ""
    verdict = asked(conditions, "specs")
    configurations: Collection[int] = [*ids] if verdict is None else {*ids}
    is_few = verdict is not None and _is_few(verdict.holds, configurations)
    sql = f"""
SELECT specs.configuration, {columns} FROM {_PLACES[place]}
  AND specs.{"id" if is_few else "configuration"} IN (SELECT value FROM json_each(:ids))
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
    lookups: Lookups, specs: Iterable[Spec], release: int | None = None
) -> Iterator[FoundSpec]:
    """Yield the specs with releases, stacks, days, prefixes and modules, in their order.

    Args:
        release: the installation whose prefixes and modules are read; None for the first.
    """
    specs = [*specs]
    installed = [spec.id for spec in specs] if lookups.trees(release) else ()
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
    releases: dict[int, list[int]] = {spec.id: [] for spec in specs}
    # Many specs are in the same few releases.
    names = lru_cache(maxsize=None)(lookups.release_names)
    for runs in json_pieces(runs_of(sorted(releases)), IDS_AT_ONCE // 4):
        for spec, release in select(lookups.conn, SPEC_RELEASES, runs=runs):
            releases[spec].append(release)
    for spec in specs:
        where = names(tuple(releases[spec.id])), lookups.stack_sets()[spec.stacks]
        days = spec.first_seen, spec.last_seen
        yield FoundSpec(*where, *days, spec.hash, **provisions.get(spec.id, {}))


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


def specs_of_configurations(conn: sqlite3.Connection, configurations: Collection[int]) -> set[int]:
    """Return the ids of the specs of some configurations."""
    return {row[0] for row in select_in(conn, OF_CONFIGURATIONS, configurations)}


def runs_of(ids: Iterable[int]) -> list[list[int]]:
    """Return the first and last id of each run of consecutive ids; the ids are sorted."""
    runs: list[list[int]] = []
    for number in ids:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def _arrays(rows: Iterable[tuple[int, str]]) -> dict[int, list[int]]:
    return {key: json.loads(text) for key, text in rows}


def providers_of(conn: sqlite3.Connection, virtual: str) -> tuple[str, ...]:
    """Return the packages that provide a virtual package, from package data, sorted."""
    return read_providers(conn).get(virtual, ())


def read_providers(conn: sqlite3.Connection) -> Mapping[str, tuple[str, ...]]:
    """Return the providers of each virtual package, from package data, sorted."""
    providers: dict[str, tuple[str, ...]] = {}
    for virtual, name in select(conn, _PROVIDERS):
        providers[virtual] = (*providers.get(virtual, ()), name)
    return providers


def satisfying(lookups: Lookups, condition: Condition, package: int | None = None) -> Set[int]:
    """Return the ids of the words in a condition's column that satisfy it."""
    column = COLUMNS[condition.kind]
    if column == "package":
        asks = condition.asked
        names = asks.words if isinstance(asks, OneOf) else (condition.text,)
        return {lookups.packages[name] for name in names if name in lookups.packages}
    if column == "variants":
        name = getattr(condition.asked, "name", None)
        rows = select(lookups.conn, VARIANTS, name=name, text=condition.text)
        return _sets_with(lookups.conn, (key for key, text in rows if condition.holds((text,))))
    if column == "version":
        sql = ALL_VERSIONS if package is None else VERSIONS_OF_PACKAGE
        versions = select(lookups.conn, sql, package=package)
        # Many packages share a version such as 1.0.0.
        holds = lru_cache(maxsize=None)(condition.holds)
        return {key for key, name in versions if holds(name)}
    return {key for key, name in lookups.words[column].items() if condition.holds(name)}


def preference(lookups: Lookups, conditions: Conditions = ()) -> tuple[str, dict[str, str]]:
    """Return the order in which every answer lists configurations, as SQL with its parameters.

    Installed configurations come first, then configurations that run on most machines.

    Args:
        conditions: if they choose a machine (`--host zen4`, `target=:zen4`), configurations for
            the nearest target come before configurations for older targets.
    """
    used: dict[str, str] = {}
    if host := chosen_machine(conditions):
        # The targets that run on the machine, the nearest first.
        ids = {name: key for key, name in lookups.words["target"].items()}
        targets = (ids[name] for name in (host, *ancestors(host)) if name in ids)
        used["nearest"] = json.dumps([*targets])
    order = _ORDER.format(nearest=_NEAREST if host else "")
    if trees := lookups.trees():
        order, used["trees"] = _INSTALLED_FIRST + order, next(json_pieces(trees))
    return order, used


def chosen_machine(conditions: Conditions) -> str | None:
    """Return the CPU target of the machine that conditions choose; None if they choose none."""
    host, target = asked(conditions, "host"), asked(conditions, "target")
    if host is None and isinstance(target, str) and target.startswith(":"):
        return target[1:]
    return host


def configuration_ids(
    lookups: Lookups, conditions: Conditions, *, every: bool = False
) -> list[int]:
    """Return the configurations that satisfy conditions, in the order of `preference`.

    The result is exact for conditions on words and one release or stack. With conditions on specs,
    or on release and stack, use `specs_in_scope` to keep the configurations with a spec.

    Args:
        every: without a release or stack, include configurations without a binary.
    """
    used = {kind: value for kind in _FILTERS if (value := asked(conditions, kind)) is not None}
    if "release" in used:
        used.pop("stack", None)
    filters = [_FILTERS[kind] for kind in used]
    if not every and not used.keys() & {"release", "stack"}:
        filters.append(_OWN)
    columns = column_ids(lookups, conditions)

    def read() -> list[int]:
        order, late = preference(lookups, conditions)
        return _having(lookups.conn, columns, filters, used | late, order)

    if columns or used or chosen_machine(conditions) is not None:
        return read()
    # A query of specs alone begins with all configurations.
    return lookups.once(("configurations in order", every), read)


def with_other_variant(conn: sqlite3.Connection, constraint: VariantConstraint) -> list[int]:
    """Return the configurations with a variant of this name that violates the constraint."""
    members = (
        key
        for key, text in select(conn, VARIANTS, name=constraint.name, text="")
        for variant in readable_variants((text,), constraint.name)
        if not variant_matches(constraint, variant)
    )
    return _having(conn, {"variants": _sets_with(conn, members)}, [], {})


def _sets_with(conn: sqlite3.Connection, variants: Iterable[int]) -> set[int]:
    return {row[0] for row in select_in(conn, SETS_WITH, variants)}


def column_ids(lookups: Lookups, conditions: Conditions) -> dict[str, Set[int]]:
    """Return the ids that satisfy conditions, by column; stops at a column without any."""
    ids_of_column: dict[str, Set[int]] = {}
    for condition in conditions:
        if condition.kind not in COLUMNS:
            continue
        column = COLUMNS[condition.kind]
        packages = ids_of_column.get("package", ())
        package = next(iter(packages)) if len(packages) == 1 else None
        ids = satisfying(lookups, condition, package)
        ids_of_column[column] = ids_of_column[column] & ids if column in ids_of_column else ids
        if not ids_of_column[column]:
            break
    return ids_of_column


def _having(
    conn: sqlite3.Connection,
    columns: Mapping[str, Set[int]],
    filters: Iterable[str],
    parameters: Mapping[str, Any],
    order: str = "id",
) -> list[int]:
    """Return the configurations with these ids in their columns that pass the filters."""
    if not all(columns.values()):
        return []
    # Lists that do not fit into one value of SQLite are compared in Python.
    long = [column for column, ids in columns.items() if len(ids) > IDS_AT_ONCE]
    short = {column: next(json_pieces(columns[column])) for column in columns.keys() - {*long}}
    tests = [f"{column} IN (SELECT value FROM json_each(:{column}))" for column in sorted(short)]
    selected, where = ", ".join(["id", *long]), "\n  AND ".join([*tests, *filters]) or "1"
    sql = f"SELECT {selected} FROM configurations WHERE {where} ORDER BY {order}"
    rows: Iterable[tuple[Any, ...]] = select(conn, sql, **short, **parameters)
    for position, column in enumerate(long, start=1):
        rows = [row for row in rows if row[position] in columns[column]]
    return [row[0] for row in rows]


class Candidate(NamedTuple):
    """A row of the table `configurations`; `keys` are the ids in the columns of `CONFIGURATION`.

    `configurations` is the number of rows that it represents (`Candidates.groups`).
    """

    id: int
    keys: tuple[int, ...]
    spec_count: int
    configurations: int = 1

    def key(self, column: str) -> int:
        """Return the id in a column."""
        return self.keys[_PLACE[column]]


_Rows = tuple[Candidate, ...]


class Candidates:
    """The configurations of packages, read at first use and cached, in the order of answers."""

    def __init__(self, lookups: Lookups, scope: Conditions = ANYWHERE) -> None:
        self.lookups = lookups
        self._scope = scope
        self._cache: dict[object, object] = {}

    def once(self, key: object, read: Callable[[], T]) -> T:
        """Return the result of `read`, which is called once for each key."""
        if key not in self._cache:
            self._cache[key] = read()
        return cast("T", self._cache[key])

    def rows(self, name: str | None) -> _Rows:
        """Return the configurations of a package, or of all packages, in order."""
        package = self.lookups.packages.get(name or "")
        if name is not None and package is None:
            return ()

        order, late = preference(self.lookups, self._scope)
        sql = (EVERY_ROW if package is None else ROWS_OF_PACKAGE).format(order)
        return self.once(("rows", package), lambda: self._read(sql, package=package, **late))

    def groups(self, columns: Iterable[str]) -> _Rows:
        """Return one configuration for each group of configurations with equal columns."""
        return self._read(GROUPS.format(", ".join(("spec_count > 0", *columns))))

    def _read(self, sql: str, **values: Any) -> _Rows:
        rows = [*select(self.lookups.conn, sql, **values)]
        learn(self.lookups, rows)
        return tuple(Candidate(row[0], row[1:-2], *row[-2:]) for row in rows)

    def satisfying(self, condition: Condition, package: str | None) -> Set[int]:
        """Return the ids of words that satisfy a condition; versions are of the package."""
        of = self.lookups.packages.get(package or "") if condition.kind == "version" else None
        key = condition.kind, condition.asked, of
        return self.once(key, lambda: satisfying(self.lookups, condition, of))

    def counts(self, places: Conditions, rows: Sequence[Candidate]) -> Mapping[int, int]:
        """Return the number of specs that satisfy `places`, by the ids of configurations."""
        if len({row.key("package") for row in rows}) == 1:
            return {key: len(specs) for key, specs in self.specs_of(places, rows).items()}
        return counts_in_scope(self.lookups, [row.id for row in rows], places)

    def specs_of(self, places: Conditions, rows: Sequence[Candidate]) -> Mapping[int, list[Spec]]:
        """Return the specs that satisfy `places`, by the ids of configurations.

        All specs of a package are read once, because environments repeat the same packages.
        """
        packages = {row.key("package") for row in rows}
        if len(packages) != 1:
            return specs_in_scope(self.lookups.conn, [row.id for row in rows], places)
        package = self.lookups.words["package"][packages.pop()]
        where = only(places, "release", "stack")
        ids = [row.id for row in self.rows(package)]
        every = self.once((where, package), lambda: specs_in_scope(self.lookups.conn, ids, where))
        specs_of_row = {row.id: every[row.id] for row in rows if row.id in every}
        conditions = only(places, "hash", "specs")
        if not conditions:
            return specs_of_row
        fitting = {
            key: [spec for spec in specs if all(is_as_asked(spec, test) for test in conditions)]
            for key, specs in specs_of_row.items()
        }
        return {key: specs for key, specs in fitting.items() if specs}

    def configuration(self, row: Candidate) -> Configuration:
        """Return the configuration of a row in words."""
        return configuration_of(self.lookups, row.keys)


@dataclass(frozen=True)
class Misses:
    """The conditions that each configuration of a package does not satisfy.

    Attributes:
        package: the package of the query; None for any.
        rows: its configurations.
        conditions: the query's conditions, without the package.
        missed: a number for each row: bit i is set if its words do not satisfy condition i.
    """

    candidates: Candidates
    package: str | None
    rows: _Rows
    conditions: Conditions
    missed: tuple[int, ...]

    def fitting(self, left_out: Iterable[int] = ()) -> dict[Candidate, int]:
        """Return the number of specs of each row that satisfies all conditions but `left_out`."""
        out = {*left_out}
        considered = ~sum(1 << position for position in out)
        fitting = [row for row, m in zip(self.rows, self.missed, strict=True) if not m & considered]
        conditions = (condition for at, condition in enumerate(self.conditions) if at not in out)
        places = only(tuple(conditions), *PLACES)
        counts = self.candidates.counts(places, fitting) if places else None
        spec_counts = {
            row: row.spec_count if counts is None else counts.get(row.id, 0) for row in fitting
        }
        return {row: count for row, count in spec_counts.items() if count > 0}

    def all_miss(self, position: int) -> bool:
        """Return whether no configuration satisfies a condition by its words."""
        return all(missed >> position & 1 for missed in self.missed)

    def missing_least(self, out: Set[int]) -> tuple[int, Candidate] | None:
        """Return the row that misses the fewest conditions, after these as a bit set.

        Rows without a spec are skipped. The conditions at the positions `out` count as missed.
        """
        of_specs = [
            pair for pair in enumerate(self.conditions) if pair[1].kind in ("hash", "specs")
        ]
        remaining = (condition for at, condition in enumerate(self.conditions) if at not in out)
        where = only(tuple(remaining), "release", "stack")
        counts = self.candidates.counts(where, self.rows) if where else None
        rows = [
            (missed | sum(1 << at for at in out), row)
            for missed, row in zip(self.missed, self.rows, strict=True)
            if (row.spec_count if counts is None else row.id in counts)
        ]
        if rows and of_specs:
            fewest = min(missed.bit_count() for missed, _ in rows) + len(of_specs)
            rows = [pair for pair in rows if pair[0].bit_count() <= fewest]
            specs = self.candidates.specs_of(where, [row for _, row in rows])

            def missed_by(spec: Spec) -> int:
                return sum(
                    1 << at for at, condition in of_specs if not is_as_asked(spec, condition)
                )

            rows = [
                (missed | min(map(missed_by, specs[row.id]), key=int.bit_count), row)
                for missed, row in rows
            ]
        return min(rows, key=lambda pair: pair[0].bit_count(), default=None)


def is_as_asked(spec: Spec, condition: Condition) -> bool:
    """Return whether a spec satisfies a condition on its hash or on its records."""
    if isinstance(condition.asked, Verdict):
        return spec.id in condition.asked.holds
    return spec.hash.startswith(str(condition.asked))


def misses_of(candidates: Candidates, conditions: Conditions) -> Misses:
    """Return the conditions that the configurations of a package do not satisfy."""
    package_word = asked(conditions, "package")
    package = package_word.text if isinstance(package_word, Word) else None
    remaining = tuple(dict.fromkeys(without(conditions, "package") if package else conditions))
    columns = dict.fromkeys(
        COLUMNS[condition.kind] for condition in remaining if condition.kind in COLUMNS
    )
    if package is None and all(condition.kind in COLUMNS for condition in remaining):
        rows = candidates.groups(columns)
    else:
        rows = candidates.rows(package)
    missed = [0] * len(rows)
    for column in columns:
        # A column has far fewer words than rows.
        at = _PLACE[column]
        words = dict.fromkeys({row.keys[at] for row in rows}, 0)
        for position, condition in enumerate(remaining):
            if COLUMNS.get(condition.kind) == column:
                for key in words.keys() - candidates.satisfying(condition, package):
                    words[key] |= 1 << position
        missed = [bits | words[row.keys[at]] for bits, row in zip(missed, rows, strict=True)]
    return Misses(candidates, package, rows, remaining, tuple(missed))


# Compared by identity, because comparing contents would be slow.
@dataclass(frozen=True, slots=True, eq=False)
class ResultSet:
    """The configurations that satisfy conditions, by their ids in order.

    Attributes:
        counts: the number of specs for each; None if it was not needed.
    """

    conditions: Conditions
    ids: list[int]
    counts: Mapping[int, int] | None = None


def matching(lookups: Lookups, conditions: Conditions) -> ResultSet:
    """Return the configurations that satisfy conditions, in the order of `preference`."""
    ids = configuration_ids(lookups, conditions)
    places = {condition.kind for condition in conditions if condition.kind in PLACES}
    if len(places) < 2 and not is_of_specs(conditions):
        return ResultSet(conditions, ids)
    # Different specs of a configuration may satisfy one condition each, but none of them all.
    counts = counts_in_scope(lookups, ids, conditions)
    return ResultSet(conditions, [*filter(counts.__contains__, ids)], counts)


def counted_part(lookups: Lookups, results: ResultSet, part: slice) -> list[Counted]:
    """Return a slice of the configurations with their numbers of specs that satisfy conditions."""
    ids = results.ids[part]
    configurations = configurations_by_id(lookups, ids)
    if not any(condition.kind in PLACES for condition in results.conditions):
        return configurations
    counts = results.counts
    if counts is None:
        counts = counts_in_scope(lookups, ids, results.conditions)
    return [row._replace(spec_count=counts[row.id]) for row in configurations]
