"""The columns by which a search can be narrowed, each with its most frequent values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from spack_cache_db.query.match.selection import ResultSet
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.schema.tables import ID_COLUMNS
from spack_cache_db.site.filters import LABELS, most_first
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery

FACETS = {"package": "name", "os": "os", "target": "target"}
"""Columns that narrow a search, and their parts of a spec; a compiler may be a
dependency.
"""
MOST_VALUES = 8
"""Limit of the values of a column that the page offers."""


class FacetValue(NamedTuple):
    """A value of a column, the search that asks for it, and its number of
    configurations.
    """

    name: str
    search: str
    configurations: int


class Facet(NamedTuple):
    """The most frequent values of one column, and the number of all its values."""

    label: str
    values: tuple[FacetValue, ...]
    value_count: int

    @property
    def more(self) -> int:
        """The number of values that are not shown."""
        return self.value_count - len(self.values)


def facets_of(
    lookups: Lookups, results: ResultSet, query: SpecQuery, words: Sequence[str]
) -> tuple[Facet, ...]:
    """Return the columns in which results differ, except those that the query has.

    Each value has a search text: the query and the words, with the value added.
    """
    facets = []
    for column, part in FACETS.items():
        if getattr(query, part) is not None:
            continue
        names = lookups.words[column]
        keys = lookups.column("configurations", ID_COLUMNS[column])
        # Count by the ids of names, because there are many results and few names.
        counts_of_ids = Counter([keys[key] for key in results.ids])
        counts = most_first({names[key]: n for key, n in counts_of_ids.items()})
        if len(counts) < 2:
            continue
        values = []
        for name, count in counts[:MOST_VALUES]:
            narrower = replace(query, **{part: name})  # type: ignore[arg-type]
            search = " ".join((spec_text(narrower), *words))
            values.append(FacetValue(name, search, count))
        facets.append(Facet(LABELS[column], tuple(values), len(counts)))
    return tuple(facets)
