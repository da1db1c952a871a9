"""Finds packages by the words of their descriptions.

`mesh generator` finds packages whose description has one of the two words, those with
both first. Each package has a score: the sum of the scores of the words that it has, of
a share for each such word, and of points for packages that many others need.
"""

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
"""The packages with a word in their name or description (FTS5), and the number of
packages that depend on them.
"""
# A word is scored by Okapi BM25, whose constants have their usual values.
SATURATION = 1.2
"""The constant k1: a word that occurs often counts little more than one that occurs
twice.
"""
LENGTH_SHARE = 0.75
"""The constant b: three quarters of a score depend on the length of the description."""
USUAL_LENGTH = 170
"""Characters of an average description in Spack."""
TIMES_IN_NAME = 4
"""A word of a package's name counts as if the description had it so many times."""
POINTS_OF_NAME = 20
"""The score of a word that is the whole name."""
POINTS_OF_WORDS = 8
"""The score of all words together: as much as a rare word."""
POINTS_OF_DEPENDENTS = 1.2
"""The score of a package that `e - 1` packages need, as popular ones come first."""
_WORD = re.compile(r"[^\W_]+")
"""Letters and digits."""
_SMALL = frozenset(
    ("a", "an", "and", "for", "from", "in", "of", "on", "or", "the", "to", "with")
)
"""Words that nearly every description has."""
MOST_WORDS = 12
"""Maximum of words of a text that are searched."""


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
        # A word of few descriptions counts more than one of many (BM25).
        rarity = log1p((package_count - len(rows) + 0.5) / (len(rows) + 0.5))
        for name, description, dependents in rows:
            found_words[name] += 1
            if name not in scores:
                scores[name] = POINTS_OF_DEPENDENTS * log1p(dependents)
            scores[name] += POINTS_OF_WORDS / len(words)
            points_of_name = POINTS_OF_NAME if name == word else 0
            points_of_word = rarity * _weight(word, name, description)
            scores[name] += points_of_name + points_of_word

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
    """Return the weight of a word in a name and a description, by Okapi BM25.

    FTS5's own `bm25` needs an index with positions, which is four times as large.
    """
    # The index ignores endings, so the word itself may not be in the description.
    times = max(1, description.lower().count(word))
    # `solver` and `solvers` are one word in a name.
    stem = word.rstrip("s")
    stems_of_name = [part.rstrip("s") for part in name.split("-")]
    if stem in stems_of_name:
        times += TIMES_IN_NAME
    # Long descriptions have more words by chance.
    length = len(description) / USUAL_LENGTH
    norm = (1 - LENGTH_SHARE) + LENGTH_SHARE * length
    return times * (SATURATION + 1) / (times + SATURATION * norm)
