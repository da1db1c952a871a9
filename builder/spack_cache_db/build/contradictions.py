"""What documents say against each other, as problems: whatever is not stored is told."""

from __future__ import annotations

import json
from typing import Any

from spack_cache_db.build.arrays import rows_of
from spack_cache_db.build.fold import Difference
from spack_cache_db.build.listings import Listing
from spack_cache_db.build.merge import Merged
from spack_cache_db.records import Problem
from spack_cache_db.sources.tarballs import tarball_url


def contradiction(merged: Merged, difference: Difference) -> Problem:
    """Return the problem of the document whose word is not stored; `declared` has that word."""
    dag_hash = merged.texts.hashes.things[difference.said.spec]
    other = merged.documents[difference.stored.document].path
    said = _value(merged, difference.column, difference.said)
    code, what = {
        "configuration": ("two_configurations", f"another configuration here than in {other}"),
        "size": ("two_sizes", f"another size here than in {other}"),
        "tarball": ("two_tarballs", f"another tarball here than in {other}"),
    }[difference.column]
    return Problem(code, f"the spec {dag_hash} has {what}", json.dumps(said))


def edge_contradictions(merged: Merged) -> list[tuple[int, Problem]]:
    """Return (document, problem) where one says otherwise of a spec's dependencies than another.

    `declared` has its edges, from hash to how each is used.
    """
    texts, odd = merged.texts, merged.odd_edges
    said: dict[tuple[int, int], list[list[Any]]] = {}
    for document, spec, dependency, use in rows_of(*odd):
        edge = [texts.hashes.things[dependency], *texts.uses.things[use]]
        said.setdefault((document, spec), []).append(edge)
    found = []
    for (document, spec), edges in said.items():
        message = f"the spec {texts.hashes.things[spec]} has other dependencies here"
        problem = Problem("two_dependencies", message, json.dumps(sorted(edges)))
        found.append((document, problem))
    return found


def _value(merged: Merged, column: str, listing: Listing) -> Any:
    texts = merged.texts
    configuration = texts.configurations.things[listing.configuration]
    if column == "configuration":
        return configuration._asdict()
    if column == "size":
        return texts.sizes.things[listing.size - 1]
    tarball = texts.tarballs.things[listing.tarball - 1]
    return tarball_url(tarball, configuration, texts.hashes.things[listing.spec])
