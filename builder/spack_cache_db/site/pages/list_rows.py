"""The rows of a list as HTML, in one piece: of a thousand, a template takes four times as long."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from markupsafe import Markup

from spack_cache_db.site.pages.lists import Column, ListPage


def list_rows(page: ListPage, start: str) -> Markup:
    """Return the body of a list's table.

    Args:
        start: the address below which each of its names has a page.
    """
    query = escape(page.package_query())
    columns = [(each.name, each.is_count, f"<td{classes(each)}>") for each in page.columns[1:]]
    lines = []
    for row in page.in_order():
        name = row["name"]
        line = f'<tr><th scope="row"><a href="{start}{quote(name)}{query}">{escape(name)}</a></th>'
        for column, is_count, opening in columns:
            value = row[column]
            text = "" if value is None else f"{value:,}" if is_count else escape(value)
            line += f"{opening}{text}</td>"
        lines.append(line)
    # Names and words are escaped or quoted above; numbers need no escaping.
    return Markup("</tr>\n".join([*lines, ""]))


def classes(column: Column) -> Markup:
    """Return the class attribute of a column's cells."""
    names = [
        name for name, holds in (("count", column.is_count), ("minor", column.is_minor)) if holds
    ]
    return Markup(f' class="{" ".join(names)}"' if names else "")
