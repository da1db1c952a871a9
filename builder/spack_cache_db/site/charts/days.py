"""The axis of days below a chart: which months have a label, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from markupsafe import Markup

from spack_cache_db.site.charts.markup import element, percent
from spack_cache_db.site.names_for_people import MONTHS, day_words

MOST_LABELS = 12
"""Labels below a chart that can be read on a phone."""
LEAST_APART = 0.07
"""The least distance of two labels, as a share of the width."""
_STEPS = (1, 2, 3, 6, 12)
"""Months from one label to the next; then twice as many, until they fit."""


class Label(NamedTuple):
    """A text below a chart, at a share of its width."""

    at: float
    text: str


def month_starts(first: date, last: date) -> list[date]:
    """Return the first days of months between two days, in steps that leave at most
    `MOST_LABELS` of them.
    """
    # Count months since year 0, so that steps of 12 begin in January.
    from_month = first.year * 12 + first.month - 1
    to_month = last.year * 12 + last.month - 1
    if first.day > 1:
        from_month += 1
    step = _step(to_month - from_month + 1)
    start = -(-from_month // step) * step
    return [
        date(month // 12, month % 12 + 1, 1)
        for month in range(start, to_month + 1, step)
    ]


def _step(months: int) -> int:
    """Return the months from one label to the next."""
    for step in _STEPS:
        if months <= step * MOST_LABELS:
            return step
    step = _STEPS[-1]
    while months > step * MOST_LABELS:
        step *= 2
    return step


def month_labels(first: date, last: date) -> list[Label]:
    """Return the labels of an axis on which each day has the same width.

    Without the start of a month between them, the first and the last day are the
    labels.
    """
    labels = [
        Label(position(day, first, last), _month_words(day))
        for day in month_starts(first, last)
    ]
    return spaced(labels) or _ends(first, last)


def column_labels(days: Sequence[date]) -> list[Label]:
    """Return the labels of an axis on which each of the days has a column: the first
    column of a month has its label.
    """
    labels = []
    for start in month_starts(days[0], days[-1]):
        column = next(index for index, day in enumerate(days) if day >= start)
        labels.append(Label((column + 0.5) / len(days), _month_words(start)))
    return spaced(labels) or _ends(days[0], days[-1])


def position(day: date, first: date, last: date) -> float:
    """Return the place of a day between two others: 0 to 1, or 0.5 if these are one."""
    length = (last - first).days
    return (day - first).days / length if length else 0.5


def spaced(labels: Iterable[Label]) -> list[Label]:
    """Return the labels that have room beside those before them."""
    shown: list[Label] = []
    for label in labels:
        if not shown or label.at - shown[-1].at >= LEAST_APART:
            shown.append(label)
    return shown


def axis(labels: Iterable[Label]) -> Markup:
    """Return a line of labels below a chart.

    Their texts keep their size, because the drawing has no `viewBox`.
    """
    texts = []
    for label in labels:
        at = percent(label.at)
        anchor = anchor_of(label.at)
        texts.append(element("text", label.text, x=at, y="75%", text_anchor=anchor))
    return element(
        "svg", *texts, class_="axis", width="100%", height="20", aria_hidden="true"
    )


def anchor_of(at: float) -> str:
    """Return which side of a text is at its place: its middle, unless an end of the
    chart would cut it off.
    """
    if at < LEAST_APART / 2:
        return "start"
    return "end" if at > 1 - LEAST_APART / 2 else "middle"


def _month_words(start: date) -> str:
    """Return `Feb`, or the year instead of January."""
    return str(start.year) if start.month == 1 else MONTHS[start.month - 1]


def _ends(first: date, last: date) -> list[Label]:
    """Return the first and the last day, or the one that is both."""
    if first == last:
        return [Label(0.5, day_words(first))]
    return [Label(0, day_words(first)), Label(1, day_words(last))]
