"""site.charts: for any records, a valid drawing whose counts can be read without it."""

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from spack_cache_db.site.charts.bars import bars, diverging_bars, stacked_bar
from spack_cache_db.site.charts.days import (
    LEAST_APART,
    MOST_LABELS,
    column_labels,
    month_labels,
    month_starts,
)
from spack_cache_db.site.charts.drawings import charts_of
from spack_cache_db.site.charts.grids import HEATS, grid, heat_of
from spack_cache_db.site.charts.over_time import (
    columns,
    diverging_columns,
    line,
    rounded_range,
)
from spack_cache_db.site.charts.records import (
    Cell,
    Change,
    Column,
    Life,
    Mark,
    Point,
    Row,
    Share,
    Span,
    Step,
    Value,
)
from spack_cache_db.site.settings import SiteSettings

COUNTS = st.integers(0, 10**9)
DAYS = st.dates(date(1990, 1, 1), date(2100, 1, 1))
PATHS = st.none() | st.text().map("/{}".format)
POINTS = st.lists(
    st.builds(Point, DAYS, COUNTS, PATHS, st.booleans()), min_size=1, max_size=60
).map(lambda points: sorted(points, key=lambda point: point.day))
STEPS = st.lists(
    st.builds(Step, DAYS, COUNTS, COUNTS, PATHS, st.booleans()), min_size=1, max_size=60
).map(lambda steps: sorted(steps, key=lambda step: step.day))
VALUES = st.lists(st.builds(Value, st.text(), COUNTS, PATHS), min_size=1, max_size=9)
CHANGES = st.lists(
    st.builds(Change, st.text(), COUNTS, COUNTS, COUNTS, PATHS), min_size=1, max_size=9
)
SHARES = st.lists(
    st.builds(Share, st.text(), COUNTS, st.sampled_from(("good", "pale"))), max_size=6
)
RUNS = st.tuples(DAYS, DAYS).map(lambda days: (min(days), max(days)))


def address(path: str) -> str:
    """A site whose base is not `/`."""
    return f"/base{path}"


@st.composite
def grids(draw: st.DrawFn) -> dict[str, Any]:
    """The arguments of `grid`: some columns, and as many cells in each row."""
    columns = draw(
        st.lists(
            st.builds(Column, st.text(), st.text(), st.text(), st.booleans()),
            max_size=4,
        )
    )
    cells = st.tuples(*(st.builds(Cell, COUNTS, PATHS, st.booleans()) for _ in columns))
    lives = st.builds(
        Life, st.lists(RUNS, max_size=3).map(tuple), st.text(), st.booleans()
    )
    rows = st.builds(Row, st.text(), PATHS, st.none() | lives, cells)
    first, last = draw(RUNS)
    marks = draw(st.lists(st.builds(Mark, DAYS, st.text(), PATHS), max_size=4))
    span = Span(first, last, tuple(sorted(marks, key=lambda mark: mark.day)))
    return {
        "title": draw(st.text()),
        "rows": draw(st.lists(rows, min_size=1, max_size=4)),
        "name": "Version",
        "columns": columns,
        "span": draw(st.none() | st.just(span)),
        "unit": "binaries",
    }


def parsed(chart: Markup) -> ElementTree.Element:
    """The elements of a chart, inside another one."""
    return ElementTree.fromstring(f"<main>{chart}</main>")


def read_aloud(element: ElementTree.Element) -> str:
    """What a screen reader reads of an element: its label, or the texts in it."""
    if element.get("aria-hidden") == "true":
        return ""
    label = element.get("aria-label")
    if label is not None and (element.tag == "a" or element.get("role") == "img"):
        return f" {label} "
    texts = [element.text or ""]
    for child in element:
        texts += [read_aloud(child), child.tail or ""]
    return " ".join(texts)


def shares(element: ElementTree.Element) -> Iterator[tuple[float, float]]:
    """The start and the end of a mark, across and from the top, in percent."""

    def share(name: str) -> float:
        text = element.get(name, "0")
        assert text == "0" or text.endswith("%")
        return float(text.rstrip("%"))

    if element.tag == "rect" and not element.get("width", "").isdigit():
        yield share("x"), share("x") + share("width")
        yield share("y"), share("y") + share("height")
    elif element.tag == "line":
        yield share("x1"), share("x2")
        yield share("y1"), share("y2")
    elif element.tag == "circle":
        yield share("cx"), share("cx")
        yield share("cy"), share("cy")
    elif element.tag == "text":
        yield share("x"), share("x")
    elif element.tag == "polyline":
        for corner in element.get("points", "").split():
            x, y = map(float, corner.split(","))
            yield x, x
            yield y, y


def check(chart: Markup, counts: list[int]) -> None:
    """Parse a chart; its marks are inside of it, and its counts can be read aloud."""
    tree = parsed(chart)
    for element in tree.iter():
        assert not {"style", "onclick"} & set(element.keys())
        assert element.tag not in ("style", "script")
        if element.tag == "a":
            assert element.get("href", "").startswith("/base/")
        if element.get("role") == "img":
            assert element.get("aria-label") is not None
            assert element.find(".//a") is None
        for start, end in shares(element):
            assert -0.005 <= start <= end + 0.005
            assert end <= 100.005
    words = {word.lstrip("+-") for word in read_aloud(tree).split()}
    assert {f"{count:,}" for count in counts} <= words


@given(st.text(), POINTS, st.text())
def test_columns(title: str, points: list[Point], unit: str) -> None:
    """Each count is a column from the bottom, and is read aloud."""
    check(columns(address, title, points, unit), [point.count for point in points])


@given(st.text(), POINTS, st.text())
def test_a_line(title: str, points: list[Point], unit: str) -> None:
    """Each count is a dot on the line, and is read aloud."""
    check(line(address, title, points, unit), [point.count for point in points])


@given(st.text(), STEPS)
def test_diverging_columns(title: str, steps: list[Step]) -> None:
    """Gains go up, losses go down, and both are read aloud."""
    counts = [count for step in steps for count in (step.gained, step.lost)]
    check(diverging_columns(address, title, steps, ("new", "gone")), counts)


@given(st.text(), VALUES)
def test_bars(title: str, values: list[Value]) -> None:
    """Each value is a row of a table with its count."""
    chart = bars(address, title, values, "Binaries")
    check(chart, [value.count for value in values])
    assert len(parsed(chart).findall(".//tbody/tr")) == len(values)


@given(st.text(), CHANGES)
def test_diverging_bars(title: str, changes: list[Change]) -> None:
    """Each change is a row of a table with its counts and their difference."""
    counts = [
        count
        for change in changes
        for count in (
            change.count,
            change.gained,
            change.lost,
            abs(change.gained - change.lost),
        )
    ]
    check(diverging_bars(address, title, changes, "Binaries", ("new", "gone")), counts)


@given(st.text(), SHARES)
def test_a_stacked_bar(title: str, shares: list[Share]) -> None:
    """The parts fill the bar, and the legend has their counts; no bar if all are 0."""
    chart = stacked_bar(title, shares, "dependencies")
    total = sum(share.count for share in shares)

    assert bool(chart) is bool(total)

    counts = [share.count for share in shares] if total else []
    check(chart, counts)
    widths = [
        float(rectangle.get("width", "").rstrip("%"))
        for rectangle in parsed(chart).iter("rect")
        if rectangle.get("x")
    ]
    whole = 100 if total else 0

    assert sum(widths) == pytest.approx(whole, abs=0.01)


@given(grids())
def test_a_grid(arguments: dict[str, Any]) -> None:
    """Each cell has its count, each life its words, and each mark its name."""
    chart = grid(address, **arguments)
    rows = arguments["rows"]
    span = arguments["span"]
    check(chart, [cell.count for row in rows for cell in row.cells if cell.count])
    tree = parsed(chart)
    columns = 1 + 2 * (span is not None) + len(arguments["columns"])

    for row in tree.iter("tr"):
        assert len(row) == columns
    if span is not None:
        inside = [mark for mark in span.marks if span.first <= mark.day <= span.last]
        titles = [title.text or "" for title in tree.iterfind(".//thead//title")]
        assert len(titles) == len(inside)


def test_without_records_there_is_no_chart() -> None:
    """Templates can pass what they have."""
    assert columns(address, "x", [], "binaries") == ""
    assert line(address, "x", [], "binaries") == ""
    assert diverging_columns(address, "x", [], ("new", "gone")) == ""
    assert bars(address, "x", [], "Binaries") == ""
    assert diverging_bars(address, "x", [], "Binaries", ("new", "gone")) == ""
    assert grid(address, "x", [], name="Version") == ""


@given(RUNS)
def test_labels_of_months_have_room(days: tuple[date, date]) -> None:
    """At most `MOST_LABELS` starts of months, at even steps, and as labels apart."""
    first, last = days
    starts = month_starts(first, last)

    assert len(starts) <= MOST_LABELS
    assert all(first <= start <= last and start.day == 1 for start in starts)
    months = [start.year * 12 + start.month for start in starts]
    assert len({later - month for month, later in pairwise(months)}) <= 1
    for label, next_label in pairwise(month_labels(first, last)):
        assert next_label.at - label.at >= LEAST_APART


def test_labels_of_weeks() -> None:
    """The first column of a month has its name, and that of January the year."""
    sunday = date(2025, 11, 23)
    days = [sunday + timedelta(weeks=week) for week in range(12)]
    assert [label.text for label in column_labels(days)] == ["Dec", "2026", "Feb"]
    assert column_labels(days)[0].at == pytest.approx(2.5 / 12)
    assert [label.text for label in column_labels(days[:1])] == ["23 Nov 2025"]


@given(COUNTS, COUNTS)
def test_a_scale_has_round_ends(one: int, other: int) -> None:
    """Both counts are between its ends, which differ, and are near."""
    low, high = sorted((one, other))
    bottom, top = rounded_range(low, high)
    assert 0 <= bottom <= low <= high <= top
    assert bottom < top
    assert top - bottom <= 3 * max(high - low, 1)


@given(COUNTS.filter(bool), COUNTS.filter(bool))
def test_darker_is_more(one: int, other: int) -> None:
    """The greatest count has the darkest colour, and a smaller one no darker one."""
    low, high = sorted((one, other))
    assert heat_of(high, high) == HEATS
    assert 1 <= heat_of(low, high) <= HEATS
    assert heat_of(low, 2 * high) <= heat_of(low, high)


def test_templates_have_every_drawing_with_the_base() -> None:
    """Addresses below a base lead to the site."""
    drawings = charts_of(SiteSettings(base_url="/cache/"))
    chart = drawings["bars"]("Targets", [Value("zen3", 1, "/packages")], "Binaries")

    assert 'href="/cache/packages"' in chart
    assert sorted(drawings) == [
        "bars",
        "columns",
        "diverging_bars",
        "diverging_columns",
        "grid",
        "heat",
        "line",
        "plain_heat",
        "stacked_bar",
    ]
