"""What records of indexes say of specs beyond their configurations: nodes and dependencies.

Where several indexes have a record of a spec, the first of them counts: those of the release and
the stack that are asked for, then those of that release, then any; mirrors are numbered by release,
then path. A spec that pages alone tell of has no record.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from spack_cache_db.query.connection import Lookups, select, select_in

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
_FIRST = """
SELECT spec, node, mirror,
  min(((release IS NOT :release) * 2 + (stack IS NOT :stack)) * 1000000000 + mirror)
FROM records CROSS JOIN mirrors ON mirrors.id = mirror
"""
FIRST_RECORDS = f"{_FIRST} GROUP BY spec"
FIRST_RECORDS_OF = f"{_FIRST} WHERE spec IN (SELECT value FROM json_each(:ids)) GROUP BY spec"
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

TYPES = "SELECT id, types FROM dependency_types"
VIRTUALS = "SELECT id, virtuals FROM dependency_virtuals"
RUN_TIME = frozenset(("link", "run"))
NEEDING = """
SELECT dependencies.spec FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.dependency = wanted.value
WHERE types IN (SELECT value FROM json_each(:types))
"""
NEEDED_BY = """
SELECT dependencies.spec, dependency FROM json_each(:ids) AS wanted
CROSS JOIN dependencies ON dependencies.spec = wanted.value
WHERE types IN (SELECT value FROM json_each(:types))
"""
NEEDING_ANY = "SELECT spec FROM dependencies WHERE types IN (SELECT value FROM json_each(:types))"
PROVIDED = "\n  AND virtuals IN (SELECT value FROM json_each(:virtuals))"


# As large as the file: two of them are compared by identity.
@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What is known of a condition; of the specs that are in neither set, it does not hold.

    Attributes:
        holds: the specs that satisfy it.
        unknown: those of which nothing says whether they do.
    """

    holds: Set[int]
    unknown: Set[int] = frozenset()

    def __and__(self, other: Verdict) -> Verdict:
        """Return where both hold."""
        holds = self.holds & other.holds
        return Verdict(holds, (self._possible() & other._possible()) - holds)

    def __or__(self, other: Verdict) -> Verdict:
        """Return where one of them holds."""
        holds = self.holds | other.holds
        return Verdict(holds, (self.unknown | other.unknown) - holds)

    def opposite(self, every: Set[int]) -> Verdict:
        """Return where it does not hold, among `every` spec."""
        return Verdict(every - self.holds - self.unknown, self.unknown)

    def _possible(self) -> Set[int]:
        return self.holds | self.unknown if self.unknown else self.holds


def has_records(conn: sqlite3.Connection) -> bool:
    """Return whether a file was built from an index, at least in part."""
    return next(select(conn, ANY_RECORD), None) is not None


class IndexNode(NamedTuple):
    """What a node says of a spec beside its configuration: see the table `nodes`."""

    namespace: str
    parameters: Mapping[str, Any]


@dataclass
class IndexRecords:
    """The records of a file, each read when it is first asked for.

    Attributes:
        conn: a connection to the file.
        lookups: its small tables, which keep what does not depend on the other three.
        among: of these specs only.
        release: the release whose records count first, by its id.
        stack: the same of a stack.
    """

    conn: sqlite3.Connection
    lookups: Lookups
    among: Set[int] | None = None
    release: int | None = None
    stack: int | None = None

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
            return frozenset(chain.from_iterable(select_in(self.conn, UNRECORDED_OF, self.among)))
        return self.lookups.once(
            UNRECORDED, lambda: frozenset(chain.from_iterable(select(self.conn, UNRECORDED)))
        )

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
        return frozenset(spec for spec, _, mirror, _ in self._first if mirror in self._mute)

    @cached_property
    def tells_virtuals(self) -> bool:
        """Whether some index of the file says which virtual packages its edges provide."""
        return any(row[0] not in self._mute for row in select(self.conn, MIRRORS))

    def with_node(self, is_as_asked: Callable[[IndexNode], bool]) -> frozenset[int]:
        """Return the specs whose node is as asked."""
        nodes = select(self.conn, NODES)
        return self._with_node(
            {
                key
                for key, namespace, parameters in nodes
                if is_as_asked(IndexNode(namespace, json.loads(parameters)))
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

    def _with_node(self, nodes: Set[int]) -> frozenset[int]:
        if not nodes:
            return frozenset()
        return frozenset(spec for spec, node, *_ in self._first if node in nodes)

    @cached_property
    def _first(self) -> list[tuple[Any, ...]]:
        """Of each spec its first record: spec, node, mirror."""
        place = {"release": self.release, "stack": self.stack}
        if self.among is not None:
            return [*select_in(self.conn, FIRST_RECORDS_OF, self.among, **place)]
        return [*select(self.conn, FIRST_RECORDS, **place)]


def _specfile(rest: str) -> int:
    """Return the specfile version that a node was made with, 0 for one of before version 5."""
    annotations = json.loads(rest).get("annotations", {})
    return int(annotations.get("original_specfile_version", 0))


class Dependencies:
    """The dependencies of a file, from what is needed to what needs it: sets of ids of specs.

    A level of the graph is one statement for each piece of the ids. A recursive statement takes
    three times as long, since SQLite keeps the set of what it has seen in a table.

    Attributes:
        virtuals: the names of all virtual packages that some dependency provides.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._types = read_sets(conn, TYPES)
        self._virtuals = read_sets(conn, VIRTUALS)
        self.virtuals = frozenset(chain.from_iterable(self._virtuals.values()))

    def of_any_type(self, types: Iterable[str]) -> list[int]:
        """Return the ids of sets of types that have one of these; a set without any counts.

        Spack 1.1 `spec.py`, `_select_edges`.
        """
        wanted = {*types}
        return [key for key, found in self._types.items() if not found or found & wanted]

    def of_all_types(self, types: Iterable[str]) -> list[int]:
        """Return the ids of sets of types that have all of these."""
        return [key for key, found in self._types.items() if found.issuperset(types)]

    def needing(
        self,
        of: Set[int] | None,
        types: Iterable[int],
        virtuals: Set[str] = frozenset(),
        among: Set[int] | None = None,
    ) -> set[int]:
        """Return the specs that have an edge to one of some specs.

        Args:
            of: what the edge leads to; None for anything.
            types: the ids of the sets of types that it may have.
            virtuals: it provides one of these; any edge will do where there is none.
            among: only specs of these are asked for.
        """
        more = {"types": json.dumps([*types])}
        provided = ""
        if virtuals:
            sets = [key for key, found in self._virtuals.items() if found & virtuals]
            more["virtuals"], provided = json.dumps(sets), PROVIDED
        if among is not None:
            edges = select_in(self._conn, NEEDED_BY + provided, sorted(among), **more)
            return {spec for spec, dependency in edges if of is None or dependency in of}
        if of is None:
            rows = select(self._conn, NEEDING_ANY + provided, **more)
        else:
            rows = select_in(self._conn, NEEDING + provided, sorted(of), **more)
        return set(chain.from_iterable(rows))

    def with_ancestors(self, of: Set[int], types: Iterable[int]) -> set[int]:
        """Return some specs and all that needs them over edges of these types, however far."""
        found, last = set(of), set(of)
        while last:
            last = self.needing(last, types) - found
            found |= last
        return found

    def leading_to(self, of: Set[int], types: Iterable[int], among: Set[int]) -> set[int]:
        """Return those among some specs that `with_ancestors` has, reading fewer edges.

        Edges are followed from both ends, at each step from the fewer specs, until nothing new is
        found at one of them: few specs need much that much else needs as well.
        """
        types = [*types]
        found, upper = set(of), set(of)
        below, lower = set(among), set(among)
        needing: dict[int, list[int]] = {}
        while upper and lower:
            if len(upper) <= len(lower):
                upper = self.needing(upper, types) - found
                found |= upper
                continue
            edges = select_in(self._conn, NEEDED_BY, sorted(lower - found), types=json.dumps(types))
            lower = set()
            for spec, dependency in edges:
                needing.setdefault(dependency, []).append(spec)
                lower.add(dependency)
            lower -= below
            below |= lower
        last = found & below
        while last:
            last = {spec for each in last for spec in needing.get(each, ())} - found
            found |= last
        return found & among


def read_sets(conn: sqlite3.Connection, sql: str) -> dict[int, frozenset[str]]:
    """Return the sets of types (`TYPES`) or of virtual packages (`VIRTUALS`) of dependencies."""
    return {key: frozenset(filter(None, text.split(","))) for key, text in select(conn, sql)}
