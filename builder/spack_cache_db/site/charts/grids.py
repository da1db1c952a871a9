"""A timeline, a heat map, or both in one table.

A heat map is a table with coloured cells, and not a drawing: its counts are texts, its
rows and columns have headings, and a phone can leave out what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from spack_cache_db.site.charts.days import (
    Label,
    anchor_of,
    axis,
    month_labels,
    position,
    spaced,
)
from spack_cache_db.site.charts.markup import (
    Address,
    bar,
    element,
    joined,
    linked,
    number,
    percent,
)
from spack_cache_db.site.charts.records import Cell, Column, Life, Mark, Row, Span
from spack_cache_db.site.names_for_people import day_words

_LEAST = 0.01
"""The least width of a bar in a timeline, as a share."""
HEATS = 4
"""Colours of a heat map. Each stands for twice the counts of the paler one."""


def grid(
    address: Address,
    title: str,
    rows: Sequence[Row],
    *,
    name: str,
    span: Span | None = None,
    columns: Sequence[Column] = (),
    unit: str = "",
) -> Markup:
    """Return a table of rows with their lives, if there is a span, and a coloured cell
    for each column; nothing without rows.

    Args:
        address: returns the address of a path.
        title: the caption, which screen readers read.
        rows: the rows; each has a life if there is a span, and a cell for each column.
        name: the heading of the rows' names, such as `Version`.
        span: the days of the timeline.
        columns: the columns of the heat map.
        unit: what the cells count, such as `binaries`.
    """
    if not rows:
        return Markup()
    headings = [element("th", name, scope="col")]
    if span is not None:
        snapshots = element("span", "Snapshots", class_="visually-hidden")
        drawn = _span_axis(address, span)
        headings.append(element("th", snapshots, drawn, scope="col", class_="life"))
        days = element("span", "Days", class_="visually-hidden")
        headings.append(element("th", days, scope="col", class_="days"))
    for column in columns:
        headings.append(_heading(column))

    top = max((cell.count for row in rows for cell in row.cells), default=0)
    body = []
    for row in rows:
        cells = [element("th", linked(address, row.path, row.name), scope="row")]
        if span is not None:
            cells += _life_cells(row.life, span)
        for column, cell in zip(columns, row.cells, strict=True):
            words = f"{number(cell.count)} {unit}: {row.name}, {column.name}"
            kind = "heat chosen" if column.is_chosen else "heat"
            colour = heat(address, cell, top, words)
            cells.append(element("td", colour, class_=kind, data_label=column.name))
        body.append(element("tr", *cells))
    return element(
        "table",
        element("caption", title, class_="visually-hidden"),
        element("thead", element("tr", *headings)),
        element("tbody", *body),
        class_="map",
    )


def _heading(column: Column) -> Markup:
    """Return the heading of a column of the heat map."""
    names: list[object] = [column.name]
    if column.short:
        long = element("span", column.name, class_="name")
        short = element("span", column.short, class_="short", aria_hidden="true")
        names = [long, short]
    note = element("small", column.note) if column.note else None
    kind = "heat chosen" if column.is_chosen else "heat"
    return element("th", *names, note, scope="col", class_=kind)


def heat(address: Address, cell: Cell, top: int, words: str) -> Markup:
    """Return the count of a cell in the colour of its share of the greatest count.

    `words` is the name of its link, which begins with the count:
    `32 binaries: 2.1.0, x86_64_v3`.
    """
    href = None if cell.path is None else address(cell.path)
    if href is None or not cell.count:
        return plain_heat(cell.count, top)
    return element(
        "a",
        number(cell.count),
        href=href,
        class_=f"heat-{heat_of(cell.count, top)}",
        aria_label=words,
        aria_current="true" if cell.is_chosen else None,
    )


def plain_heat(count: int, top: int) -> Markup:
    """Return a count in its colour without a link, for tables with many of them."""
    if not count:
        return Markup('<span class="none">none</span>')
    return Markup(f'<span class="heat-{heat_of(count, top)}">{number(count)}</span>')


def heat_of(count: int, top: int) -> int:
    """Return the colour of a count: the darkest above a half of the greatest one, the
    next above a quarter, and so on.

    >>> [heat_of(count, 53) for count in (53, 26, 13, 1)]
    [4, 3, 2, 1]
    """
    for halvings in range(1, HEATS):
        if count * 2**halvings > top:
            return HEATS + 1 - halvings
    return 1


def _life_cells(life: Life | None, span: Span) -> list[Markup]:
    """Return the bars of a row, and its days in words."""
    if life is None:
        return [element("td", class_="life"), element("td", class_="days")]
    kind = "pale" if life.is_gone else "data"
    shapes = [element("line", x1="0", x2="100%", y1="50%", y2="50%", class_="level")]
    texts = []
    for first, last in life.runs:
        text = f"{day_words(first)} to {day_words(last)}"
        texts.append(text)
        # A run outside of the days that are shown has words alone.
        if last >= span.first and first <= span.last:
            left = position(max(first, span.first), span.first, span.last)
            right = position(min(last, span.last), span.first, span.last)
            shapes.append(_run(left, right, kind, text))
    drawing = element(
        "svg",
        *shapes,
        width="100%",
        height="14",
        role="img",
        aria_label=", ".join(texts) or "never",
    )
    return [
        element("td", drawing, class_="life"),
        element("td", life.words, class_="days"),
    ]


def _run(left: float, right: float, kind: str, text: str) -> Markup:
    """Return the bar of some days; a single day can be seen, too."""
    left = min(left, 1 - _LEAST)
    return bar(left, max(right, left + _LEAST), 0, 1, kind, text)


def _span_axis(address: Address, span: Span) -> Markup:
    """Return the months of a timeline, below its marks."""
    marks = [mark for mark in span.marks if span.first <= mark.day <= span.last]
    lines = []
    if marks:
        lines.append(_marks(address, marks, span))
    lines.append(axis(month_labels(span.first, span.last)))
    return joined(lines)


def _marks(address: Address, marks: Sequence[Mark], span: Span) -> Markup:
    """Return a line of marks; one without room for its name is a tick with a title."""
    labels = [
        Label(position(mark.day, span.first, span.last), mark.name) for mark in marks
    ]
    with_room = spaced(labels)
    drawn = []
    for mark, label in zip(marks, labels, strict=True):
        at = percent(label.at)
        words = f"{mark.name}: {day_words(mark.day)}"
        shape = element("line", x1=at, x2=at, y1="85%", y2="100%", class_="tick")
        text = None
        if label in with_room:
            anchor = anchor_of(label.at)
            text = element("text", mark.name, x=at, y="65%", text_anchor=anchor)
        named = element("g", element("title", words), shape, text)
        drawn.append(linked(address, mark.path, named, name=words))
    has_links = any(mark.path is not None for mark in marks)
    return element(
        "svg",
        *drawn,
        class_="axis marks",
        width="100%",
        height="20",
        role="group" if has_links else "img",
        aria_label=", ".join(f"{mark.name}: {day_words(mark.day)}" for mark in marks),
    )
