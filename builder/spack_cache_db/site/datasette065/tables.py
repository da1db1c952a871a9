"""The rows of Datasette's table and row pages as HTML.

A page of a table has six hundred cells. Datasette's template writes each as four pieces that
climb one by one through every template the page extends, a third of what the page costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from datasette.utils import to_css_class
from markupsafe import Markup, escape

Cell = Mapping[str, Any]


def table_body(rows: Iterable[Iterable[Cell]]) -> Markup:
    """Return the rows of `display_rows` as Datasette's `_table.html` writes them, in one piece."""
    classes: dict[str, str] = {}
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            column = cell["column"]
            if column not in classes:
                classes[column] = to_css_class(column)
            kind, value = cell["value_type"], escape(cell["value"])
            cells.append(f'<td class="col-{classes[column]} type-{kind}">{value}</td>')
        lines.append("<tr>" + "\n".join(cells) + "</tr>")
    # Values are escaped above; classes and names of Python's types need no escaping.
    return Markup("\n".join(lines))
