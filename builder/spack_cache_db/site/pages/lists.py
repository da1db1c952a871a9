"""`/packages`, `/releases` and `/stacks`: all of a kind, filtered and sorted.

Each list is also JSON and CSV.
"""

from __future__ import annotations

from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.rows import Rows
from spack_cache_db.site.filters import DataLinks
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse, data
from spack_cache_db.site.pages.feeds import Topic
from spack_cache_db.site.pages.list_page import COLUMNS, ListFilters, ListPage
from spack_cache_db.site.pages.missing import form_of
from spack_cache_db.site.pages.package_list import load_packages, processors_of_packages
from spack_cache_db.site.pages.processor_columns import (
    NO_COLUMNS,
    NO_COUNTS,
    processor_columns,
)
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site

RECORDS = {
    "releases": ("position", "name", "kind", "date", "package_count", "spec_count"),
    "stacks": ("name", "release_count", "spec_count"),
}
"""The fields of records in a list; `spec_count` is called `specs` there."""


def listed(
    site: Site, request: PageRequest, kind: str, form: str | None
) -> PageResponse:
    """Return `/packages`, `/releases` or `/stacks`, as a page, `.json` or `.csv`."""
    filters = ListFilters.parse(request.pairs)
    page = load_list(site.lookups, kind, filters)
    if form is not None:
        return _as_data(page, form)

    # The rows of this page; a static list has no other pages.
    rows = page.in_order()
    if not site.settings.is_static:
        rows = rows[page.window.rows]

    # The binaries of packages, by processor.
    processors = NO_COLUMNS
    counts = {}
    if kind == "packages" and not page.is_missing:
        names = [row["name"] for row in rows]
        of_package = processors_of_packages(site.lookups, names, page.conditions)
        processors = processor_columns(
            site.lookups, of_package.values(), page.conditions
        )
        for name in names:
            counts[name] = processors.in_order(of_package.get(name, NO_COUNTS))

    links = None
    if page.rows:
        links = DataLinks.of_page(f"/{kind}", filters.address())
    return site.page(
        request,
        "list.html",
        page=page,
        rows=rows,
        processors=processors,
        counts=counts,
        filters=filters,
        links=links,
        feed=_feed_of(kind, filters, page),
    )


def _feed_of(kind: str, filters: ListFilters, page: ListPage) -> str | None:
    """Return the address of the feed of a list; None for a list without one.

    Packages have one if a maintainer, a license or a tag chooses them.
    """
    if kind == "releases":
        return Topic().feed
    topic = Topic(
        stack=filters.stack or None,
        host=filters.host or None,
        maintainer=filters.maintainer or None,
        license=filters.license or None,
        tag=filters.tag or None,
    )
    # A feed of an unknown name would be an error.
    if kind != "packages" or not topic.recipe_names or page.faults:
        return None
    return topic.feed


def _as_data(page: ListPage, form: str) -> PageResponse:
    """Return a list as JSON or CSV; an error for a wrong filter or an empty list."""
    if page.notices:
        return refused(" ".join(page.notices), form)
    if not page.rows:
        none = f"no {page.kind}"
        if page.total:
            none = f"none of {page.total:,} {page.kind} matches"
        return refused(f"{none} in this database", form, 404)
    rows = Rows(page.csv_columns, page.in_order())
    return data(form_of(rows.records, rows, form), form)


def load_list(lookups: Lookups, kind: str, filters: ListFilters) -> ListPage:
    """Return the list of packages, of releases, or of stacks without `root`."""
    if kind == "packages":
        return load_packages(lookups, filters)
    records = lookups.releases if kind == "releases" else lookups.stacks
    rows = []
    for record in records.values():
        row = {}
        for field in RECORDS[kind]:
            # `spec_count` becomes `specs`.
            row[field.replace("_count", "s")] = getattr(record, field)
        # Stacks have no kind.
        has_kind = filters.kind in ("", row.get("kind"))
        if has_kind and filters.has_text(row["name"]):
            rows.append(row)
    return ListPage(kind, filters, tuple(rows), len(records), COLUMNS[kind])
