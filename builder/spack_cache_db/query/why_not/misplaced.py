"""Conditions that stand behind a compiler, and are meant for the package."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from spack_cache_db.query.answerable import UnsupportedQuery
from spack_cache_db.query.conditions import asked_of
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.intersection import UnsatisfiableSpec, constrained


def corrected(conn: sqlite3.Connection, query: SpecQuery) -> str | None:
    """Return a query with the conditions that follow a compiler asked of the package itself.

    After `%gcc` Spack asks everything of gcc, which is seldom meant.

    Returns:
        The spec to type; None where nothing stands there, or pages could not answer it either.
    """
    moved = replace(query, dependencies=())
    edges = []
    try:
        for edge in query.dependencies:
            bare = SpecQuery(name=edge.node.name, versions=edge.node.versions)
            own = replace(edge.node, name=None, versions=None, dependencies=(), text="")
            if edge.direct and own != SpecQuery():
                moved = constrained(moved, own)
                edge = replace(edge, node=bare)
            edges.append(edge)
        found = replace(moved, dependencies=tuple(edges))
        if found.dependencies == query.dependencies:
            return None
        asked_of(conn, found)
    except (UnsatisfiableSpec, UnsupportedQuery):
        return None
    return spec_text(found)
