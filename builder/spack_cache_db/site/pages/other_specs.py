"""The other specs of a configuration, and in what each of them differs from one."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from spack_cache_db.query.dependencies.look_alikes import Differences, differences
from spack_cache_db.query.dependencies.needs import Needs
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.open import select

MOST_OTHERS = 100
"""So many specs of the same configuration stand on one page."""
MOST_NODES = 2_000
"""So many specs are read, at most, to compare what they need."""

OTHERS = """
SELECT specs.id, specs.hash, specs.release_count, specs.last_seen FROM specs
WHERE specs.configuration = :configuration AND specs.hash != :hash AND specs.release_count > 0
ORDER BY specs.id LIMIT :limit OFFSET :offset
"""

Row = tuple[str, int, str | None]
"""Hash, number of releases, and last day of a spec."""


@dataclass(frozen=True, slots=True)
class OtherSpec:
    """Another spec of the same configuration; `differences` is None where they are not known."""

    hash: str
    release_count: int
    last_seen: str | None
    differences: Differences | None


def read_others(
    conn: sqlite3.Connection, configuration: int, dag_hash: str, page: int
) -> dict[int, Row]:
    """Return one page of the other binaries of a configuration, by their ids: the current first."""
    window = {"limit": MOST_OTHERS, "offset": (page - 1) * MOST_OTHERS}
    rows = select(conn, OTHERS, configuration=configuration, hash=dag_hash, **window)
    return {key: (dag, count, last) for key, dag, count, last in rows}


def compared(
    conn: sqlite3.Connection,
    lookups: Lookups,
    graph: Needs,
    spec: int,
    others: Mapping[int, Row],
) -> tuple[OtherSpec, ...]:
    """Return the others with in what each differs from a spec, as far as the graph has both."""
    known = [each for each in others if each in graph.edges] if spec in graph.edges else []
    found = differences(conn, lookups, graph, spec, known)
    return tuple(OtherSpec(*row, differences=found.get(key)) for key, row in others.items())
