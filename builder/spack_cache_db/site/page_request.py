"""The request for one of our own pages, as a record without Datasette.

`http.own_pages` makes it from Datasette's `Request`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl


class Link(NamedTuple):
    """A link that Datasette or a plugin adds to a page."""

    href: str
    label: str


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page.

    Attributes:
        path: the path below the base of the site, as it was sent: `/package/hdf5.json`.
        query: the query string, without the `?`, such as `release=develop`.
        origin: scheme and host of the site, as the visitor sees them.
        form: the body of a form, as a query string; None without a form.
        menu: entries that plugins add to Datasette's menu for this visitor.
        databases: other databases that this visitor may see; only for `/about`.
        takes_machine: whether the page shows what runs on a machine (`host=`).
        first: the number of the first row to return, if a response is sent in parts.
    """

    path: str
    query: str = ""
    origin: str = "http://localhost"
    form: str | None = None
    menu: tuple[Link, ...] = ()
    databases: tuple[Link, ...] = ()
    takes_machine: bool = False
    first: int = 0

    @property
    def is_data(self) -> bool:
        """Whether a program reads the answer: JSON, CSV or a feed."""
        return self.path.endswith((".json", ".csv", ".atom"))

    @property
    def extension(self) -> str:
        """The text after the last dot of the path; the whole path without a dot."""
        _, _, extension = self.path.rpartition(".")
        return extension

    @property
    def full_path(self) -> str:
        """The path with its query string, if it has one."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The fields of the query string as pairs of name and value, in order."""
        return parse_qsl(self.query, keep_blank_values=True)

    @property
    def args(self) -> dict[str, str]:
        """The first value of each field."""
        # A dictionary keeps the last pair of each name, so the first has to come last.
        return dict(reversed(self.pairs))
