"""The rows of a dependency tree as HTML, in one piece: of 1,500 a template takes 35 ms."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from markupsafe import Markup

from spack_cache_db.site.pages.dependency_tree import Row

SHOWN_OF_HASH = 7


def tree_rows(rows: Iterable[Row], start: str) -> Markup:
    """Return the items of a tree's list, with the lists of those that are unfolded in them.

    Args:
        rows: what the tree shows, in order.
        start: the address below which each spec has a page.
    """
    # Every word is escaped; hashes and kinds are letters and digits.
    return Markup("".join(f"{_item(row, start)}{_END * row.closes}\n" for row in rows))


_END = "</ul></details></li>"


def _item(row: Row, start: str) -> str:
    node, package = row.node, escape(row.node.package)
    how = ", ".join(row.types) + (f" for {', '.join(row.virtuals)}" if row.virtuals else "")
    kind = "" if node.is_binary else f' <span class="kind">{node.kind}</span>'
    item = (
        f'<li><a href="{start}{node.hash}">{package}@{escape(node.version)}</a>'
        f' <span class="quiet">{escape(how)}</span>{kind}'
    )
    place = f"d-{node.hash[:SHOWN_OF_HASH]}"
    if row.has_more:
        own = f'<span class="visually-hidden"> of its own: {package}</span>'
        return f'{item}<details id="{place}"><summary>needs {row.needs}{own}</summary><ul>'
    if row.is_above:
        of = f'<span class="visually-hidden">: {package}</span>'
        item += f' <a class="above" href="#{place}">needs {row.needs}, as above{of}</a>'
    elif row.needs:
        item += f' <span class="quiet">needs {row.needs}, not shown</span>'
    return f"{item}</li>"
