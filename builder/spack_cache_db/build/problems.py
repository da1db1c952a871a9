"""Whatever does not add up in documents that are kept, each problem with its document."""

from __future__ import annotations

from operator import itemgetter

from spack_cache_db.build.arrays import rows_of
from spack_cache_db.build.contradictions import differing
from spack_cache_db.build.ids import Numbered
from spack_cache_db.records import Problem


def problems(numbered: Numbered) -> list[tuple[int, Problem]]:
    """Return (place in `Numbered.documents`, problem), in the order of the documents."""
    found = [(at, each) for at, entry in enumerate(numbered.documents) for each in entry.problems]
    odd = numbered.disagreements
    for at, spec, said in rows_of(odd.document, odd.spec, odd.configuration):
        found.append((at, _two_configurations(numbered, spec, said)))
    return sorted([*found, *sorted(numbered.contradictions)], key=itemgetter(0))


def _two_configurations(numbered: Numbered, spec: int, said: int) -> Problem:
    """Return the problem of a listing whose release is not foremost; the file has its word."""
    dag_hash = numbered.hashes[spec - 1]
    message = f"the spec {dag_hash} has another configuration here than in a foremost release"
    if any(each.index_facts for each in numbered.documents):
        stored = numbered.spec_configuration[spec - 1]
        both = (numbered.configurations[at - 1]._asdict() for at in (said, stored))
        message = f"{message}: {differing(*both)}"
    return Problem("two_configurations", message)
