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
    stored = _value(merged, difference.column, difference.stored)
    column = difference.column
    what = differing(said, stored) if column == "configuration" else f"{said}, not {stored}"
    message = f"the spec {dag_hash} has another {column} here than in {other}: {what}"
    return Problem(f"two_{column}s", message, json.dumps(said))


def differing(said: dict[str, Any], stored: dict[str, Any]) -> str:
    """Return in words in what two configurations differ, with what each says."""
    return "; ".join(
        f"{column} {_words(said[column], stored[column])}, not {_words(stored[column], value)}"
        for column, value in said.items()
        if value != stored[column]
    )


def _words(value: Any, other: Any) -> str:
    """Return a value; of variants, those that the other does not have."""
    if not isinstance(value, tuple):
        return str(value)
    return " ".join(each for each in value if each not in other) or "without"


def edge_contradictions(merged: Merged) -> list[tuple[int, Problem]]:
    """Return (document, problem) where one says otherwise of a spec's dependencies than another.

    `declared` has its edges: the hash of each, and how it is used.
    """
    texts, (records, edges) = merged.texts, merged.odd
    said: dict[tuple[int, ...], list[list[Any]]] = {
        key: [] for key in rows_of(records.document, records.spec)
    }
    for document, spec, dependency, use in rows_of(*edges):
        edge = [texts.hashes.things[dependency], *texts.uses.things[use]]
        said[document, spec].append(edge)
    found = []
    for (document, spec), declared in said.items():
        message = f"the spec {texts.hashes.things[spec]} has other dependencies here"
        problem = Problem("two_dependencies", message, json.dumps(sorted(declared)))
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
