"""The configurations of packages as rows in memory, for questions that compare many.

A row has ids in place of words: for `hdf5@1.14.6 +mpi %gcc`, the ids of the package, of
the version, of the set of variants and of the compiler. Its specs are read as well, if
a question is about their hashes, releases or stacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from spack_cache_db.model import Configuration
from spack_cache_db.query.conditions.conditions import (
    OF_SPECS,
    Condition,
    Conditions,
    Verdict,
    only,
)
from spack_cache_db.query.match.order import order_for
from spack_cache_db.query.match.selection import satisfying_words
from spack_cache_db.query.open.lookups import Lookups, Memory
from spack_cache_db.query.open.sql import select, select_in
from spack_cache_db.query.stored.binary import Spec, specs_in_scope
from spack_cache_db.query.stored.configurations import configuration_of, learn
from spack_cache_db.schema.tables import CONFIGURATION, ID_COLUMNS

_COLUMNS = ", ".join(ID_COLUMNS.values())
# A row of each statement becomes a `Candidate`.
ROWS = (
    f"SELECT id, {_COLUMNS}, spec_count, 1 FROM configurations WHERE {{}} ORDER BY {{}}"
)
"""Configurations that satisfy a condition of SQL, in an order."""
BY_IDS = f"""
SELECT id, {_COLUMNS}, spec_count, 1 FROM configurations
WHERE id IN (SELECT value FROM json_each(:ids))
"""
"""Configurations by their ids."""
GROUPS = f"""
SELECT min(id), {_COLUMNS}, sum(spec_count), count(*)
FROM configurations GROUP BY {{}} ORDER BY 1
"""
"""One configuration for all that are equal in some columns.

SQLite takes the other columns from the row with the least id (SQLite docs, "SELECT",
2.5).
"""
KEY_POSITIONS = {column: position for position, column in enumerate(CONFIGURATION)}
"""The position of each column in `Candidate.keys`."""


class Candidate(NamedTuple):
    """A row of the table `configurations`.

    Attributes:
        keys: the ids in the columns of `CONFIGURATION`, such as `version`.
        spec_count: the number of its binaries.
        configurations: the number of rows that it represents (`Candidates.groups`).
    """

    id: int
    keys: tuple[int, ...]
    spec_count: int
    configurations: int = 1

    def key(self, column: str) -> int:
        """Return the id in a column, such as `version`."""
        return self.keys[KEY_POSITIONS[column]]


Rows = tuple[Candidate, ...]
"""Configurations in an order; they may be many, and are cached."""


@dataclass(frozen=True, eq=False)
class Candidates(Memory):
    """The configurations of packages, read at first use and cached, in the order of
    answers.

    Attributes:
        lookups: the database.
        scope: conditions that may choose a machine, which decides the order.
    """

    lookups: Lookups
    scope: Conditions = ()

    def rows(self, name: str | None) -> Rows:
        """Return the configurations of a package, or of all packages, in order."""
        if name is None:
            return self._ordered(None)
        package = self.lookups.packages.get(name)
        return () if package is None else self._ordered(package)

    def groups(self, columns: Iterable[str]) -> Rows:
        """Return one configuration for each group of configurations that are equal in
        some columns; `configurations` has the size of the group.
        """
        # Configurations without a binary are groups of their own.
        terms = ["spec_count > 0", *(ID_COLUMNS[column] for column in columns)]
        sql = GROUPS.format(", ".join(terms))
        return _rows(self.lookups, select(self.lookups.conn, sql))

    def satisfying(
        self, condition: Condition, column: str, package: str | None
    ) -> Set[int]:
        """Return the ids of words that satisfy a condition, such as those of the
        versions in `@1.14:`.

        Args:
            condition: a condition on words.
            column: one of its columns.
            package: the package whose versions are compared; None for all packages.
        """
        package_id = None
        if package is not None and column == "version":
            package_id = self.lookups.packages.get(package)
        key = (condition.kind, condition.value, column, package_id)
        return self.once(
            key, lambda: satisfying_words(self.lookups, condition, column, package_id)
        )

    def specs_of(
        self, places: Conditions, rows: Sequence[Candidate]
    ) -> Mapping[int, list[Spec]]:
        """Return the specs of rows that satisfy conditions, by the ids of the rows.

        The specs of a row are read once, because environments repeat the same packages.

        Args:
            places: conditions, of which those on a release, a stack or on specs count.
            rows: the rows; one without such specs has no key in the result.
        """
        packages = {row.key("package") for row in rows}
        if len(packages) != 1:
            ids = [row.id for row in rows]
            return specs_in_scope(self.lookups.conn, ids, places)

        # Read the specs of rows that were not read yet, in the release and the stack.
        scope = only(places, "release", "stack")
        known: dict[int, list[Spec]] = self.once(("specs", scope), dict)
        unread = [row.id for row in rows if row.id not in known]
        if unread:
            found = specs_in_scope(self.lookups.conn, unread, scope)
            for row_id in unread:
                known[row_id] = found.get(row_id, [])
        specs_of_row = {row.id: known[row.id] for row in rows if known[row.id]}

        # Keep those of them that satisfy the conditions on specs.
        conditions = only(places, *OF_SPECS)
        if not conditions:
            return specs_of_row
        satisfying_specs = {}
        for row_id, specs in specs_of_row.items():
            satisfying = [spec for spec in specs if _satisfies_all(spec, conditions)]
            if satisfying:
                satisfying_specs[row_id] = satisfying
        return satisfying_specs

    def configuration(self, row: Candidate) -> Configuration:
        """Return the configuration of a row in words."""
        return configuration_of(self.lookups, row.keys)

    def _ordered(self, package: int | None) -> Rows:
        """Return the rows of a package, given by id, or all rows (None); cached."""

        def read() -> Rows:
            order = order_for(self.lookups, self.scope)
            where = "1" if package is None else "package_id = :package"
            sql = ROWS.format(where, order.sql)
            parameters = {"package": package} | order.parameters
            return _rows(self.lookups, select(self.lookups.conn, sql, **parameters))

        return self.once(("rows", package), read)


def candidates_by_id(lookups: Lookups, ids: Iterable[int]) -> Rows:
    """Return configurations by their ids, in no order."""
    return _rows(lookups, select_in(lookups.conn, BY_IDS, ids))


def _rows(lookups: Lookups, selected: Iterable[tuple[Any, ...]]) -> Rows:
    """Return selected rows, and make sure that `lookups` has their words."""
    selected = list(selected)
    learn(lookups, selected)
    rows = []
    for row_id, *keys, spec_count, configurations in selected:
        rows.append(Candidate(row_id, tuple(keys), spec_count, configurations))
    return tuple(rows)


def _satisfies_all(spec: Spec, conditions: Conditions) -> bool:
    return all(satisfies(spec, condition) for condition in conditions)


def satisfies(spec: Spec, condition: Condition) -> bool:
    """Return whether a spec satisfies a condition on its hash or on its records."""
    if isinstance(condition.value, Verdict):
        return spec.id in condition.value.matching
    return spec.hash.startswith(str(condition.value))
