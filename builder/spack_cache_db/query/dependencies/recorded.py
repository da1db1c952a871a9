"""What records of indexes say of specs beyond their configurations and their edges.

Where several indexes have a record of a spec, the first of them counts: mirrors are numbered by
release, then path. A spec that pages alone tell of has no record.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from spack_cache_db.query.open import select, select_in

ANY_RECORD = "SELECT 1 FROM records LIMIT 1"
SPECS = "SELECT id FROM specs"
UNRECORDED = """
SELECT id FROM specs WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.spec = specs.id)
"""
UNRECORDED_OF = """
SELECT value FROM json_each(:ids)
WHERE NOT EXISTS (SELECT 1 FROM records WHERE records.spec = value)
"""
# SQLite takes the other columns from the row that has the minimum ("SELECT", 2.5).
FIRST_RECORDS = "SELECT spec, node, min(mirror) FROM records GROUP BY spec"
FIRST_RECORDS_OF = """
SELECT spec, node, min(mirror) FROM records
WHERE spec IN (SELECT value FROM json_each(:ids)) GROUP BY spec
"""
NODES = "SELECT id, namespace, parameters FROM nodes"
ORIGINS = "SELECT id, external IS NOT NULL, rest FROM nodes"
WITHOUT_EDGES = """
SELECT value FROM json_each(:ids)
WHERE NOT EXISTS (SELECT 1 FROM dependencies WHERE dependencies.spec = value)
"""
MIRRORS = "SELECT id FROM mirrors"
# Before database 7 and specfile 4, edges had no virtuals; spec files of layout 2 are of any.
WITHOUT_VIRTUALS = """
SELECT id FROM mirrors
WHERE format IN ('5', '6', 'spec file 1', 'spec file 2', 'spec file 3')
  OR format = 'spec files, layout 2' AND NOT EXISTS (
    SELECT 1 FROM records
    JOIN dependencies ON dependencies.spec = records.spec
    JOIN dependency_virtuals ON dependency_virtuals.id = dependencies.virtuals
    WHERE records.mirror = mirrors.id AND dependency_virtuals.virtuals <> '')
"""

EDGES_NAME_COMPILERS = 5
"""The specfile since which a compiler is a dependency (Spack 1.0); before, a node named one."""


def has_records(conn: sqlite3.Connection) -> bool:
    """Return whether a file was built from an index, at least in part."""
    return next(select(conn, ANY_RECORD), None) is not None


class Node(NamedTuple):
    """What a node says of a spec beside its configuration: see the table `nodes`."""

    namespace: str
    parameters: Mapping[str, Any]


@dataclass
class Recorded:
    """The records of a file, each read when it is first asked for; `among`: of these specs only."""

    conn: sqlite3.Connection
    among: Set[int] | None = None

    @cached_property
    def every(self) -> Set[int]:
        """All specs that are asked about."""
        if self.among is not None:
            return self.among
        return frozenset(chain.from_iterable(select(self.conn, SPECS)))

    @cached_property
    def unrecorded(self) -> frozenset[int]:
        """The specs that have no record: pages alone tell of them."""
        if self.among is not None:
            rows = select_in(self.conn, UNRECORDED_OF, self.among)
        else:
            rows = select(self.conn, UNRECORDED)
        return frozenset(chain.from_iterable(rows))

    @cached_property
    def old(self) -> frozenset[int]:
        """The recorded specs of before Spack 1.0, which name one compiler."""
        return self._with_node({key for key, _, is_old in self._origins if is_old})

    @cached_property
    def by_compiler(self) -> frozenset[int]:
        """The recorded specs of which `%` asks for the one compiler that they name.

        Beside the old ones, these are externals without dependencies (Spack 1.1 `Spec.satisfies`).
        """
        external = {key for key, is_external, is_old in self._origins if is_external and not is_old}
        alone = select_in(self.conn, WITHOUT_EDGES, self._with_node(external))
        return self.old.union(chain.from_iterable(alone))

    @cached_property
    def without_virtuals(self) -> frozenset[int]:
        """The recorded specs of whose edges nothing says which virtual packages they provide."""
        if not self._mute:
            return frozenset()
        return frozenset(spec for spec, _, mirror in self._first() if mirror in self._mute)

    @cached_property
    def tells_virtuals(self) -> bool:
        """Whether some index of the file says which virtual packages its edges provide."""
        return any(row[0] not in self._mute for row in select(self.conn, MIRRORS))

    def with_node(self, is_as_asked: Callable[[Node], bool]) -> frozenset[int]:
        """Return the specs whose node is as asked."""
        nodes = select(self.conn, NODES)
        return self._with_node(
            {
                key
                for key, namespace, parameters in nodes
                if is_as_asked(Node(namespace, json.loads(parameters)))
            }
        )

    @cached_property
    def _origins(self) -> list[tuple[int, bool, bool]]:
        """Of each node its id, whether it is an external, and whether it is of before Spack 1.0."""
        specfile = lru_cache(maxsize=None)(_specfile)
        return [
            (key, bool(is_external), specfile(rest) < EDGES_NAME_COMPILERS)
            for key, is_external, rest in select(self.conn, ORIGINS)
        ]

    @cached_property
    def _mute(self) -> frozenset[int]:
        return frozenset(chain.from_iterable(select(self.conn, WITHOUT_VIRTUALS)))

    def _with_node(self, nodes: set[int]) -> frozenset[int]:
        if not nodes:
            return frozenset()
        return frozenset(spec for spec, node, _ in self._first() if node in nodes)

    def _first(self) -> Iterator[tuple[int, int, int]]:
        """Yield of each spec its first record: spec, node, mirror."""
        if self.among is not None:
            yield from select_in(self.conn, FIRST_RECORDS_OF, self.among)
        else:
            yield from select(self.conn, FIRST_RECORDS)


def _specfile(rest: str) -> int:
    """Return the specfile version that a node was made with, 0 for one of before version 5."""
    annotations = json.loads(rest).get("annotations", {})
    return int(annotations.get("original_specfile_version", 0))
