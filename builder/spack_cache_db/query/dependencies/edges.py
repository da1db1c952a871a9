"""The dependencies of a file, from what is needed to what needs it: sets of ids of specs.

A level of the graph is one statement for each piece of the ids. A recursive statement takes three
times as long, since SQLite keeps the set of what it has seen in a table.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Set
from itertools import chain

from spack_cache_db.query.open import select, select_in

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


class Edges:
    """The edges of a file; `virtuals` are the names of all virtual packages that some provide."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._types = {key: words(text) for key, text in select(conn, TYPES)}
        self._virtuals = {key: words(text) for key, text in select(conn, VIRTUALS)}
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
        more = {"types": _one(types)}
        provided = ""
        if virtuals:
            sets = (key for key, found in self._virtuals.items() if found & virtuals)
            more["virtuals"], provided = _one(sets), PROVIDED
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


def _one(ids: Iterable[int]) -> str:
    """Return ids of a small table as one JSON array."""
    return json.dumps([*ids])


def words(text: str) -> frozenset[str]:
    """Return the types, or the virtual packages, of a row of their tables."""
    return frozenset(filter(None, text.split(",")))
