"""Packages found by what they are for: the words of their names and descriptions, stemmed."""

from __future__ import annotations

import re
import sqlite3
from math import log1p
from typing import NamedTuple

from spack_cache_db.errors import printable
from spack_cache_db.query.connection import select, select_in

# A word of the name counts as much as several of the description.
_WITH_WORD = """
SELECT known_packages.id, known_packages.name, bm25(known_packages_fts, 4.0, 1.0),
  known_packages.dependent_count
FROM known_packages_fts JOIN known_packages ON known_packages.id = known_packages_fts.rowid
WHERE known_packages_fts MATCH :match
"""
_FOUND = """
SELECT known_packages.id, known_packages.name, known_packages.description,
  coalesce(packages.spec_count, 0)
FROM known_packages LEFT JOIN packages ON packages.name = known_packages.name
WHERE known_packages.id IN (SELECT value FROM json_each(:ids))
"""

_EVERY_WORD = 8.0
"""What it is worth to have all the words: as much as a rare one."""
_NAME = 20.0
"""What it is worth to be called so, and nothing else."""
_DEPENDENTS = 1.2
"""What the logarithm of the number of dependents is worth: more people look for what many use."""

_WORD = re.compile(r"\w+")
_SMALL = frozenset(("a", "an", "and", "for", "from", "in", "of", "on", "or", "the", "to", "with"))
MOST_WORDS = 12


class DescribedPackage(NamedTuple):
    """A package, the beginning of its description as one printable line, and its binaries."""

    name: str
    summary: str
    spec_count: int


def described_packages(conn: sqlite3.Connection, text: str, limit: int) -> list[DescribedPackage]:
    """Return the packages whose name or description has most words of a text, the best first.

    Only package data has descriptions: without it, nothing is found.
    """
    words = [*dict.fromkeys(_WORD.findall(text.lower()))]
    words = [each for each in words if each not in _SMALL][:MOST_WORDS]
    scores: dict[int, float] = {}
    for word in words:
        for key, name, rank, dependents in select(conn, _WITH_WORD, match=f'"{word}"'):
            if key not in scores:
                scores[key] = _DEPENDENTS * log1p(dependents)
            # What is better has a lower rank (SQLite FTS5 docs, 5.1.1).
            scores[key] += _EVERY_WORD / len(words) - rank + _NAME * (name == word)
    best = sorted(scores, key=lambda key: (-scores[key], key))[:limit]
    found = {key: row for key, *row in select_in(conn, _FOUND, best)}
    return [
        DescribedPackage(name, summary_of(description or ""), count)
        for name, description, count in (found[key] for key in best)
    ]


def summary_of(description: str) -> str:
    """Return the first sentence of a description, or of a long one its beginning."""
    text = printable(" ".join(description.split()))
    first = re.split(r"(?<=[.!?]) ", text, maxsplit=1)[0]
    return first if len(first) <= 160 else f"{first[:157].rstrip()}..."
