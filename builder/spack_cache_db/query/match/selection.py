"""Finds the configurations that satisfy conditions, and the conditions that others
miss.

Conditions are evaluated on the small tables of words; large tables are searched by ids
only.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from spack_cache_db.model import Configuration
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    OF_SPECS,
    PLACES,
    Condition,
    Conditions,
    OneOf,
    Verdict,
    asked,
    only,
    readable_variants,
)
from spack_cache_db.query.open.lookups import Lookups, Memory
from spack_cache_db.query.open.sql import (
    IDS_AT_ONCE,
    json_pieces,
    select,
    select_ids,
    select_in,
)
from spack_cache_db.query.stored.binary import (
    HASH_BEGINS,
    Spec,
    counts_in_scope,
    specs_in_scope,
)
from spack_cache_db.query.stored.configurations import (
    Counted,
    configuration_of,
    configurations_by_id,
    learn,
)
from spack_cache_db.schema.tables import CONFIGURATION
from spack_cache_db.spack.matching import variant_matches
from spack_cache_db.spack.queries import VariantConstraint
from spack_cache_db.spack.targets import ancestors

VERSIONS = "SELECT id, name FROM versions"
VARIANTS = "SELECT id, text FROM variants WHERE name = :name OR text = :text"
SETS_WITH = """
SELECT DISTINCT variant_set FROM variant_set_members
WHERE variant IN (SELECT value FROM json_each(:ids))
"""
# Explicitly installed configurations come first, then other installed ones.
_INSTALLED_FIRST = """
id NOT IN (
  SELECT specs.configuration FROM installations JOIN specs ON specs.hash = installations.hash
  WHERE installations.explicit),
id NOT IN (
  SELECT configuration FROM configuration_releases
  WHERE release IN (SELECT value FROM json_each(:trees))),
"""
# By system and family of CPUs, the most common first; within a package by Spack's
# preferred version, then the nearest target, then current releases. The ids of packages
# are in the order of their names, those of versions in Spack's preference.
_ORDER = """
platform <> (SELECT id FROM platforms WHERE name = 'linux'),
platform,
(SELECT CASE family WHEN 'x86_64' THEN '' ELSE family END
  FROM targets WHERE targets.id = configurations.target),
package,
-version,
{nearest}
(SELECT min(release) FROM configuration_releases WHERE configuration = configurations.id),
id
"""
_NEAREST = "(SELECT key FROM json_each(:nearest) WHERE value = target),"
_FILTERS = {
    "release": """id IN (
  SELECT configuration FROM configuration_releases WHERE release = :release)""",
    "stack": """id IN (
  SELECT configuration FROM configuration_stacks WHERE stack = :stack)""",
    "words": "id IN (SELECT rowid FROM configurations_fts WHERE configurations_fts MATCH :words)",
    "hash": f"id IN (SELECT configuration FROM specs WHERE {HASH_BEGINS})",
}
# Configurations without specs are known as dependencies only, or the mirror has lost
# them.
_OWN = "spec_count > 0"
_COLUMNS = ", ".join(CONFIGURATION)
ROWS = (
    f"SELECT id, {_COLUMNS}, spec_count, 1 FROM configurations WHERE {{}} ORDER BY {{}}"
)
BY_IDS = f"""
SELECT id, {_COLUMNS}, spec_count FROM configurations
WHERE id IN (SELECT value FROM json_each(:ids))
"""
# SQLite takes the other columns from the row with the least id (SQLite docs, "SELECT",
# 2.5).
GROUPS = f"""
SELECT min(id), {_COLUMNS}, sum(spec_count), count(*)
FROM configurations GROUP BY {{}} ORDER BY 1
"""
PLACE = {column: position for position, column in enumerate(CONFIGURATION)}


def satisfying(
    lookups: Lookups, condition: Condition, package: int | None = None
) -> Set[int]:
    """Return the ids of the words in a condition's column that satisfy it."""
    column = COLUMNS[condition.kind]
    if column == "package":
        value = condition.asked
        names = value.words if isinstance(value, OneOf) else (condition.text,)
        return {lookups.packages[name] for name in names if name in lookups.packages}
    if column == "variants":
        name = getattr(condition.asked, "name", None)
        rows = select(lookups.conn, VARIANTS, name=name, text=condition.text)
        members = (key for key, text in rows if condition.holds((text,)))
        return select_ids(lookups.conn, SETS_WITH, members)
    if column == "version":
        # Many packages share a version such as 1.0.0.
        holds = lru_cache(maxsize=None)(condition.holds)
        where = "" if package is None else " WHERE package = :package"
        versions = select(lookups.conn, VERSIONS + where, package=package)
        return {key for key, name in versions if holds(name)}
    return {key for key, name in lookups.words[column].items() if condition.holds(name)}


def preference(lookups: Lookups, conditions: Conditions) -> tuple[str, dict[str, str]]:
    """Return the order in which every answer lists configurations, as SQL with its
    parameters.

    Installed configurations come first, then configurations that run on most machines.
    If the conditions choose a machine (`--host zen4`, `target=:zen4`), configurations
    for the nearest target come before configurations for older targets.
    """
    parameters: dict[str, str] = {}
    if host := chosen_machine(conditions):
        # The targets that run on the machine, the nearest first.
        ids = {name: key for key, name in lookups.words["target"].items()}
        targets = (ids[name] for name in (host, *ancestors(host)) if name in ids)
        parameters["nearest"] = json.dumps([*targets])
    order = _ORDER.format(nearest=_NEAREST if host else "")
    if trees := lookups.trees():
        order, parameters["trees"] = _INSTALLED_FIRST + order, json.dumps(trees)
    return order, parameters


def chosen_machine(conditions: Conditions) -> str | None:
    """Return the CPU target of the machine that conditions choose; None if they choose
    none.
    """
    host, target = asked(conditions, "host"), asked(conditions, "target")
    if host is None and isinstance(target, str) and target.startswith(":"):
        return target[1:]
    return host


def configuration_ids(
    lookups: Lookups, conditions: Conditions, *, every: bool = False
) -> list[int]:
    """Return the configurations that satisfy conditions, in the order of `preference`.

    The result is exact for conditions on words and one release or stack. With
    conditions on specs, or on release and stack, use `specs_in_scope` to keep the
    configurations with a spec. `every` includes configurations without a binary, if
    there is no release or stack.
    """
    values = {
        kind: value
        for kind in _FILTERS
        if (value := asked(conditions, kind)) is not None
    }
    if "release" in values:
        values.pop("stack", None)
    filters = [_FILTERS[kind] for kind in values]
    if not every and not values.keys() & {"release", "stack"}:
        filters.append(_OWN)
    columns = column_ids(lookups, conditions)

    def read() -> list[int]:
        order, more = preference(lookups, conditions)
        return _having(lookups.conn, columns, filters, values | more, order)

    if columns or values or chosen_machine(conditions) is not None:
        return read()
    # A query of specs alone begins with all configurations.
    return lookups.once(("configurations in order", every), read)


def with_other_variant(
    conn: sqlite3.Connection, constraint: VariantConstraint
) -> list[int]:
    """Return the configurations with a variant of this name that violates the
    constraint.
    """
    members = (
        key
        for key, text in select(conn, VARIANTS, name=constraint.name, text="")
        for variant in readable_variants((text,), constraint.name)
        if not variant_matches(constraint, variant)
    )
    return _having(conn, {"variants": select_ids(conn, SETS_WITH, members)}, [], {})


def column_ids(lookups: Lookups, conditions: Conditions) -> dict[str, Set[int]]:
    """Return the ids that satisfy conditions, by column; stops at a column without
    any.
    """
    ids_of_column: dict[str, Set[int]] = {}
    for condition in only(conditions, *COLUMNS):
        column = COLUMNS[condition.kind]
        packages = ids_of_column.get("package", ())
        package = next(iter(packages)) if len(packages) == 1 else None
        ids = satisfying(lookups, condition, package)
        ids_of_column[column] = (
            ids_of_column[column] & ids if column in ids_of_column else ids
        )
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
    """Return the configurations with these ids in their columns that pass the
    filters.
    """
    if not all(columns.values()):
        return []
    # Lists that do not fit into one value of SQLite are compared in Python.
    long = [column for column, ids in columns.items() if len(ids) > IDS_AT_ONCE]
    short = {
        column: next(json_pieces(columns[column]))
        for column in columns.keys() - {*long}
    }
    tests = [
        f"{column} IN (SELECT value FROM json_each(:{column}))"
        for column in sorted(short)
    ]
    selected, where = (
        ", ".join(["id", *long]),
        "\n  AND ".join([*tests, *filters]) or "1",
    )
    sql = f"SELECT {selected} FROM configurations WHERE {where} ORDER BY {order}"
    rows: Iterable[tuple[Any, ...]] = select(conn, sql, **short, **parameters)
    for position, column in enumerate(long, start=1):
        rows = [row for row in rows if row[position] in columns[column]]
    return [row[0] for row in rows]


class Candidate(NamedTuple):
    """A row of the table `configurations`; `keys` are the ids in the columns of
    `CONFIGURATION`.

    `configurations` is the number of rows that it represents (`Candidates.groups`).
    """

    id: int
    keys: tuple[int, ...]
    spec_count: int
    configurations: int = 1

    def key(self, column: str) -> int:
        """Return the id in a column."""
        return self.keys[PLACE[column]]


def candidates_by_id(lookups: Lookups, ids: Iterable[int]) -> list[Candidate]:
    """Return configurations by their ids, in no order, with their words in
    `lookups`.
    """
    rows = list(select_in(lookups.conn, BY_IDS, ids))
    learn(lookups, rows)
    return [Candidate(row[0], row[1:-1], row[-1]) for row in rows]


Rows = tuple[Candidate, ...]


@dataclass(frozen=True, eq=False)
class Candidates(Memory):
    """The configurations of packages, read at first use and cached, in the order of
    answers.
    """

    lookups: Lookups
    scope: Conditions = ()

    def rows(self, name: str | None) -> Rows:
        """Return the configurations of a package, or of all packages, in order."""
        package = self.lookups.packages.get(name or "")
        if name is not None and package is None:
            return ()
        order, parameters = preference(self.lookups, self.scope)
        sql = ROWS.format("1" if package is None else "package = :package", order)
        return self.once(
            ("rows", package), lambda: self._read(sql, package=package, **parameters)
        )

    def groups(self, columns: Iterable[str]) -> Rows:
        """Return one configuration for each group of configurations with equal
        columns.
        """
        return self._read(GROUPS.format(", ".join(("spec_count > 0", *columns))))

    def _read(self, sql: str, **values: Any) -> Rows:
        rows = [*select(self.lookups.conn, sql, **values)]
        learn(self.lookups, rows)
        return tuple(Candidate(row[0], row[1:-2], *row[-2:]) for row in rows)

    def satisfying(self, condition: Condition, package: str | None) -> Set[int]:
        """Return the ids of words that satisfy a condition; versions are of the
        package.
        """
        of = (
            self.lookups.packages.get(package or "")
            if condition.kind == "version"
            else None
        )
        key = condition.kind, condition.asked, of
        return self.once(key, lambda: satisfying(self.lookups, condition, of))

    def specs_of(
        self, places: Conditions, rows: Sequence[Candidate]
    ) -> Mapping[int, list[Spec]]:
        """Return the specs that satisfy `places`, by the ids of configurations.

        All specs of a package are read once, because environments repeat the same
        packages.
        """
        conn, packages = self.lookups.conn, {row.key("package") for row in rows}
        if len(packages) != 1:
            return specs_in_scope(conn, [row.id for row in rows], places)
        name = self.lookups.words["package"][packages.pop()]
        where, conditions = only(places, "release", "stack"), only(places, *OF_SPECS)
        ids = [row.id for row in self.rows(name)]
        every = self.once((where, name), lambda: specs_in_scope(conn, ids, where))
        specs_of_row = {row.id: every[row.id] for row in rows if row.id in every}
        if not conditions:
            return specs_of_row
        satisfying_specs = {
            key: [
                spec
                for spec in specs
                if all(is_as_asked(spec, test) for test in conditions)
            ]
            for key, specs in specs_of_row.items()
        }
        return {key: specs for key, specs in satisfying_specs.items() if specs}

    def configuration(self, row: Candidate) -> Configuration:
        """Return the configuration of a row in words."""
        return configuration_of(self.lookups, row.keys)


def is_as_asked(spec: Spec, condition: Condition) -> bool:
    """Return whether a spec satisfies a condition on its hash or on its records."""
    if isinstance(condition.asked, Verdict):
        return spec.id in condition.asked.holds
    return spec.hash.startswith(str(condition.asked))


# Compared by identity, because comparing contents would be slow.
@dataclass(frozen=True, slots=True, eq=False)
class ResultSet:
    """The configurations that satisfy conditions, by their ids in order.

    `counts` has the number of specs for each; None if it was not needed.
    """

    conditions: Conditions
    ids: list[int]
    counts: Mapping[int, int] | None = None


def matching(lookups: Lookups, conditions: Conditions) -> ResultSet:
    """Return the configurations that satisfy conditions, in the order of
    `preference`.
    """
    ids = configuration_ids(lookups, conditions)
    kinds = {condition.kind for condition in only(conditions, *PLACES)}
    if len(kinds) < 2 and kinds.isdisjoint(OF_SPECS):
        return ResultSet(conditions, ids)
    # Different specs of a configuration may satisfy one condition each, but none of
    # them all.
    counts = counts_in_scope(lookups, ids, conditions)
    return ResultSet(conditions, [*filter(counts.__contains__, ids)], counts)


def counted_part(lookups: Lookups, results: ResultSet, part: slice) -> list[Counted]:
    """Return a slice of the configurations with their numbers of specs that satisfy
    conditions.
    """
    ids = results.ids[part]
    configurations = configurations_by_id(lookups, ids)
    if not only(results.conditions, *PLACES):
        return configurations
    counts = results.counts
    if counts is None:
        counts = counts_in_scope(lookups, ids, results.conditions)
    return [row._replace(spec_count=counts[row.id]) for row in configurations]
