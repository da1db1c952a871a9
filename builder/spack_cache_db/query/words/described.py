"""Finds packages by the words of their descriptions."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from heapq import nsmallest
from math import log1p

from spack_cache_db.query.open.sql import select

_WITH_WORD = """
SELECT known_packages.name, coalesce(description, ''), dependent_count
FROM known_packages_fts JOIN known_packages ON known_packages.id = known_packages_fts.rowid
WHERE known_packages_fts MATCH :match
"""
_USUAL_LENGTH = 170
"""Characters of an average description in Spack."""
_WORD = re.compile(r"[^\W_]+")
_SMALL = frozenset(
    ("a", "an", "and", "for", "from", "in", "of", "on", "or", "the", "to", "with")
)
MOST_WORDS = 12


def described_packages(
    conn: sqlite3.Connection, text: str, limit: int, *, every_word: bool = False
) -> list[str]:
    """Return the packages whose name or description matches words of a text, the best
    first.

    There are none without package data. With `every_word`, only packages with all words
    count.
    """
    words = _searched_words(text)
    ((package_count,),) = select(conn, "SELECT count(*) FROM known_packages")
    scores: dict[str, float] = {}
    found_words = Counter[str]()
    for word in words:
        rows = list(select(conn, _WITH_WORD, match=f'"{word}"'))
        # A word of few descriptions tells more than one of many.
        rarity = log1p((package_count - len(rows) + 0.5) / (len(rows) + 0.5))
        for name, description, dependents in rows:
            found_words[name] += 1
            # Popular packages come first.
            score = scores.get(name, 1.2 * log1p(dependents))
            # All words together are as much as a rare word.
            score += 8 / len(words)
            bonus = 20 if name == word else 0
            score += bonus + rarity * _weight(word, name, description)
            scores[name] = score

    # The highest score first; the name makes the order unique.
    names = list(scores)
    if every_word:
        names = [name for name in names if found_words[name] == len(words)]
    return nsmallest(limit, names, key=lambda name: (-scores[name], name))


def _searched_words(text: str) -> list[str]:
    """Return the first different words of a text, in lower case, without small ones."""
    words = dict.fromkeys(_WORD.findall(text.lower()))
    return [word for word in words if word not in _SMALL][:MOST_WORDS]


def _weight(word: str, name: str, description: str) -> float:
    """Return the score of a word of a package, by Okapi BM25 with its usual constants.

    FTS5's own `bm25` needs an index with positions, which is four times as large.
    """
    # The index ignores endings, so the word itself may not be in the description.
    times = max(1, description.lower().count(word))
    # A word of the name counts as much as several of the description: `solver` and
    # `solvers` are one word.
    stem = word.rstrip("s")
    if stem in name:
        stems_of_name = [part.rstrip("s") for part in name.split("-")]
        if stem in stems_of_name:
            times += 4
    # Long descriptions have more words by chance.
    length = 0.25 + 0.75 * len(description) / _USUAL_LENGTH
    return times * 2.2 / (times + 1.2 * length)
