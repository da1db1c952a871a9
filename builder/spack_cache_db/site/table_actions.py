"""Links of the menu that Datasette shows beside the name of a table or view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from spack_cache_db.schema.views import VIEWS
from spack_cache_db.site.stack_facet import STACK_FACET

STACK_LISTS: Mapping[str, str] = {
    view: "stacks" for view, statement in VIEWS.items() if " AS stacks" in statement
}
"""Views with lists of stacks, and the column of these."""
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
    query = request.query_string if request is not None else ""
    fields = parse_qsl(query, keep_blank_values=True)
    actions = []
    # Packages and releases have pages that are easier to read than their rows.
    if name in PAGES:
        page = PAGES[name]
        actions.append(
            _action(urls.path(page), f"The page of {page.removeprefix('/')}")
        )
    # The filters stay; the counts begin at the first page of rows.
    if name in STACK_LISTS:
        wanted = (STACK_FACET, STACK_LISTS[name])
        kept = [field for field in fields if field[0] != "_next" and field != wanted]
        counted = f"{urls.table(database, name)}?{urlencode([*kept, wanted])}"
        actions.append(_action(counted, "Count by stack"))
    if name in CHANGES:
        package = dict(fields).get("package", "")
        about = f"?{urlencode({'package': package})}" if package else ""
        of_package = f" of {package}" if package else ""
        feed = urls.path("/feed.atom") + about
        actions.append(_action(feed, f"Feed of the changes{of_package}"))
    actions.append(_action(urls.path("/about"), "About the database, and its download"))
    return actions


def _action(address: str, label: str) -> Action:
    return {"href": address, "label": label}
