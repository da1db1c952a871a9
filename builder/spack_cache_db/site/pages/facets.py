"""What the rows of a search can be narrowed to, each with the search that does it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from spack_cache_db.query.answers import ResultSet
from spack_cache_db.query.connection import select_in
from spack_cache_db.query.lookups import Lookups
from spack_cache_db.site.pages.filters import LABELS
from spack_cache_db.spack.constraints import SpecQuery, spec_text

VALUES = """
SELECT {column}, count(*) FROM configurations
WHERE id IN (SELECT value FROM json_each(:ids)) GROUP BY {column}
"""
FACETS = ("package", "os", "target")
"""The columns whose values a spec can ask for in every file; a compiler is a dependency in some."""
MOST_VALUES = 8


@dataclass(frozen=True, slots=True)
class Facet:
    """Some values of one column, with the most rows first.

    Attributes:
        values: of each its name, what to search for, and how many configurations that finds.
        value_count: how many values there are in all.
    """

    label: str
    values: tuple[tuple[str, str, int], ...]
    value_count: int


def facets_of(
    conn: sqlite3.Connection, lookups: Lookups, results: ResultSet, query: SpecQuery
) -> tuple[Facet, ...]:
    """Return what the results of a query differ in, as far as the query does not ask for it."""
    words = asked_words(results)
    return tuple(_facets(conn, lookups, results.ids, query, words))


def _asking(query: SpecQuery, column: str, value: str | None) -> SpecQuery:
    """Return a query that asks for a value of a column, None for any."""
    if column == "package":
        return replace(query, name=value)
    return replace(query, os=value) if column == "os" else replace(query, target=value)


def asked_words(results: ResultSet) -> str:
    """Return the words that are looked for beside the query."""
    return next((each.text for each in results.conditions if each.kind == "words"), "")


def _facets(
    conn: sqlite3.Connection, lookups: Lookups, ids: list[int], query: SpecQuery, words: str
) -> Iterator[Facet]:
    for column in FACETS:
        if _asking(query, column, None) != query:
            continue
        counts: Counter[str] = Counter()
        for key, count in select_in(conn, VALUES.format(column=column), ids):
            counts[lookups.words[column][key]] += count
        if len(counts) > 1:
            found = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
            values = tuple(
                (value, f"{spec_text(_asking(query, column, value))} {words}".strip(), count)
                for value, count in found[:MOST_VALUES]
            )
            yield Facet(LABELS[column], values, len(found))
