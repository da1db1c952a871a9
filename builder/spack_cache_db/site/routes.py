"""The addresses of our own pages, and the function that answers each.

These functions take the site, a request and the names in the path, and return a
`PageResponse`. They are in `pages`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote

from spack_cache_db.errors import BuilderError
from spack_cache_db.site.addresses import check_fields, respelled
from spack_cache_db.site.filters import Filters, Narrowing
from spack_cache_db.site.page_request import PageRequest
from spack_cache_db.site.page_response import PageResponse
from spack_cache_db.site.pages.badges import badge, release_badge, site_badge
from spack_cache_db.site.pages.changes import compare, comparison
from spack_cache_db.site.pages.dependents import DependentsFields, dependents
from spack_cache_db.site.pages.feeds import Topic, changes_feed
from spack_cache_db.site.pages.files import FILES, file
from spack_cache_db.site.pages.list_page import ListFilters
from spack_cache_db.site.pages.lists import listed
from spack_cache_db.site.pages.names import suggest
from spack_cache_db.site.pages.overviews import CoverageFilters, about, home, overview
from spack_cache_db.site.pages.package import package, package_json
from spack_cache_db.site.pages.pasted_environment import cover
from spack_cache_db.site.pages.search import find, find_rows
from spack_cache_db.site.pages.sides import ALL, Sides
from spack_cache_db.site.pages.spec import binary, binary_json
from spack_cache_db.site.refusals import refused
from spack_cache_db.site.site import Site


class Route(NamedTuple):
    """The addresses of one kind of page.

    Attributes:
        pattern: the pattern of their paths. Its groups are arguments of the function:
            `package` is `hdf5` for `/package/hdf5`.
        handler: the function that makes the page.
        fields: the names of the fields that their query strings may have.
    """

    pattern: str
    handler: Callable[..., PageResponse]
    fields: tuple[str, ...] = ()


# A name may contain `/`, written as it is or as `%2F`; it does not end with one.
_PACKAGE = "(?P<package>.*[^/])"
_RELEASE = "(?P<release>.*[^/])"
_STACK = "(?P<stack>.*[^/])"
# The page, and the same as JSON and CSV.
_FORMS = r"(?:\.(?P<form>json|csv))?$"
# Files with fixed names, such as robots.txt.
_FILES = "|".join(re.escape(name) for name in FILES)

# Fields that several pages have: names that narrow an answer, such as `release`; the
# two sides of a comparison; and those of a list.
_NARROWING = Narrowing.names()
_SIDES = (*Sides.names(), ALL)
_LIST = ("q", "sort", "order", "page")

ROUTES: tuple[Route, ...] = (
    Route(r"^/$", home),
    Route(r"^/find$", find, ("q", *_NARROWING, "page", "open")),
    Route(r"^/find\.(?P<form>json|csv)$", find_rows, ("q", *_NARROWING)),
    Route(rf"^/cover{_FORMS}", cover, ("q", *_NARROWING, "toolchain")),
    Route(rf"^/dependents{_FORMS}", dependents, DependentsFields.names()),
    Route(r"^/(?P<of>feed|find)\.atom$", changes_feed, Topic.names()),
    Route(r"^/badge\.svg$", site_badge),
    Route(r"^/badge/release/(?P<release>.+)\.svg$", release_badge),
    Route(r"^/badge/(?P<package>.+)\.svg$", badge),
    Route(rf"^/(?P<subject>coverage)/{_RELEASE}$", overview, CoverageFilters.names()),
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
    Route(rf"^/(?P<name>{_FILES})$", file),
)
"""The first route whose pattern matches a path answers it."""


def route_of(path: str) -> int | None:
    """Return the index of the route of a path in `ROUTES`; None for a path of
    Datasette.
    """
    for number, route in enumerate(ROUTES):
        if re.match(route.pattern, path):
            return number
    return None


def respond(site: Site, number: int, request: PageRequest) -> PageResponse:
    """Return the answer of a route.

    Routes of JSON report errors as JSON, routes of CSV and feeds as text.

    Args:
        site: the site, over a connection.
        number: the index of the route in `ROUTES`.
        request: a request whose path the route matches.

    Raises:
        BadAddress: the route does not have a field of the address.
        BuilderError: the page has no answer; Datasette shows the error as a page.
    """
    route = ROUTES[number]
    match = re.match(route.pattern, request.path)
    assert match is not None
    check_fields(request, route.fields)

    # A browser sends all fields of a form, also the empty ones: lead it to an address
    # without these. A form that was sent with POST is not in the address.
    filled = [(name, value) for name, value in request.pairs if value]
    has_empty_fields = len(filled) < len(request.pairs)
    if has_empty_fields and request.form is None and not request.is_data:
        return site.redirect(request.path, filled)

    # Other spellings of a name lead to the usual one.
    redirect = respelled(site, request, request.pairs, match)
    if redirect is not None:
        return redirect

    if "host" in route.fields:
        request = replace(request, takes_machine=True)
    # A group that matches nothing, such as the form of a page, is None.
    arguments: dict[str, str | None] = {}
    for name, text in match.groupdict().items():
        arguments[name] = None if text is None else unquote(text)
    try:
        return route.handler(site, request, **arguments)
    except BuilderError as error:
        if not request.is_data:
            raise
        return refused(str(error), request.extension)
