"""Finds the configurations that satisfy conditions.

For `hdf5@1.14: %gcc`, the names of packages, the versions of `hdf5` and the compilers
are compared with the conditions first, because these tables of words are small. The
large table of configurations is then searched by the ids of the words that satisfy
them.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from typing import Any

from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    OF_SPECS,
    PLACE_KINDS,
    Condition,
    Conditions,
    OneOf,
    condition_value,
    only,
    readable_variants,
)
from spack_cache_db.query.match.order import Order, chosen_machine, order_for
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import IDS_AT_ONCE, json_pieces, select, select_ids
from spack_cache_db.query.stored.binary import HASH_BEGINS, counts_in_scope
from spack_cache_db.query.stored.configurations import Counted, configurations_by_id
from spack_cache_db.schema.tables import ID_COLUMNS
from spack_cache_db.spack.matching import variant_matches
from spack_cache_db.spack.queries import VariantConstraint

# The words that are compared with a condition, by their ids.
VERSIONS = "SELECT id, name FROM versions"
VERSIONS_OF_PACKAGE = "SELECT id, name FROM versions WHERE package_id = :package"
VARIANTS = "SELECT id, text FROM variants WHERE name = :name OR text = :text"
"""The variants of a name, such as `libs`, or a variant as text, such as `libs=shared`.
"""
SETS_WITH = """
SELECT DISTINCT variant_set_id FROM variant_set_members
WHERE variant_id IN (SELECT value FROM json_each(:ids))
"""
"""The sets of variants that have one of some variants."""
# The key of the history begins with the configuration: SQLite looks up those that the
# other conditions leave, instead of reading the whole table for one release.
_FILTERS = {
    "release": """EXISTS (
  SELECT 1 FROM configuration_history AS history
  WHERE history.configuration_id = configurations.id
    AND history.release_id = :release AND history.spec_count > 0)""",
    "stack": """id IN (
  SELECT configuration_id FROM configuration_stacks WHERE stack_id = :stack)""",
    "words": "id IN (SELECT rowid FROM configurations_fts WHERE configurations_fts MATCH :words)",
    "hash": f"id IN (SELECT configuration_id FROM specs WHERE {HASH_BEGINS})",
}
"""Conditions of SQL on configurations, by the kinds of conditions; others are on words
or on specs.
"""
_HAS_BINARY = "spec_count > 0"
"""Other configurations are known as dependencies only, or mirrors have lost them."""


# Compared by identity, because comparing contents would be slow.
@dataclass(frozen=True, slots=True, eq=False)
class ResultSet:
    """The configurations that satisfy conditions.

    Attributes:
        ids: their ids, in the order of answers.
        counts: the number of specs of each that satisfy the conditions; None if it was
            not needed to find the configurations.
    """

    conditions: Conditions
    ids: list[int]
    counts: Mapping[int, int] | None = None


def matching(
    lookups: Lookups, conditions: Conditions, *, in_order: bool = True
) -> ResultSet:
    """Return the configurations that satisfy conditions, in the order of `order_for`;
    to count them, any order will do, which takes a third of the time.
    """
    ids = configuration_ids(lookups, conditions, in_order=in_order)
    # With conditions on words and on a release or a stack, `ids` are exact.
    kinds = {condition.kind for condition in only(conditions, *PLACE_KINDS)}
    if len(kinds) < 2 and kinds.isdisjoint(OF_SPECS):
        return ResultSet(conditions, ids)
    # Otherwise, different specs of a configuration may satisfy one condition each, but
    # none of them all.
    counts = counts_in_scope(lookups, ids, conditions)
    return ResultSet(conditions, [key for key in ids if key in counts], counts)


def spec_counts(lookups: Lookups, results: ResultSet) -> Mapping[int, int] | array[int]:
    """Return the number of specs of each configuration that satisfy the conditions, by
    its id.

    Without conditions on specs, these are the stored numbers of all configurations.
    """
    if results.counts is not None:
        return results.counts
    if only(results.conditions, *PLACE_KINDS):
        return counts_in_scope(lookups, results.ids, results.conditions)
    return lookups.column("configurations", "spec_count")


def counted_part(lookups: Lookups, results: ResultSet, part: slice) -> list[Counted]:
    """Return a slice of the configurations, each with the number of its specs that
    satisfy the conditions.
    """
    ids = results.ids[part]
    configurations = configurations_by_id(lookups, ids)
    # Without conditions on specs, these have the numbers already.
    if not only(results.conditions, *PLACE_KINDS):
        return configurations
    counts = results.counts
    if counts is None:
        counts = counts_in_scope(lookups, ids, results.conditions)
    return [row._replace(spec_count=counts[row.id]) for row in configurations]


def configuration_ids(
    lookups: Lookups,
    conditions: Conditions,
    *,
    every: bool = False,
    in_order: bool = True,
) -> list[int]:
    """Return the ids of configurations that satisfy conditions, in the order of
    `order_for`.

    The result is exact for conditions on words and one release or stack. With
    conditions on specs, or on release and stack, use `specs_in_scope` of
    `query.stored.binary` to keep the configurations with a spec.

    Args:
        lookups: the database.
        conditions: the conditions.
        every: include configurations without a binary, if there is no release or stack.
        in_order: whether the order matters.
    """
    # The conditions that SQL compares.
    values: dict[str, Any] = {}
    for kind in _FILTERS:
        value = condition_value(conditions, kind)
        if value is not None:
            values[kind] = value
    if "release" in values:
        # A spec must be in the stack in this release. The filter on stacks is for all
        # releases, and only the listings of specs have the stacks of one release.
        values.pop("stack", None)
    filters = [_FILTERS[kind] for kind in values]
    is_in_place = "release" in values or "stack" in values
    if not every and not is_in_place:
        filters.append(_HAS_BINARY)

    # The conditions on words.
    columns = column_ids(lookups, conditions)

    def read() -> list[int]:
        order = order_for(lookups, conditions) if in_order else Order("id", {})
        parameters = values | order.parameters
        return _having(lookups.conn, columns, filters, parameters, order.sql)

    # A machine is a condition on the order.
    if columns or values or chosen_machine(conditions) is not None:
        return read()
    # Without any of these, the result is all configurations, which are cached.
    return lookups.once(("configurations in order", every), read)


def column_ids(lookups: Lookups, conditions: Conditions) -> dict[str, Set[int]]:
    """Return the ids of the words that satisfy conditions, by column.

    If no word of a column satisfies them, this column is the last: no configuration
    does.
    """
    ids_of_column: dict[str, Set[int]] = {}
    for condition in only(conditions, *COLUMNS):
        # If one package is known, only its own versions are compared. Its condition
        # comes first in a query.
        packages = ids_of_column.get("package", frozenset())
        package = None
        if len(packages) == 1:
            (package,) = packages
        for column in COLUMNS[condition.kind]:
            ids = satisfying_words(lookups, condition, column, package)
            if column in ids_of_column:
                ids = ids_of_column[column] & ids
            ids_of_column[column] = ids
            if not ids:
                return ids_of_column
    return ids_of_column


def satisfying_words(
    lookups: Lookups, condition: Condition, column: str, package: int | None = None
) -> Set[int]:
    """Return the ids of the words in one of a condition's columns that satisfy it.

    Args:
        lookups: the database.
        condition: a condition of a kind in `COLUMNS`.
        column: one of its columns.
        package: for versions: the id of the package whose versions are compared; None
            for those of all packages.
    """
    if column == "package":
        return _packages(lookups, condition)
    if column == "variants":
        return _variant_sets(lookups, condition)
    if column == "version":
        return _versions(lookups, condition, package)
    words = lookups.words[column]
    return {key for key, word in words.items() if condition.is_met_by(column, word)}


def _packages(lookups: Lookups, condition: Condition) -> Set[int]:
    """Return the packages that a condition names; unknown names are left out."""
    names: Iterable[str] = [condition.text]
    if isinstance(condition.value, OneOf):
        names = condition.value.words
    return {lookups.packages[name] for name in names if name in lookups.packages}


def _variant_sets(lookups: Lookups, condition: Condition) -> Set[int]:
    """Return the sets of variants with a variant that satisfies a condition."""
    # A filter of the site is the text of a variant. A constraint is on a name.
    name = None
    if isinstance(condition.value, VariantConstraint):
        name = condition.value.name
    rows = select(lookups.conn, VARIANTS, name=name, text=condition.text)
    variants = [key for key, text in rows if condition.is_met_by("variants", (text,))]
    return select_ids(lookups.conn, SETS_WITH, variants)


def _versions(lookups: Lookups, condition: Condition, package: int | None) -> Set[int]:
    """Return the versions of a package, or of all packages, that satisfy a
    condition.
    """
    if package is None:
        rows = select(lookups.conn, VERSIONS)
    else:
        rows = select(lookups.conn, VERSIONS_OF_PACKAGE, package=package)
    # Many packages share a version such as 1.0.0, which is compared once.
    is_satisfied_by = cache(condition.is_met_by)
    return {key for key, name in rows if is_satisfied_by("version", name)}


def with_other_variant(
    conn: sqlite3.Connection, constraint: VariantConstraint
) -> list[int]:
    """Return the ids of configurations with a variant of this name that violates the
    constraint.
    """
    violating = []
    for key, text in select(conn, VARIANTS, name=constraint.name, text=""):
        variants = readable_variants((text,), constraint.name)
        if not all(variant_matches(constraint, variant) for variant in variants):
            violating.append(key)
    sets = select_ids(conn, SETS_WITH, violating)
    return _having(
        conn, columns={"variants": sets}, filters=(), parameters={}, order="id"
    )


def _having(
    conn: sqlite3.Connection,
    columns: Mapping[str, Set[int]],
    filters: Iterable[str],
    parameters: Mapping[str, Any],
    order: str,
) -> list[int]:
    """Return the ids of configurations with some ids in their columns that pass the
    filters.

    Args:
        conn: a connection to the database.
        columns: the ids that are allowed in each column, such as `version`.
        filters: conditions of SQL.
        parameters: the parameters of `filters` and `order`.
        order: the terms of ORDER BY.
    """
    if not all(columns.values()):
        return []

    # SQLite compares the columns whose ids fit into one parameter.
    tests = []
    pieces = {}
    long_columns = []
    for column in sorted(columns):
        if len(columns[column]) > IDS_AT_ONCE:
            long_columns.append(column)
            continue
        (piece,) = json_pieces(columns[column])
        pieces[column] = piece
        tests.append(
            f"{ID_COLUMNS[column]} IN (SELECT value FROM json_each(:{column}))"
        )
    where = "\n  AND ".join([*tests, *filters]) or "1"
    selected = ", ".join(["id", *(ID_COLUMNS[column] for column in long_columns)])
    sql = f"SELECT {selected} FROM configurations WHERE {where} ORDER BY {order}"
    rows: Iterable[tuple[Any, ...]] = select(conn, sql, **pieces, **parameters)

    # The other columns are compared here.
    for position, column in enumerate(long_columns, start=1):
        allowed = columns[column]
        rows = [row for row in rows if row[position] in allowed]
    return [row[0] for row in rows]
