"""Small charts as SVG, drawn on the server: no script, readable without colour.

Geometry only; the templates write the elements, so that every text is escaped in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 720.0
HEIGHT = 120.0


@dataclass(frozen=True, slots=True)
class UprightBar:
    """One upright bar: where it stands and what it says."""

    name: str
    count: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class ColumnChart:
    """A chart of upright bars and the number at the top of its scale."""

    columns: tuple[UprightBar, ...]
    top: int
    width: float = WIDTH
    height: float = HEIGHT


@dataclass(frozen=True, slots=True)
class Bar:
    """One lying bar: its length as a share of the longest, in percent."""

    name: str
    count: int
    share: float


def column_chart(counts: Sequence[tuple[str, int]]) -> ColumnChart:
    """Return the layout of upright bars, one for each pair of name and count."""
    top = max((count for _, count in counts), default=0)
    step = WIDTH / max(len(counts), 1)
    gap = min(step * 0.2, 6.0)
    laid = []
    for place, (name, count) in enumerate(counts):
        height = round(HEIGHT * count / top, 1) if top else 0.0
        x, y = round(place * step + gap / 2, 2), round(HEIGHT - height, 1)
        laid.append(UprightBar(name, count, x, y, round(step - gap, 2), height))
    return ColumnChart(tuple(laid), top)


def bar_chart(counts: Sequence[tuple[str, int]]) -> tuple[Bar, ...]:
    """Return the layout of lying bars, one for each pair of name and count."""
    top = max((count for _, count in counts), default=0)
    return tuple(
        Bar(name, count, round(100 * count / top, 1) if top else 0.0) for name, count in counts
    )
