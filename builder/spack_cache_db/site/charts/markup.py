"""Elements of HTML and SVG, which are valid XML whatever the texts in them are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from markupsafe import Markup, escape

Address = Callable[[str], str | None]
"""Returns the address of a path, with the base of the site, or None if the site has no
such page: `SiteSettings.path`.
"""
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: object) -> Markup:
    r"""Return a text for XML; what XML cannot contain is replaced by U+FFFD.

    >>> escaped("a < b\0")
    Markup('a &lt; b\ufffd')
    """
    if isinstance(text, Markup):
        return text
    words = str(text)
    if not words.isprintable():
        words = _NOT_IN_XML.sub("\ufffd", words)
    return escape(words)


def element(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element. Attributes that are None are left out; `class_` is `class`,
    and `aria_label` is `aria-label`.

    >>> element("text", "R&D", x="10%", class_=None, text_anchor="middle")
    Markup('<text x="10%" text-anchor="middle">R&amp;D</text>')
    """
    opening = name
    for key, value in attributes.items():
        if value is not None:
            opening += _attribute(key, value)
    return Markup(f"<{opening}>{joined(children)}</{name}>")


# Most attributes are a class or a place that many elements have. An escaped text and a
# plain one are equal, but of different types.
@lru_cache(maxsize=1024, typed=True)
def _attribute(key: str, value: object) -> str:
    """Return an attribute behind a space: ` class="heat"`."""
    name = key.rstrip("_").replace("_", "-")
    return f' {name}="{escaped(value)}"'


def joined(parts: Iterable[object]) -> Markup:
    """Return parts one after the other; texts are escaped, and None is nothing."""
    return Markup("".join(escaped(part) for part in parts if part is not None))


def number(count: int) -> str:
    """Return a count for people: `1,234`."""
    return f"{count:,}"


def percent(share: float) -> str:
    """Return a share of the width or height of a chart as SVG has it: `12.5%`."""
    return f"{round(100 * share, 2):g}%"


def bar(
    left: float, right: float, top: float, bottom: float, kind: str, title: str = ""
) -> Markup:
    """Return a rectangle between four shares of a chart; `kind` is its class.

    Widths are differences of rounded edges, so that neighbours meet and the last bar
    ends with the chart.
    """
    left, right = (round(100 * share, 2) for share in (left, right))
    top, bottom = (round(100 * share, 2) for share in (top, bottom))
    return element(
        "rect",
        element("title", title) if title else None,
        x=f"{left:g}%",
        y=f"{top:g}%",
        width=f"{round(right - left, 2):g}%",
        height=f"{round(bottom - top, 2):g}%",
        class_=kind,
    )


def linked(
    address: Address, path: str | None, *children: object, name: str | None = None
) -> Markup:
    """Return the children as a link, or as they are if there is no page.

    `name` is the name of the link for screen readers, if it is more than its text.
    """
    href = None if path is None else address(path)
    if href is None:
        return joined(children)
    return element("a", *children, href=href, aria_label=name)


def hidden_table(
    caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]]
) -> Markup:
    """Return a table that only screen readers read; each row begins with its name."""
    head = element("tr", *(element("th", text, scope="col") for text in headings))
    body = []
    for name, *values in rows:
        cells = [element("td", value) for value in values]
        body.append(element("tr", element("th", name, scope="row"), *cells))
    table = element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", *body),
    )
    return element("div", table, class_="visually-hidden")


def legend_of(entries: Iterable[tuple[str, str]]) -> Markup:
    """Return the colours of a chart with their names, from pairs of class and name."""
    items = [
        element("span", swatch(kind), name, class_="entry") for kind, name in entries
    ]
    return element("span", *items, class_="legend")


def swatch(kind: str) -> Markup:
    """Return a small square in a colour of a chart."""
    square = element("rect", width="12", height="12", rx="2", class_=kind)
    return element("svg", square, width="12", height="12", aria_hidden="true")
