"""Addresses of a page's data on Datasette's own pages: rows to browse, JSON and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from spack_cache_db.site.pages.filters import Filters
from spack_cache_db.site.pages.narrowing import Narrowing
from spack_cache_db.spack.targets import ancestors

_MATCHED = {"version", "compiler", "os", "platform", "target", "release"}


@dataclass(frozen=True, slots=True)
class DataLinks:
    """The same rows three ways; `browse` is None where Datasette has no page of them."""

    browse: str | None
    json: str
    csv: str


def data_links(
    database: str, table: str, pairs: Sequence[tuple[str, str]], *, many: bool = False
) -> DataLinks:
    """Return the addresses of the rows of a table or view that match `pairs`.

    Args:
        many: so many rows that to count them would cost more than to show the first.
    """
    base = f"/{quote(database)}/{quote(table)}"
    query = urlencode(pairs)
    joint = "&" if query else ""
    return DataLinks(
        browse=f"{base}?{query}{f'{joint}_nocount=1' if many else ''}",
        json=f"{base}.json?{query}{joint}_shape=array&_size=max",
        csv=f"{base}.csv?{query}{joint}_stream=on&_size=max",
    )


def package_links(database: str, package: str, filters: Filters) -> DataLinks:
    """Return the addresses of the builds on a package's page, narrowed as the page is."""
    pairs = [("package", package)]
    for name, value in filters.chosen():
        if name in _MATCHED:
            pairs.append((name, value))
        elif name == "stack":
            pairs.append(("stacks__arraycontains", value))
        elif name == "variant":
            pairs.append(("variants__contains", value))
        elif filters.release is None:
            pairs.append(("host", value))
        else:
            pairs.append(("target__in", ",".join(sorted({value, *ancestors(value)}))))
    if filters.release is not None:
        return data_links(database, "build_listings", pairs)
    table = "builds" if filters.host is None else "host_builds"
    return data_links(database, table, pairs)


def found_links(text: str, narrowing: Narrowing) -> DataLinks:
    """Return the addresses of what a spec finds."""
    query = urlencode([("q", text), *narrowing.pairs])
    return DataLinks(browse=None, json=f"/find.json?{query}", csv=f"/find.csv?{query}")
