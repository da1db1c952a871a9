"""Links of the menu that Datasette shows beside the name of a table or view.

For example, the menu of `builds` has "Count by stack" and "Feed of the changes".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.stack_facet import STACK_FACET

_LIST_COLUMN = "stacks"
STACK_LISTS: Mapping[str, str] = {
    view: _LIST_COLUMN
    for view, statement in VIEWS.items()
    if f" AS {_LIST_COLUMN}" in statement
}
"""The views with a list of stacks in each row, and the name of that column."""
PAGES: Mapping[str, str] = {
    "packages": "/packages",
    "package_status": "/packages",
    "releases": "/releases",
    "stacks": "/stacks",
}
"""Tables and views whose rows a page of the site lists as well."""
CHANGES = frozenset(
    ("builds", "build_listings", "listings", "releases", "release_changes")
)
"""Tables and views to which new releases add rows; their menus link the feed."""

Action = dict[str, str]
"""A link as Datasette's hooks return it, with the keys `href` and `label`."""


def actions_of(datasette: Any, database: str, name: str, request: Any) -> list[Action]:
    """Return the links for a table or view of the published database.

    Args:
        datasette: the Datasette, which knows the addresses of tables.
        database: the name of the database.
        name: the name of the table or view.
        request: Datasette's request for the page of the table; None if a plugin asks
            without one.
    """
    urls = datasette.urls
    query = "" if request is None else request.query_string
    # Pairs of name and value: filters, and Datasette's own fields such as `_facet`.
    fields = parse_qsl(query, keep_blank_values=True)
    actions = []

    # Packages and releases have pages that are easier to read than their rows.
    if name in PAGES:
        path = PAGES[name]
        label = f"The page of {path.removeprefix('/')}"
        actions.append(_action(urls.path(path), label))

    # The same rows with their counts by stack. They begin on the first page (without
    # `_next`), and the facet is added once, whether or not it is there already.
    if name in STACK_LISTS:
        facet = (STACK_FACET, STACK_LISTS[name])
        kept = [
            (field, value)
            for field, value in fields
            if field != "_next" and (field, value) != facet
        ]
        query_with_facet = urlencode([*kept, facet])
        address = f"{urls.table(database, name)}?{query_with_facet}"
        actions.append(_action(address, "Count by stack"))

    # The feed of everything, or of the package to which the rows are filtered.
    if name in CHANGES:
        address = urls.path("/feed.atom")
        label = "Feed of the changes"
        package = dict(fields).get("package", "")
        if package:
            address += f"?{urlencode({'package': package})}"
            label += f" of {package}"
        actions.append(_action(address, label))
    actions.append(_action(urls.path("/about"), "About the database, and its download"))
    return actions


def _action(address: str, label: str) -> Action:
    return {"href": address, "label": label}
