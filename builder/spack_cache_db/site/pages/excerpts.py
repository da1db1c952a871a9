"""The first rows of the parts of a comparison, with the address of all rows.

A comparison of two snapshots may have a thousand packages. A part of the page shows
the first of them and a link to the same page with all of its rows, such as
`/diff/<old>...<new>?all=rebuilt#rebuilt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from spack_cache_db.site.pages.sides import Sides

MOST_SHOWN = {"lost": 30, "upgraded": 30, "new": 20, "stacks": 12}
"""Limits of the rows of parts."""
MOST_IN_PART = 20
"""Limit of the rows of all other parts."""

Row = TypeVar("Row")
Other = TypeVar("Other")


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[Row]):
    """The first rows of a part, or all.

    Attributes:
        shown: these rows.
        count: the number of all rows.
        path: the address of all rows; `#lost` if the page has them.
    """

    shown: Sequence[Row]
    count: int
    path: str

    @property
    def has_more(self) -> bool:
        """Whether there are rows that are not shown."""
        return len(self.shown) < self.count

    def with_rows(self, shown: Sequence[Other]) -> Excerpt[Other]:
        """Return the same rows as other records."""
        return Excerpt(shown, self.count, self.path)


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Chooses the rows of the parts of a page.

    Attributes:
        sides: the comparison.
        whole: the part of which all rows are shown; None for all parts.
    """

    sides: Sides
    whole: str | None

    def of(self, part: str, rows: Sequence[Row]) -> Excerpt[Row]:
        """Return the rows that a part shows."""
        most = MOST_SHOWN.get(part, MOST_IN_PART)
        if self.whole is None or self.whole == part or len(rows) <= most:
            return Excerpt(rows, len(rows), f"#{part}")
        return Excerpt(rows[:most], len(rows), self.sides.address_of_all(part))
