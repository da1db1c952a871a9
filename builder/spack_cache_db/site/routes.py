"""The addresses of our own pages, and the function that answers each.

These functions take the site and a request, read records with the functions of `pages`, and return
a `PageResponse`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode

from spack_cache_db.errors import BuilderError, printable
from spack_cache_db.query.answers.diff import compare as compared
from spack_cache_db.query.answers.environment_commands import environment_commands
from spack_cache_db.query.answers.find import found_part, found_rows
from spack_cache_db.query.answers.why_not import why_in_time, why_not
from spack_cache_db.query.names.known import known_name, spec_in
from spack_cache_db.query.names.scope import UnknownNameError
from spack_cache_db.query.names.spellings import close_names
from spack_cache_db.query.rows import Rows, csv_text, json_text
from spack_cache_db.query.stored.configurations import configurations_beginning
from spack_cache_db.query.stored.gone import gone_of_package
from spack_cache_db.query.stored.package_data import newest_binary, read_package
from spack_cache_db.site.addresses import check_fields, respelled
from spack_cache_db.site.answers import PageRequest, PageResponse, Site, data, refused
from spack_cache_db.site.pages import changes, overviews, spec
from spack_cache_db.site.pages.feeds import Topic, load_feed
from spack_cache_db.site.pages.filters import (
    DataLinks,
    Filters,
    Narrowing,
    data_links,
    package_links,
)
from spack_cache_db.site.pages.lists import PAGE_ROWS, ListFilters, load_list
from spack_cache_db.site.pages.names import having, load_names, suggested
from spack_cache_db.site.pages.package import load_package
from spack_cache_db.site.pages.pasted_environment import covered
from spack_cache_db.site.pages.search import Elsewhere, Search, answer_of
from spack_cache_db.site.sandbox.sql_functions import parse

MOST_FORM_FIELDS = 20
LONGEST_LINK = 6_000
"""Limit of a query string with a pasted environment; most servers accept 8,000 characters."""
FOUND_AT_ONCE = 1_000
"""Configurations in one part of a stream of JSON or CSV."""


class Route(NamedTuple):
    """A page: the pattern of its path, its function, and the fields that its address may have.

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
    if len(filled) < len(request.pairs) and request.form is None and not request.is_data:
        return site.redirect(request.path, filled)
    names = {name: value and unquote(value) for name, value in match.groupdict().items()}
    if (moved := respelled(site, request, request.pairs, match)) is not None:
        return moved
    try:
        return route.handler(site, request, **names)
    except BuilderError as error:
        if not request.is_data:
            raise
        return refused(str(error), request.path.rpartition(".")[2])


def home(site: Site, request: PageRequest) -> PageResponse:
    """Return `/`."""
    page = overviews.load_home(site.lookups)
    look_day = site.look_day
    return site.page(request, "home.html", page=page, feed=Topic().feed, look_day=look_day)


def package(site: Site, request: PageRequest, package: str) -> PageResponse:
    """Return `/package/<name>`."""
    filters = Filters.parse(request.pairs)
    page = load_package(site.lookups, package, filters)
    if page is None:
        package_data = read_package(site.conn, package)
        if package_data is None:
            return missing(site, request, "package", package)
        name = known_name(site.lookups, package)
        return site.page(
            request, "unbuilt.html", data=package_data, known_name=name, shell_quoted=shlex.quote
        )
    links = package_links(site.settings.route, package, filters)
    feed = Topic(package=package).feed
    return site.page(request, "package.html", page=page, links=links, feed=feed)


def binary(site: Site, request: PageRequest, hash: str) -> PageResponse:
    """Return `/spec/<hash>`; for the beginning of a hash, a redirect or the specs that match."""
    number, release = request.args.get("page"), request.args.get("release")
    if not spec.is_hash_prefix(hash):
        return missing(site, request, "spec", hash)
    page = spec.load_spec(site.lookups, hash, number, release)
    if page is not None:
        table = "build_listings" if page.listings else "specs"
        links = data_links(site.settings.route, table, [("hash", hash)])
        narrowing = replace(Narrowing.parse(request.pairs), release=page.release)
        return site.page(request, "spec.html", page=page, links=links, narrowing=narrowing)
    specs = configurations_beginning(site.lookups, hash, spec.MOST_CANDIDATES)
    if not specs:
        return missing(site, request, "spec", hash)
    if len(specs) == 1:
        return site.redirect(f"/spec/{specs[0][0]}", request.pairs)
    return site.page(request, "candidates.html", prefix=hash, candidates=specs)


def binary_json(site: Site, request: PageRequest, hash: str) -> PageResponse:
    """Return `/spec/<hash>.json`: a binary, and how to install it; a short hash redirects."""
    record = spec.spec_record(site.lookups, hash, request.args.get("release"))
    if record is None and spec.is_hash_prefix(hash):
        specs = configurations_beginning(site.lookups, hash, 2)
        if len(specs) == 1 and specs[0][0] != hash:
            return site.redirect(f"/spec/{specs[0][0]}.json", request.pairs)
    if record is None:
        message = f"no spec in this database has the hash {hash!r}: give all 32 characters"
        return refused(message, "json", 404)
    return data(json_text(record), "json")


OVERVIEWS: dict[str, tuple[Callable[..., dict[str, Any]], str]] = {
    "release": (overviews.load_release, "build_listings"),
    "stack": (overviews.load_stack, "spec_stacks"),
    "coverage": (overviews.load_coverage, "release_counts"),
}
"""The functions of pages about a release or a stack, and the tables of their data."""


def overview(site: Site, request: PageRequest, subject: str, **names: str) -> PageResponse:
    """Return `/release/<name>`, `/stack/<name>` or `/coverage/<release>`."""
    load, table = OVERVIEWS[subject]
    ((kind, name),) = names.items()
    record = site.lookups.release(name) if kind == "release" else site.lookups.stack(name)
    if record is None:
        return missing(site, request, kind, name)
    page = load(site.lookups, record, request.pairs)
    links = data_links(site.settings.route, table, [(kind, name)], many=True)
    feed = Topic(stack=name).feed if kind == "stack" else None
    return site.page(
        request, f"{subject}.html", page=page, links=links, feed=feed, first_rows=PAGE_ROWS
    )


def listed(site: Site, request: PageRequest, kind: str, form: str | None) -> PageResponse:
    """Return `/packages`, `/releases` or `/stacks`, as a page, `.json` or `.csv`."""
    filters = ListFilters.parse(request.pairs)
    page = load_list(site.lookups, kind, filters)
    if form is not None:
        if page.notices:
            return refused(" ".join(page.notices), form)
        if not page.rows:
            none = f"none of {page.total:,} {kind} matches" if page.total else f"no {kind}"
            return refused(f"{none} in this database", form, 404)
        rows = Rows(page.csv_columns, page.in_order())
        return data(form_of(rows.records, rows, form), form)
    return site.page(
        request,
        "list.html",
        page=page,
        filters=filters,
        links=DataLinks.of_page(f"/{kind}", filters.address()) if page.rows else None,
        feed=Topic().feed if kind == "releases" else None,
    )


def about(site: Site, request: PageRequest) -> PageResponse:
    """Return `/about`."""
    page = overviews.load_about(site.lookups)
    look_day = site.look_day
    others = request.databases
    return site.page(request, "about.html", page=page, others=others, look_day=look_day)


def suggest(site: Site, request: PageRequest) -> PageResponse:
    """Return `/suggest.json?q=`: the names that contain a text."""
    return data(json_text(suggested(load_names(site.lookups), request.args.get("q", ""))), "json")


def find(site: Site, request: PageRequest) -> PageResponse:
    """Return `/find?q=`, or a redirect to the page that the text means."""
    text = (request.args.get("q") or "").strip()
    narrowing, number = Narrowing.parse(request.pairs), request.args.get("page")
    page = Search(site.lookups, narrowing, number, request.args.get("open")).result(text)
    if isinstance(page, Elsewhere):
        return site.redirect(*page)
    narrowing, is_spec = page.narrowing, page.answer is not None and page.reading is None
    has_rows = is_spec and page.answer and page.answer.rows
    query = f"?{urlencode([('q', text), *narrowing.pairs])}"
    topic = Topic(text, stack=narrowing.stack, host=narrowing.host)
    other_names = [
        name
        for name in having(load_names(site.lookups), text)
        if name.kind != "package" and f"-{text.lower()}" in f"-{name.name.lower()}"
    ]
    return site.page(
        request,
        "find.html",
        shell_quoted=shlex.quote,
        page=page,
        search_text=text,
        links=DataLinks.of_page("/find", query) if has_rows else None,
        narrowing=narrowing,
        others=other_names,
        feed=topic.feed if is_spec else None,
    )


def find_rows(site: Site, request: PageRequest, form: str) -> PageResponse:
    """Return rows of the command `find`, from `request.first` on, as `/find.json` or `.csv`."""
    lookups, narrowing = site.lookups, Narrowing.parse(request.pairs)
    query = parse(spec_in(lookups, request.args.get("q", ""), narrowing.spack).spec)
    scope = narrowing.scope(lookups)
    _, results = answer_of(lookups, query, scope)
    if not results.ids:
        why = why_in_time(why_not, lookups, query, scope)
        return refused("; ".join(why.reasons()), form, 404)
    stop = request.first + FOUND_AT_ONCE
    part = found_part(lookups, results, slice(request.first, stop), with_hashes=False)
    rows = found_rows(part, hashes=False)
    body, (start, between, last) = form_of(rows.records, rows, form), AROUND[form]
    body = body if request.first == 0 else between + body.removeprefix(start)
    if stop >= len(results.ids):
        return data(body, form)
    return data(body.removesuffix(last), form, following=stop)


AROUND = {"json": ("[\n", ",\n", "\n]"), "csv": (csv_text(found_rows((), hashes=False)), "", "")}
"""The text before the rows of `/find`, between two parts of them, and after them."""


def cover(site: Site, request: PageRequest, form: str | None) -> PageResponse:
    """Return `/cover`, `.json` or `.csv`; a short form is redirected to its address."""
    sent = request.query if request.form is None else request.form
    try:
        pairs = parse_qsl(sent, keep_blank_values=True, max_num_fields=MOST_FORM_FIELDS)
    except ValueError:
        return refused(f"the form has more than {MOST_FORM_FIELDS} fields", None, 413)
    # Browsers add carriage returns to the lines of a form.
    text = dict(reversed(pairs)).get("q", "").replace("\r\n", "\n")
    narrowing, answer, error = Narrowing.parse(pairs), None, None
    if form is not None:
        answer = covered(site.lookups, text, narrowing)
        return data(form_of(answer.as_dict(), answer.rows, form), form)
    fields = [("q", text), *narrowing.pairs]
    is_short = len(urlencode(fields)) <= LONGEST_LINK
    if request.form is not None and is_short:
        return site.redirect("/cover", fields, status=303)
    try:
        answer = covered(site.lookups, text, narrowing) if text.strip() else None
    except BuilderError as unreadable:
        error = str(unreadable)
    return site.page(
        request,
        "cover.html",
        cover=answer,
        error=error,
        install=environment_commands(site.lookups, answer) if answer else None,
        pasted=text,
        narrowing=narrowing,
        is_short=is_short,
        quoted=shlex.quote,
    )


def comparison(
    site: Site, request: PageRequest, old: str, new: str, form: str | None
) -> PageResponse:
    """Return `/diff/<old>...<new>`, as a page, `.json` or `.csv`."""
    sides = replace(changes.Sides.parse(request.pairs), old=old, new=new)
    try:
        found = compared(site.lookups, **asdict(sides))
    except UnknownNameError as error:
        if form is not None:
            raise
        return site.page(request, "changes.html", sides=sides, error=str(error), status=404)
    if form is not None:
        if (count := len(found.amounts)) > changes.MOST_LISTED:
            return refused(changes.TOO_MANY.format(count, changes.MOST_LISTED), form)
        if not any(found.specs):
            neither = "neither {} nor {} has such a binary: nothing is compared"
            return refused(neither.format(*found.sides), form, 404)
        diff = found.in_words(changes.MOST_EXPLAINED)
        return data(form_of(diff.as_dict(), diff.rows, form), form)
    page = changes.load_changes(site.lookups, found, sides.package)
    topic = Topic(package=sides.package, stack=sides.stack, host=sides.host)
    links = DataLinks(None, sides.address("json"), sides.address("csv"))
    return site.page(request, "changes.html", page=page, sides=sides, links=links, feed=topic.feed)


def form_of(document: Any, rows: Rows, form: str) -> str:
    """Return a document as JSON, or its rows as CSV."""
    return json_text(document) if form == "json" else csv_text(rows)


def compare(site: Site, request: PageRequest) -> PageResponse:
    """Return `/diff`, the form that chooses two releases, or a redirect to their comparison."""
    sides = changes.Sides.parse(request.pairs)
    if sides.old and sides.new:
        return site.redirect(sides.address())
    sides = changes.with_defaults(site.lookups, sides)
    latest = changes.latest_changes(site.lookups)
    return site.page(request, "compare.html", sides=sides, latest=latest)


def changes_feed(site: Site, request: PageRequest, of: str) -> PageResponse:
    """Return `/feed.atom` (of everything, a package or a stack) or `/find.atom?q=`."""
    topic = Topic.parse(request.pairs)
    if (of == "find") != (topic.q is not None):
        return refused("the feed of a spec is /find.atom?q=SPEC", None)
    feed = load_feed(site.lookups, topic)
    return site.page(request, "feed.xml", page=feed, topic=topic, printable=printable, kind="atom")


def package_json(site: Site, request: PageRequest, package: str) -> PageResponse:
    """Return `/package/<name>.json`: the number of binaries, and Spack's data about the package."""
    package_data = read_package(site.conn, package)
    if package_data is None:
        return refused(known_name(site.lookups, package).sentence, "json", 404)
    return data(json_text(package_data.as_dict()), "json")


def badge(site: Site, request: PageRequest, package: str) -> PageResponse:
    """Return `/badge/<package>.svg`, a picture for a README."""
    text = newest_binary(site.conn, package)
    if text is None and gone_of_package(site.conn, package) is not None:
        text = "gone from its mirror"
    if text is None:
        return missing(site, request, "package", package)
    return site.page(request, "badge.svg", package=package, text=text, kind="svg")


FILES = {"robots.txt": "text", "sitemap.xml": "xml", "opensearch.xml": "opensearch"}
"""Files for crawlers and browsers, which are templates, and their types."""


def file(site: Site, request: PageRequest, name: str) -> PageResponse:
    """Return one of `FILES`."""
    names = partial(load_names, site.lookups)
    return site.page(request, name, kind=FILES[name], names=names)


def missing(site: Site, request: PageRequest, kind: str, text: str) -> PageResponse:
    """Return a page about a name that does not exist, with similar names and the search."""
    package = known_name(site.lookups, text) if kind == "package" else None
    known = (name.name for name in load_names(site.lookups) if name.kind == kind)
    close = package.others if package else close_names(text, known, 0.6)
    return site.page(
        request, "missing.html", 404, what=kind, text=text, close=close, known_name=package
    )


_PACKAGE, _RELEASE, _STACK = (f"(?P<{kind}>.*[^/])" for kind in ("package", "release", "stack"))
"""A name may contain `/`, written as it is or as `%2F`."""
_FORMS = r"(?:\.(?P<form>json|csv))?$"
_NARROWING, _SIDES, _LIST = Narrowing.names(), changes.Sides.names(), ("q", "sort", "order", "page")
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
    """Return the index of the route of a path in `ROUTES`; None for a path of Datasette."""
    matches = (number for number, route in enumerate(ROUTES) if re.match(route.pattern, path))
    return next(matches, None)
