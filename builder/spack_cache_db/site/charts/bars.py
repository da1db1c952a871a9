"""Bars beside names: of counts, of gains and losses, and of the parts of a whole.

The rows of a table, or the entries of a legend, have all numbers as texts: screen
readers read these, and not the bars.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from spack_cache_db.site.charts.markup import (
    Address,
    bar,
    element,
    linked,
    number,
    swatch,
)
from spack_cache_db.site.charts.records import Change, Share, Value


def bars(
    address: Address, title: str, values: Sequence[Value], unit: str, name: str = "Name"
) -> Markup:
    """Return a row with a bar for each value; nothing without values.

    Args:
        address: returns the address of a path.
        title: the caption of the table, which screen readers read.
        values: the counts, in the order of the rows.
        unit: the heading of the counts, such as `Binaries`.
        name: the heading of the names, such as `Target`.
    """
    if not values:
        return Markup()
    top = max(value.count for value in values) or 1
    rows = []
    for value in values:
        drawing = _drawing(bar(0, value.count / top, 0, 1, "data"))
        row = element(
            "tr",
            element("th", linked(address, value.path, value.name), scope="row"),
            element("td", drawing, class_="bar"),
            element("td", number(value.count), class_="count"),
        )
        rows.append(row)
    return _table("bars", title, (name, "Bar", unit), rows)


def diverging_bars(
    address: Address,
    title: str,
    changes: Sequence[Change],
    unit: str,
    words: tuple[str, str],
) -> Markup:
    """Return a row for each change: a bar to the left for its losses, one to the right
    for its gains, and the difference; nothing without changes.

    Args:
        address: returns the address of a path.
        title: the caption of the table, which screen readers read.
        changes: the counts, in the order of the rows.
        unit: the heading of the counts, such as `Binaries`.
        words: the names of gains and losses, such as `("new", "gone")`.
    """
    if not changes:
        return Markup()
    top = max(max(change.gained, change.lost) for change in changes) or 1
    gained_word, lost_word = words
    rows = []
    for change in changes:
        text = (
            f"{number(change.gained)} {gained_word}, {number(change.lost)} {lost_word}"
        )
        lost = bar(0.5 - change.lost / top / 2, 0.5, 0, 1, "gone", text)
        gained = bar(0.5, 0.5 + change.gained / top / 2, 0, 1, "data", text)
        row = element(
            "tr",
            element("th", linked(address, change.path, change.name), scope="row"),
            element("td", number(change.count), class_="count"),
            element(
                "td",
                element("span", text, class_="visually-hidden"),
                _drawing(lost, gained),
                class_="bar",
            ),
            _difference(change.gained - change.lost),
        )
        rows.append(row)
    headings = ("Name", unit, f"{gained_word}, {lost_word}", "Difference")
    return _table("bars diverging", title, headings, rows)


def stacked_bar(title: str, shares: Sequence[Share], unit: str) -> Markup:
    """Return one bar of all shares, with a legend of their names and counts; nothing if
    all are 0.

    Args:
        title: the name of the legend, for screen readers.
        shares: the parts, from left to right.
        unit: what is counted, such as `dependencies`.
    """
    total = sum(share.count for share in shares)
    if not total:
        return Markup()
    rectangles = []
    entries = []
    before = 0
    for share in shares:
        after = before + share.count
        words = f"{number(share.count)} {share.name}"
        title_of_share = f"{words} of {number(total)} {unit}"
        rectangle = bar(before / total, after / total, 0, 1, share.kind, title_of_share)
        rectangles.append(rectangle)
        entries.append(element("li", swatch(share.kind), words))
        before = after
    legend = element("ul", *entries, class_="legend", aria_label=title)
    return element("div", _drawing(*rectangles), legend, class_="stacked")


def _drawing(*shapes: Markup) -> Markup:
    """Return bars in a line of text, which screen readers pass over."""
    return element("svg", *shapes, width="100%", height="12", aria_hidden="true")


def _difference(count: int) -> Markup:
    """Return a cell with a signed count: `+5`, `-6`, `0`."""
    if count == 0:
        return element("td", "0", class_="count")
    sign = "+" if count > 0 else "-"
    kind = "gained" if count > 0 else "lost"
    return element("td", f"{sign}{number(abs(count))}", class_=f"count {kind}")


def _table(
    kind: str, caption: str, headings: Sequence[str], rows: Sequence[Markup]
) -> Markup:
    """Return rows as a table whose headings only screen readers read."""
    head = element("tr", *(element("th", text, scope="col") for text in headings))
    return element(
        "table",
        element("caption", caption, class_="visually-hidden"),
        element("thead", head, class_="visually-hidden"),
        element("tbody", *rows),
        class_=kind,
    )
