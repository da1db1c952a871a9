"""Whatever does not add up in documents that are kept, each problem with its document."""

from __future__ import annotations

from operator import itemgetter

from spack_cache_db.build.arrays import rows_of
from spack_cache_db.build.ids import Numbered
from spack_cache_db.records import Problem


def problems(numbered: Numbered) -> list[tuple[int, Problem]]:
    """Return (place in `Numbered.documents`, problem), in the order of the documents."""
    found = [(at, each) for at, entry in enumerate(numbered.documents) for each in entry.problems]
    odd = numbered.disagreements
    for at, spec in rows_of(odd.document, odd.spec):
        found.append((at, _two_configurations(numbered.hashes[spec - 1])))
    return sorted([*found, *sorted(numbered.contradictions)], key=itemgetter(0))


def _two_configurations(dag_hash: str) -> Problem:
    message = f"the spec {dag_hash} has another configuration here than in a foremost release"
    return Problem("two_configurations", message)
