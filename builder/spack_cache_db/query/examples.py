"""What one may ask a file for: examples that have an answer there."""

from __future__ import annotations

import json
import sqlite3
from typing import NamedTuple

from spack_cache_db.query.configurations import configurations_by_id
from spack_cache_db.query.install import EXAMPLES
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.query.open import select
from spack_cache_db.records import Configuration

VARIANTS = ("+mpi", "+cuda", "+shared")
"""Variants that many know, the best known first."""

OF_PACKAGE = """
SELECT configurations.id FROM json_each(:names) AS wanted
CROSS JOIN packages ON packages.name = wanted.value
CROSS JOIN configurations
  ON configurations.package = packages.id AND configurations.spec_count > 0
ORDER BY wanted.key, configurations.spec_count DESC, configurations.id LIMIT 200
"""
LARGEST = """
SELECT id FROM configurations WHERE spec_count > 0 ORDER BY spec_count DESC, id LIMIT 1
"""


class Examples(NamedTuple):
    """Queries in Spack's syntax: a package, a compiler for a target, and both in one."""

    package: str
    platform: str
    whole: str


def read_examples(conn: sqlite3.Connection, lookups: Lookups) -> Examples | None:
    """Return queries that find something; None where there is nothing to be found."""
    ids = [key for (key,) in select(conn, OF_PACKAGE, names=json.dumps(EXAMPLES))]
    ids = ids or [key for (key,) in select(conn, LARGEST)]
    found = [each.configuration for each in configurations_by_id(conn, lookups, ids)]
    if not found:
        return None
    one = min((each for each in found if each.package == found[0].package), key=_known)
    compiler, _, version = one.compiler.partition("@")
    major = version.partition(".")[0]
    target = f"target={one.target}"
    package = " ".join([one.package, *VARIANTS[_known(one) :][:1]])
    built_by = [f"%{compiler}@{major}"] if major else []
    return Examples(package, " ".join([target, *built_by]), f"{package} {target}")


def _known(each: Configuration) -> int:
    """Return how well-known the best of its variants is: 0 for the best known."""
    places = (place for place, text in enumerate(VARIANTS) if text in each.variants)
    return next(places, len(VARIANTS))
