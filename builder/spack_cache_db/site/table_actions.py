"""Links of the menu that Datasette shows beside the name of a table or view."""

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
"""The views that select a list of stacks, and the name of that column."""
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
"""Tables and views to which new releases add rows."""

Action = dict[str, str]


def actions_of(datasette: Any, database: str, name: str, request: Any) -> list[Action]:
    """Return the links for a table or view of the published database, as Datasette
    takes them.
    """
    urls = datasette.urls
    # Datasette's own plugins may ask without a request.
    query = request.query_string if request is not None else ""
    fields = parse_qsl(query, keep_blank_values=True)
    actions = []

    # Packages and releases have pages that are easier to read than their rows.
    if name in PAGES:
        path = PAGES[name]
        label = f"The page of {path.removeprefix('/')}"
        actions.append(_action(urls.path(path), label))

    # Keep the filters; leave out the page (`_next`), and the facet if it is there.
    if name in STACK_LISTS:
        facet = (STACK_FACET, STACK_LISTS[name])
        filters = [field for field in fields if field[0] != "_next" and field != facet]
        query = urlencode([*filters, facet])
        address = f"{urls.table(database, name)}?{query}"
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
