"""The addresses of our own pages, and the function that answers each.

These functions take the site and a request, read records with the functions of `pages`,
and return a `PageResponse`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote

from spack_cache_db.errors import BuilderError
from spack_cache_db.site.addresses import check_fields, respelled
from spack_cache_db.site.filters import Filters, Narrowing
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.pages import overviews
from spack_cache_db.site.pages import sides as sides_module
from spack_cache_db.site.pages.changes import compare, comparison
from spack_cache_db.site.pages.feeds import Topic, changes_feed
from spack_cache_db.site.pages.files import FILES, file
from spack_cache_db.site.pages.lists import ListFilters, listed
from spack_cache_db.site.pages.names import suggest
from spack_cache_db.site.pages.overviews import about, home, overview
from spack_cache_db.site.pages.package import badge, package, package_json
from spack_cache_db.site.pages.pasted_environment import cover
from spack_cache_db.site.pages.search import find, find_rows
from spack_cache_db.site.pages.spec import binary, binary_json
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site


class Route(NamedTuple):
    """A page: the pattern of its path, its function, and the fields that its address
    may have.

    Groups of the pattern are arguments of the function.
    """

    pattern: str
    handler: Callable[..., PageResponse]
    fields: tuple[str, ...] = ()


def respond(site: Site, number: int, request: PageRequest) -> PageResponse:
    """Return the answer of a route, given by its index in `ROUTES`.

    Routes of JSON report errors as JSON, routes of CSV and feeds as text.

    Raises:
        BadAddress: the route does not have a field of the address.
    """
    route = ROUTES[number]
    match = re.match(route.pattern, request.path)
    assert match is not None
    check_fields(request, route.fields)
    filled = [pair for pair in request.pairs if pair[1]]
    if (
        len(filled) < len(request.pairs)
        and request.form is None
        and not request.is_data
    ):
        return site.redirect(request.path, filled)
    names = {
        name: value and unquote(value) for name, value in match.groupdict().items()
    }
    if (moved := respelled(site, request, request.pairs, match)) is not None:
        return moved
    try:
        return route.handler(site, request, **names)
    except BuilderError as error:
        if not request.is_data:
            raise
        return refused(str(error), request.path.rpartition(".")[2])


_PACKAGE, _RELEASE, _STACK = (
    f"(?P<{kind}>.*[^/])" for kind in ("package", "release", "stack")
)
"""A name may contain `/`, written as it is or as `%2F`."""
_FORMS = r"(?:\.(?P<form>json|csv))?$"
_NARROWING, _SIDES, _LIST = (
    Narrowing.names(),
    sides_module.Sides.names(),
    ("q", "sort", "order", "page"),
)
_COVERAGE = overviews.CoverageFilters.names()
ROUTES: tuple[Route, ...] = (
    Route(r"^/$", home),
    Route(r"^/find$", find, ("q", *_NARROWING, "page", "open")),
    Route(r"^/find\.(?P<form>json|csv)$", find_rows, ("q", *_NARROWING)),
    Route(rf"^/cover{_FORMS}", cover, ("q", *_NARROWING)),
    Route(r"^/(?P<of>feed|find)\.atom$", changes_feed, Topic.names()),
    Route(r"^/badge/(?P<package>.+)\.svg$", badge),
    Route(rf"^/(?P<subject>coverage)/{_RELEASE}$", overview, _COVERAGE),
    Route(r"^/diff$", compare, _SIDES),
    Route(rf"^/diff/(?P<old>.+?)\.\.\.(?P<new>.+?){_FORMS}", comparison, _SIDES),
    Route(rf"^/package/{_PACKAGE}\.json$", package_json),
    Route(rf"^/package/{_PACKAGE}$", package, (*Filters.names(), *_NARROWING)),
    Route(r"^/spec/(?P<hash>[^/]+)\.json$", binary_json, ("release",)),
    Route(r"^/spec/(?P<hash>[^/]+)$", binary, (*_NARROWING, "page")),
    Route(rf"^/(?P<subject>release)/{_RELEASE}$", overview),
    Route(rf"^/(?P<subject>stack)/{_STACK}$", overview),
    Route(rf"^/(?P<kind>packages){_FORMS}", listed, ListFilters.names()),
    Route(rf"^/(?P<kind>releases){_FORMS}", listed, (*_LIST, "kind")),
    Route(rf"^/(?P<kind>stacks){_FORMS}", listed, _LIST),
    Route(r"^/about$", about),
    Route(r"^/suggest\.json$", suggest, ("q",)),
    Route(rf"^/(?P<name>{'|'.join(map(re.escape, FILES))})$", file),
)


def route_of(path: str) -> int | None:
    """Return the index of the route of a path in `ROUTES`; None for a path of
    Datasette.
    """
    matches = (
        number for number, route in enumerate(ROUTES) if re.match(route.pattern, path)
    )
    return next(matches, None)
