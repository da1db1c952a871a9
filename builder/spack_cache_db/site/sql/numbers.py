"""Numbers in the results of SQL, on Datasette's pages: to the right, with separators.

The last column of numbers has a bar beside each, so that a result is seen at a glance.
Ids, years and hashes are names rather than amounts, and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup

_NAMES = re.compile(r"(.*_)?(id|rowid|year|position|version)", re.IGNORECASE)
"""Columns whose numbers are names: `package_id`."""
BAR_WIDTH = 80
"""The longest bar, in pixels."""
MOST_DIGITS = 15
"""The digits of a float that are exact."""


def readable_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[object] | Mapping[str, object]],
    display_rows: Sequence[Sequence[object]],
) -> list[list[object]]:
    """Return the cells of a result with numbers for people.

    A column of numbers has nothing else but NULL. A number becomes, for example:

    >>> readable_rows(["packages"], [[1234]], [["1234"]])
    [[Markup('<span class="number">1,234</span>')]]

    Args:
        columns: the names of the columns.
        rows: the values, which are mappings in Datasette 1.0.
        display_rows: the texts that Datasette shows for them.
    """
    values = [tuple(row.values() if isinstance(row, Mapping) else row) for row in rows]
    numeric = []
    for position, column in enumerate(columns):
        if _are_amounts(column, [row[position] for row in values]):
            numeric.append(position)
    readable = [list(cells) for cells in display_rows]
    if not numeric:
        return readable

    last = numeric[-1]
    top = _top_of([row[last] for row in values])
    for row, cells in zip(values, readable, strict=True):
        for position in numeric:
            value = row[position]
            if isinstance(value, int | float):
                cells[position] = _cell(value, top if position == last else 0)
    return readable


def _are_amounts(column: str, values: Sequence[object]) -> bool:
    """Return whether the values of a column are amounts."""
    if _NAMES.fullmatch(column):
        return False
    numbers = [value for value in values if value is not None]
    are_numbers = all(isinstance(value, int | float) for value in numbers)
    return bool(numbers) and are_numbers


def _top_of(values: Sequence[object]) -> float:
    """Return the largest number, which has the longest bar; 0 for no bars.

    A single number has nothing to be compared with, and a bar has no negative length.
    """
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < 2 or min(numbers) < 0:
        return 0
    top = max(numbers)
    # Infinity is no length.
    return top if top < float("inf") else 0


def _cell(value: float, top: float) -> Markup:
    """Return a number, with a bar if `top` is the number of the longest one."""
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.{MOST_DIGITS}g}"
    if top <= 0:
        return Markup(f'<span class="number">{text}</span>')
    width = round(BAR_WIDTH * value / top, 1)
    return Markup(
        f'<span class="number">{text} <svg width="{BAR_WIDTH}" height="10" '
        f'aria-hidden="true"><rect class="data" width="{width:g}" height="10" rx="2"/>'
        "</svg></span>"
    )
