"""What documents say against each other, as problems: whatever is not stored is told."""

from __future__ import annotations

import json
from typing import Any

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


def _value(merged: Merged, column: str, listing: Listing) -> Any:
    texts = merged.texts
    configuration = texts.configurations.things[listing.configuration]
    if column == "configuration":
        return configuration._asdict()
    if column == "size":
        return texts.sizes.things[listing.size - 1]
    tarball = texts.tarballs.things[listing.tarball - 1]
    return tarball_url(tarball, configuration, texts.hashes.things[listing.spec])
