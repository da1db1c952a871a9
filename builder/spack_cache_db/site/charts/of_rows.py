"""The chart of a canned query, as its metadata describe it.

`chart: {kind: line, x: date, y: spec_count}` draws a line through the days in the
column `date`; `bars` draws a bar for each name in the column `x`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from math import isfinite
from typing import Any

from markupsafe import Markup

from spack_cache_db.site.charts.bars import bars
from spack_cache_db.site.charts.markup import Address, element
from spack_cache_db.site.charts.over_time import line
from spack_cache_db.site.charts.records import Point, Value

MOST_BARS = 20
"""Bars of a chart; the rows below it have all values."""
_UNITS = {
    "spec_count": "binaries",
    "package_count": "packages",
    "version_count": "versions",
    "needed_by": "binaries that need it",
}
"""What columns count, in words for people; of others, the name is the unit."""


def of_rows(
    address: Address,
    query: Mapping[str, Any] | str | None,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
) -> Markup:
    """Return the chart of a query's rows; nothing if it has none, or less than two
    values.

    Args:
        address: returns the address of a path.
        query: the metadata of the query; those of an owner may be a plain text.
        columns: the names of the columns.
        rows: the rows, as values or as the texts that Datasette shows.
    """
    if not isinstance(query, Mapping):
        return Markup()
    chart = query.get("chart") or {}
    # The owner of a site may write anything.
    if not isinstance(chart, Mapping) or not {chart.get("x"), chart.get("y")}.issubset(
        columns
    ):
        return Markup()
    pairs = list(_pairs(rows, columns.index(chart["x"]), columns.index(chart["y"])))
    title = str(query.get("title") or "")
    unit = _UNITS.get(chart["y"], chart["y"].replace("_", " "))

    if chart.get("kind") == "line":
        # Snapshots of several branches may have one day.
        points = [Point(day, count) for day, count in _days(pairs)]
        if len(points) < 2:
            return Markup()
        return _section(unit, line(address, title, points, unit))
    if chart.get("kind") == "bars":
        values = [Value(name, count) for name, count in pairs[:MOST_BARS]]
        if len(values) < 2:
            return Markup()
        name = chart["x"].replace("_", " ").capitalize()
        drawing = bars(address, title, values, unit.capitalize(), name)
        if len(pairs) > MOST_BARS:
            return _section(f"{unit}, of the first {MOST_BARS} rows", drawing)
        return _section(unit, drawing)
    return Markup()


def _pairs(rows: Sequence[Sequence[Any]], x: int, y: int) -> Iterator[tuple[str, int]]:
    """Yield the texts of one column and the counts of another, without rows that have
    none.
    """
    for row in rows:
        # Datasette has made texts of all values.
        try:
            count = float(str(row[y]))
        except ValueError:
            continue
        # A chart has whole numbers, never negative ones.
        if isfinite(count) and count >= 0:
            yield str(row[x]), round(count)


def _days(pairs: Sequence[tuple[str, int]]) -> Iterator[tuple[date, int]]:
    """Yield the counts whose texts are days, the oldest first."""
    days = []
    for text, count in pairs:
        try:
            days.append((date.fromisoformat(text), count))
        except ValueError:
            continue
    yield from sorted(days)


def _section(caption: str, drawing: Markup) -> Markup:
    words = element("p", caption[:1].upper() + caption[1:], class_="quiet small")
    return element("div", words, drawing, class_="charts of-query")
