"""Sets of specs by what the records of indexes have about them.

The index of a mirror has a record of each spec: its namespace, its parameters (variants
and compiler flags) and its dependencies. If several indexes have a record of a spec,
the first one by release and path counts. A spec that only pages list has no record.

The database has equal records once, in its table `nodes`, and specs are sets of ids
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from spack_cache_db.database_damage import stored_json
from spack_cache_db.query.conditions.conditions import (
    Conditions,
    configuration_conditions,
)
from spack_cache_db.query.match.selection import configuration_ids
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.open.sql import select, select_ids, select_in
from spack_cache_db.query.stored import graph
from spack_cache_db.query.stored.binary import specs_of_configurations
from spack_cache_db.spack.facts import VIRTUALS
from spack_cache_db.spack.queries import SpecQuery

EVERY = "SELECT id FROM specs"
"""The specs of all packages."""
UNRECORDED = """
SELECT id FROM specs
WHERE NOT EXISTS (SELECT 1 FROM record_ranges WHERE record_ranges.spec_id = specs.id)
"""
"""The specs that only pages list."""
# The record that counts of all specs, or of some. SQLite takes the node from the row
# that has the minimum (SQLite docs, "SELECT", 2.5).
FIRST_RECORDS = """
SELECT spec_id, node_id, min(first_mirror_id) FROM record_ranges GROUP BY spec_id
"""
FIRST_RECORDS_OF = """
SELECT spec_id, node_id, min(first_mirror_id) FROM record_ranges
WHERE spec_id IN (SELECT value FROM json_each(:ids)) GROUP BY spec_id
"""
PARAMETERS = "SELECT id, namespace, parameters FROM nodes"
"""The content of all records; parameters are JSON."""
WITH_COMPILER = "SELECT id FROM nodes WHERE has_compiler"
"""Nodes from before Spack 1.0: they name one compiler and have no edge to it."""
MIRRORS = "SELECT id FROM mirrors"
"""All mirrors that have an index."""
# Spack writes the virtual packages that a dependency provides since version 7 of its
# database and version 4 of spec files. Layout 2 has spec files of any version, so they
# are looked at.
WITHOUT_VIRTUALS = """
SELECT id FROM mirrors
WHERE format IN ('5', '6', 'spec file 1', 'spec file 2', 'spec file 3')
  OR format = 'spec files, layout 2' AND NOT EXISTS (
    SELECT 1 FROM records
    JOIN dependencies ON dependencies.spec_id = records.spec_id
    JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.dependency_virtual_id
    WHERE records.mirror_id = mirrors.id AND dependency_virtuals.virtuals <> '')
"""
"""The mirrors whose records lack these virtual packages."""
NONE: frozenset[int] = frozenset()
"""No specs."""


class Record(NamedTuple):
    """The record that counts of a spec, as ids.

    Attributes:
        node: its content, a row of the table `nodes`.
        mirror: the mirror whose index has it.
    """

    spec: int
    node: int
    mirror: int


@dataclass
class RecordedSpecs:
    """The specs of a database, or of one package, by their records; read at first use.

    Args:
        lookups: the database.
        package: the package; None for all.
    """

    lookups: Lookups
    package: str | None = None

    @cached_property
    def among(self) -> Set[int] | None:
        """The specs of `package`; None for all specs."""
        if self.package is None:
            return None
        return self.configured(configuration_conditions(SpecQuery(name=self.package)))

    @cached_property
    def every(self) -> Set[int]:
        """The specs of `package`, or all specs."""
        if self.among is None:
            return select_ids(self.lookups.conn, EVERY)
        return self.among

    @cached_property
    def edges(self) -> graph.Dependencies:
        """The dependencies of all specs."""
        return graph.Dependencies(self.lookups.conn)

    @cached_property
    def unrecorded(self) -> Set[int]:
        """The specs without a record, which only pages list."""
        conn = self.lookups.conn
        if self.among is None:
            return self.lookups.once(UNRECORDED, lambda: select_ids(conn, UNRECORDED))
        recorded = graph.recorded_specs(conn, self.among)
        return self.among - set(recorded)

    @cached_property
    def with_compiler(self) -> Set[int]:
        """The specs whose record names one compiler: those from before Spack 1.0."""
        return self._with_node(select_ids(self.lookups.conn, WITH_COMPILER))

    @cached_property
    def without_virtuals(self) -> Set[int]:
        """The specs whose record lacks the virtual packages that its dependencies
        provide.
        """
        mirrors = self._mirrors_without_virtuals
        if not mirrors:
            return NONE
        return {record.spec for record in self._records if record.mirror in mirrors}

    @cached_property
    def has_virtuals(self) -> bool:
        """Whether any index has the virtual packages that dependencies provide."""
        mirrors = select_ids(self.lookups.conn, MIRRORS)
        return not mirrors <= self._mirrors_without_virtuals

    def is_virtual(self, name: str) -> bool:
        """Return whether a name is a virtual package, and not a package of the
        database.
        """
        if name in self.lookups.packages:
            return False
        # Spack's own virtual packages, those of records, and those of package data.
        return (
            name in VIRTUALS
            or name in self.edges.virtuals
            or name in self.lookups.providers
        )

    def configured(self, conditions: Conditions) -> Set[int]:
        """Return the specs of configurations that satisfy conditions on words, whether
        they are binaries or not.
        """
        ids = configuration_ids(self.lookups, conditions, every=True)
        return specs_of_configurations(self.lookups.conn, ids)

    def with_namespace(self, namespace: str) -> Set[int]:
        """Return the specs whose recipe is of a namespace."""
        nodes = select(self.lookups.conn, PARAMETERS)
        return self._with_node({node for node, name, _ in nodes if name == namespace})

    def with_parameters(
        self, is_satisfied_by: Callable[[Mapping[str, Any]], bool]
    ) -> Set[int]:
        """Return the specs whose parameters satisfy a function.

        Parameters are variants and flags: `{"mpi": True, "cflags": ["-O2"]}`.
        """
        satisfying = set()
        for node, _, text in select(self.lookups.conn, PARAMETERS):
            if is_satisfied_by(stored_json(text)):
                satisfying.add(node)
        return self._with_node(satisfying)

    def _with_node(self, nodes: Set[int]) -> Set[int]:
        """Return the specs whose record is one of these nodes."""
        if not nodes:
            return NONE
        return {record.spec for record in self._records if record.node in nodes}

    @cached_property
    def _records(self) -> list[Record]:
        """The record that counts of each spec."""
        conn = self.lookups.conn
        if self.among is None:
            rows = select(conn, FIRST_RECORDS)
        else:
            rows = select_in(conn, FIRST_RECORDS_OF, self.among)
        return [Record._make(row) for row in rows]

    @cached_property
    def _mirrors_without_virtuals(self) -> Set[int]:
        return select_ids(self.lookups.conn, WITHOUT_VIRTUALS)
