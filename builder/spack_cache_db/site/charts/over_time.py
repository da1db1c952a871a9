"""Charts of counts over days: a line, columns, and columns of gains and losses.

The marks of a chart have their places in percent, so that it fills any width while
texts, corners and outlines keep their sizes. The title of a mark is its day and count.
If the marks are links, these have the same text as names; otherwise screen readers
get a table. Many columns on a phone are narrower than 24 pixels: a page then needs
another way to what they link to (WCAG 2.2, 2.5.8).
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from spack_cache_db.site.charts.days import (
    Label,
    axis,
    column_labels,
    month_labels,
    position,
)
from spack_cache_db.site.charts.markup import (
    Address,
    bar,
    element,
    hidden_table,
    legend_of,
    linked,
    number,
    percent,
)
from spack_cache_db.site.charts.records import Point, Step
from spack_cache_db.site.names_for_people import day_words

_MARGIN = 0.04
"""The share of a line chart at each edge that keeps dots whole."""
_GAP = 0.2
"""The share of a column's width that is between two columns."""


def columns(address: Address, title: str, points: Sequence[Point], unit: str) -> Markup:
    """Return a column for each point, from 0 up; nothing without points.

    Args:
        address: returns the address of a path.
        title: the name of the chart, such as `Binaries in each snapshot`.
        points: the counts, the oldest first.
        unit: what is counted, such as `binaries`.
    """
    if not points:
        return Markup()
    top = max(point.count for point in points)
    marks = []
    for index, point in enumerate(points):
        left, right = _edges(index, len(points))
        height = point.count / (top or 1)
        kind = "data chosen" if point.is_chosen else "data"
        words = f"{day_words(point.day)}: {number(point.count)} {unit}"
        column = bar(left, right, 1 - height, 1, kind)
        marks.append(_mark(address, point.path, words, _hit(left, right), column))
    return _figure(
        title,
        marks,
        column_labels([point.day for point in points]),
        (number(top), "0"),
        table=_counts_table(title, points, unit),
        has_links=_has_links(points),
    )


def diverging_columns(
    address: Address, title: str, steps: Sequence[Step], words: tuple[str, str]
) -> Markup:
    """Return a column up for each gain and one down for each loss; nothing without
    steps.

    `words` are the names of both, such as `("new", "gone")`, for the legend.
    """
    if not steps:
        return Markup()
    # Gains and losses have one scale.
    top = max(step.gained for step in steps)
    bottom = max(step.lost for step in steps)
    height = top + bottom or 1
    zero = top / height if top or bottom else 0.5
    gained_word, lost_word = words
    marks = []
    for index, step in enumerate(steps):
        left, right = _edges(index, len(steps))
        chosen = " chosen" if step.is_chosen else ""
        gained = bar(left, right, zero - step.gained / height, zero, f"data{chosen}")
        lost = bar(left, right, zero, zero + step.lost / height, f"gone{chosen}")
        text = (
            f"{day_words(step.day)}: {number(step.gained)} {gained_word}, "
            f"{number(step.lost)} {lost_word}"
        )
        marks.append(_mark(address, step.path, text, _hit(left, right), gained, lost))
    # The line between gains and losses.
    marks.append(_level(zero))
    rows = [
        (day_words(step.day), number(step.gained), number(step.lost)) for step in steps
    ]
    headings = ("Day", gained_word, lost_word)
    legend = [("data", gained_word), ("gone", lost_word)]
    return _figure(
        title,
        marks,
        column_labels([step.day for step in steps]),
        (number(top), number(bottom)),
        table=None if _is_linked(steps) else hidden_table(title, headings, rows),
        has_links=_has_links(steps),
        caption=legend_of(legend),
        kind="chart diverging",
    )


def line(address: Address, title: str, points: Sequence[Point], unit: str) -> Markup:
    """Return a line through the points, each at its day; nothing without points.

    The scale goes from the least to the greatest count, rounded, and is not from 0: it
    shows how a count changes. Arguments are those of `columns`.
    """
    if not points:
        return Markup()
    counts = [point.count for point in points]
    low, high = rounded_range(min(counts), max(counts))
    first = points[0].day
    last = points[-1].day
    places = []
    for point in points:
        x = _MARGIN / 4 + position(point.day, first, last) * (1 - _MARGIN / 2)
        y = _MARGIN + (high - point.count) / (high - low) * (1 - 2 * _MARGIN)
        places.append((x, y))

    # The line is stretched with the chart; its stroke and the dots are not.
    corners = " ".join(f"{100 * x:.2f},{100 * y:.2f}" for x, y in places)
    stroke = element(
        "svg",
        element("polyline", points=corners, vector_effect="non-scaling-stroke"),
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
    )
    marks = [_level(_MARGIN), _level(1 - _MARGIN), stroke]
    for point, (x, y) in zip(points, places, strict=True):
        kind = "data chosen" if point.is_chosen else "data"
        words = f"{day_words(point.day)}: {number(point.count)} {unit}"
        radius = "5" if point.is_chosen else "3"
        dot = element("circle", cx=percent(x), cy=percent(y), r=radius, class_=kind)
        marks.append(_mark(address, point.path, words, dot))
    return _figure(
        title,
        marks,
        month_labels(first, last),
        (number(high), number(low)),
        table=_counts_table(title, points, unit),
        has_links=_has_links(points),
        kind="chart line",
    )


def rounded_range(low: int, high: int) -> tuple[int, int]:
    """Return two round numbers around two counts, the first less than the second.

    >>> rounded_range(11_843, 12_340)
    (11800, 12400)
    """
    step = 10 ** (len(str(max(high - low, 1))) - 1)
    below = low // step * step
    above = -(-high // step) * step
    return below, max(above, below + step)


def _edges(index: int, count: int) -> tuple[float, float]:
    """Return the left and the right edge of a column, as shares of the width."""
    half_gap = _GAP / count / 2
    return index / count + half_gap, (index + 1) / count - half_gap


def _hit(left: float, right: float) -> Markup:
    """Return what can be pressed at a column: all of the chart's height."""
    return bar(left, right, 0, 1, "hit")


def _level(height: float) -> Markup:
    """Return a horizontal line through the chart."""
    at = percent(height)
    return element("line", x1="0", x2="100%", y1=at, y2=at, class_="level")


def _mark(address: Address, path: str | None, words: str, *shapes: Markup) -> Markup:
    """Return the shapes of one day, with their words."""
    named = element("g", element("title", words), *shapes)
    return linked(address, path, named, name=words)


def _is_linked(marks: Sequence[Point] | Sequence[Step]) -> bool:
    """Return whether all marks are links, whose names have all counts."""
    return all(mark.path is not None for mark in marks)


def _has_links(marks: Sequence[Point] | Sequence[Step]) -> bool:
    return any(mark.path is not None for mark in marks)


def _counts_table(title: str, points: Sequence[Point], unit: str) -> Markup | None:
    """Return what screen readers read instead of marks that are not links."""
    if _is_linked(points):
        return None
    rows = [(day_words(point.day), number(point.count)) for point in points]
    return hidden_table(title, ("Day", unit), rows)


def _figure(
    title: str,
    marks: Sequence[Markup],
    labels: Sequence[Label],
    scale: tuple[str, str],
    *,
    table: Markup | None,
    has_links: bool,
    caption: Markup | None = None,
    kind: str = "chart",
) -> Markup:
    """Return a chart with its scale, its days, and a table for screen readers.

    The links of an image are unknown to screen readers: with links, it is a group.
    """
    plot = element(
        "svg",
        *marks,
        class_="plot",
        width="100%",
        height="112",
        role="group" if has_links else "img",
        aria_label=title,
    )
    numbers = [element("span", text) for text in scale]
    return element(
        "figure",
        element("div", *numbers, class_="scale", aria_hidden="true"),
        plot,
        axis(labels),
        element("figcaption", caption) if caption else None,
        table,
        class_=kind,
    )
