"""What charts show.

Counts are never negative. A `path` is an address on this site, such as `/package/hdf5`,
without the base of the site; None if there is no page.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Value:
    """A count with its name: `Value("zen3", 120, "/packages?target=zen3")`."""

    name: str
    count: int
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A count on a day; the chosen one stands out."""

    day: date
    count: int
    path: str | None = None
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What was gained and lost until a day, since the day of the step before."""

    day: date
    gained: int
    lost: int
    path: str | None = None
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What a name, such as a stack, has now, and has gained and lost."""

    name: str
    count: int
    gained: int
    lost: int
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole; `kind` is a class of `parts.css`: good, data, pale, warning or
    gone.
    """

    name: str
    count: int
    kind: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A day with a name above the months of a timeline, such as a release of Spack."""

    day: date
    name: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """The days of a timeline, the first and the last included, and its marks."""

    first: date
    last: date
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Life:
    """The days on which something was there.

    Attributes:
        runs: the first and the last day of each time without a gap, the oldest first.
        words: the same for people, such as `since 4 Oct`.
        is_gone: whether it is not there any more; its bars are pale.
    """

    runs: tuple[tuple[date, date], ...]
    words: str
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a heat map.

    Attributes:
        name: the heading, such as `neoverse v2`.
        note: a second line, such as `Grace, Graviton4`.
        short: the heading on a phone, such as `nv2`; empty if it is the name.
        is_chosen: whether the column stands out.
    """

    name: str
    note: str = ""
    short: str = ""
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A count in a heat map; the chosen one has a frame."""

    count: int
    path: str | None = None
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a timeline or a heat map, with one cell for each column."""

    name: str
    path: str | None = None
    life: Life | None = None
    cells: tuple[Cell, ...] = ()
