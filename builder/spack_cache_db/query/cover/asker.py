"""Many queries of one file: what they ask beyond configurations is answered once for each wording.

A thousand specs name the same few compilers, and each answer is about all specs of the file.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from spack_cache_db.query.asked import Conditions, beyond_configurations, of_configurations
from spack_cache_db.query.conditions import asked_of
from spack_cache_db.query.dependencies.graph import Graph
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.spack.constraints import SpecQuery, spec_text


class Asker:
    """What queries ask of one file, as `asked_of` says it."""

    def __init__(self, conn: sqlite3.Connection, lookups: Lookups) -> None:
        self._conn = conn
        self._graph = Graph(conn, lookups)
        self._beyond: dict[str, Conditions] = {}

    def asked(self, query: SpecQuery) -> Conditions:
        """Return what a query asks.

        Raises:
            QuerySyntaxError: the condition of a dependency (`when=`) is no spec.
            UnsupportedQuery: the file cannot answer the query.
        """
        beyond = beyond_configurations(query)
        if beyond == SpecQuery():
            return asked_of(self._conn, query)
        text = spec_text(beyond)
        if text not in self._beyond:
            self._beyond[text] = asked_of(self._conn, beyond, self._graph)
        known = self._beyond[text]
        if known.specs is None:
            return asked_of(self._conn, query)
        rest = tuple(each for each in query.variants if each not in beyond.variants)
        own = replace(query, namespace=None, flags=(), dependencies=(), variants=rest)
        return replace(
            asked_of(self._conn, own),
            variants=of_configurations(query).variants,
            specs=known.specs,
            beyond=known.beyond,
            notes=known.notes,
        )
