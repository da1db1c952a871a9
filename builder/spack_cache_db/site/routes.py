"""The catalogue's own pages as Datasette routes: which address leads to which page.

What a page shows is computed in the sandbox, by the functions of `pages` and `loaders`; here it is
rendered.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

from datasette.utils import tilde_decode
from datasette.utils.asgi import Forbidden, NotFound, Response

from spack_cache_db.query.answers import found_rows
from spack_cache_db.query.package_names import known_name
from spack_cache_db.query.spellings import read_spellings
from spack_cache_db.query.words import read_words
from spack_cache_db.row_forms import csv_text, json_text
from spack_cache_db.site.addresses import check_own_page, pairs_of
from spack_cache_db.site.catalogues import data_path, others, published
from spack_cache_db.site.datasettes import Handler, ensure, may_view, permitted, rendered
from spack_cache_db.site.delivery import is_as_it_was, send_file
from spack_cache_db.site.discovery import opensearch, robots, sitemap
from spack_cache_db.site.loaders import (
    LISTED,
    Data,
    changes_data,
    cover_data,
    data_of,
    find_data,
    list_data,
    package_data,
    spec_page,
)
from spack_cache_db.site.middleware import OWN_PAGE
from spack_cache_db.site.pages.changes import Sides, load_changes
from spack_cache_db.site.pages.dependency_tree import tree_rows
from spack_cache_db.site.pages.feeds import Topic, load_feed
from spack_cache_db.site.pages.filters import (
    HIDEABLE,
    LABELS,
    DataLinks,
    Filters,
    Narrowing,
    data_links,
    package_links,
    page_number,
)
from spack_cache_db.site.pages.gaps import CoverageFilters, load_gaps
from spack_cache_db.site.pages.groups import load_release, load_stack
from spack_cache_db.site.pages.home import load_about, load_home
from spack_cache_db.site.pages.lists import PAGE_ROWS, ListFilters, classes, list_rows
from spack_cache_db.site.pages.names import (
    having,
    load_close,
    load_names,
    load_virtuals,
    named,
    suggested,
)
from spack_cache_db.site.pages.package import load_badge, load_package
from spack_cache_db.site.pages.pasted_environment import (
    MOST_FORM_FIELDS,
    load_cover,
    load_pasted,
    pasted_text,
)
from spack_cache_db.site.pages.search import load_find
from spack_cache_db.site.pages.spec import MOST_CANDIDATES, is_hash_prefix
from spack_cache_db.site.sandbox.database import Load, read, read_once

FORM_TYPE = "application/x-www-form-urlencoded"
LONGEST_LINK = 6_000
"""Characters of an address to which a pasted text leads; most servers take eight thousand."""
FOUND_AT_ONCE = 1_000
"""Configurations that are read and sent at once as JSON or CSV."""

_AROUND = {"json": ("[\n", ",\n", "\n]"), "csv": (csv_text(found_rows((), hashes=False)), "", "")}
"""What stands before the rows of `/find`, between two parts of them, and after them."""
_KINDS = {
    "atom": "application/atom+xml; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json; charset=utf-8",
    "svg": "image/svg+xml; charset=utf-8",
}
_GROUPS: dict[str, tuple[Load[[str], Any], str]] = {
    "release": (load_release, "build_listings"),
    "stack": (load_stack, "spec_stacks"),
}
"""What loads the page of a release and of a stack, and the view that has its rows."""


async def home(datasette: Any, request: Any) -> Any:
    """`/`."""
    database = published(datasette)
    page = await read_once(datasette, load_home)
    beside = [each for each in others(datasette) if await may_view(datasette, request.actor, each)]
    context = {"page": page, "size": database.size, "sha256": database.hash, "others": beside}
    context["feed"] = Topic().feed
    return await render(datasette, request, "home.html", context)


async def package(datasette: Any, request: Any) -> Any:
    """`/package/<name>`."""
    name, filters = unquote(request.url_vars["package"]), Filters.parse(pairs_of(request))
    page = await read(datasette, load_package, name, filters)
    if page is None:
        known = await read(datasette, package_data, name)
        if known is None:
            return await missing(datasette, request, "package", name)
        words = {"data": known, "known_name": await read(datasette, known_name, name)}
        return await render(datasette, request, "unbuilt.html", words)
    links = package_links(data_path(datasette), name, filters)
    context = {"page": page, "links": links, "feed": Topic(package=name).feed}
    return await render(datasette, request, "package.html", context)


async def spec(datasette: Any, request: Any) -> Any:
    """`/spec/<hash>`, or a prefix of it: the only spec that has it, or a list of them."""
    text, number = unquote(request.url_vars["hash"]).lower(), page_number(request.args.get("page"))
    page: Any = ()
    if is_hash_prefix(text):
        page = await read(datasette, spec_page, text, number, request.args.get("release"))
    if not page:
        return await missing(datasette, request, "spec", text)
    if isinstance(page, tuple):
        if len(page) == 1:
            return redirect(datasette, f"/spec/{page[0].hash}")
        shown, is_more = page[:MOST_CANDIDATES], len(page) > MOST_CANDIDATES
        context = {"prefix": text, "candidates": shown, "is_more": is_more}
        return await render(datasette, request, "candidates.html", context)
    table = "build_listings" if page.listings else "specs"
    links = data_links(data_path(datasette), table, [("hash", text)])
    narrowing = replace(Narrowing.parse(pairs_of(request)), release=page.release)
    context = {"page": page, "links": links, "tree_rows": tree_rows, "narrowing": narrowing}
    return await render(datasette, request, "spec.html", context)


async def group(datasette: Any, request: Any) -> Any:
    """`/release/<name>` and `/stack/<name>`."""
    ((kind, name),) = request.url_vars.items()
    name = unquote(name)
    load, view = _GROUPS[kind]
    page: Any = await read_once(datasette, load, name)
    if page is None:
        return await missing(datasette, request, kind, name)
    links = data_links(data_path(datasette), view, [(kind, name)], many=True)
    feed = Topic(stack=name).feed if kind == "stack" else None
    context = {"page": page, "links": links, "feed": feed, "first_rows": PAGE_ROWS}
    return await render(datasette, request, f"{kind}.html", context)


async def listed(datasette: Any, request: Any) -> Any:
    """`/packages`, `/releases` and `/stacks`; as a page, `.json` or `.csv`."""
    asked, form = ListFilters.parse(pairs_of(request)), request.url_vars["form"]
    kind = request.url_vars["kind"]
    if form is not None:
        return data(await read(datasette, list_data, kind, asked, form), form)
    page = await read(datasette, LISTED[kind], asked)
    rows = list_rows(page, datasette.urls.path(f"/{page.kind.removesuffix('s')}/"))
    links = DataLinks.of_page(f"/{kind}", asked.address()) if page.rows else None
    feed = Topic().feed if kind == "releases" else None
    words = {"rows": rows, "classes": classes, "links": links, "feed": feed}
    context = {"page": page, "asked": page.asked, **words}
    return await render(datasette, request, "list.html", context)


async def about(datasette: Any, request: Any) -> Any:
    """`/about`."""
    page = await read_once(datasette, load_about)
    return await render(datasette, request, "about.html", {"page": page})


async def suggest(datasette: Any, request: Any) -> Any:
    """`/suggest.json?q=`: the names that have the text in them."""
    names = await read_once(datasette, load_names)
    return Response.json(suggested(names, request.args.get("q") or ""))


def _to_package(datasette: Any, name: str, narrowing: Narrowing) -> Any:
    """Lead to the page of a package, or to its rows where the page would show more."""
    if narrowing.explicit:
        return redirect(datasette, "/find", {"q": f"{name}@:", **dict(narrowing.pairs)})
    return redirect(datasette, f"/package/{quote(name)}", dict(narrowing.pairs))


async def find(datasette: Any, request: Any) -> Any:
    """`/find?q=`."""
    text = (request.args.get("q") or "").strip()
    narrowing = Narrowing.parse(pairs_of(request))
    names = await read_once(datasette, load_names)
    spellings = await read_once(datasette, read_spellings)
    virtuals = await read_once(datasette, load_virtuals)
    is_virtual = spellings.canonical("virtual", text) in virtuals
    name, parts = named(names, spellings, text), [] if is_virtual else having(names, text)
    if name is not None:
        if name.kind == "package":
            return _to_package(datasette, name.name, narrowing)
        return redirect(datasette, name.address, {})
    word = text.removeprefix("/").lower()
    text = word if is_hash_prefix(word) else text
    if parts and text != word:
        reading = await read(datasette, read_words, text)
        listed = {"names": parts, "search_text": text, "reading": reading, "narrowing": narrowing}
        return await render(datasette, request, "names.html", listed)
    number, opened = page_number(request.args.get("page")), request.args.get("open")
    page = await read(datasette, load_find, text, number, narrowing, opened)
    if page.reading is not None:
        narrowing = narrowing.within(page.reading.release, page.reading.stack)
        if page.answer is None and not page.reading.spec:
            return redirect(datasette, "/packages", dict(narrowing.pairs))
        if page.answer is None:
            return redirect(datasette, "/find", {"q": page.reading.spec, **dict(narrowing.pairs)})
    if page.package is not None:
        return _to_package(datasette, page.package, narrowing)
    if page.hashes:
        kept = {"release": narrowing.release} if narrowing.release else {}
        return redirect(datasette, f"/spec/{page.prefix}", kept)
    if parts:
        listed = {"names": parts, "search_text": text, "narrowing": narrowing}
        return await render(datasette, request, "names.html", listed)
    has_rows = page.answer and page.answer.rows and page.reading is None
    query = f"?{urlencode([('q', text), *narrowing.pairs])}"
    links = DataLinks.of_page("/find", query) if has_rows else None
    is_spec = page.answer is not None and page.reading is None
    topic = Topic(text, stack=narrowing.stack, host=narrowing.host)
    context = {"page": page, "search_text": text, "links": links, "narrowing": narrowing}
    context["feed"] = topic.feed if is_spec else None
    return await render(datasette, request, "find.html", context)


async def find_rows(datasette: Any, request: Any, send: Any) -> Any:
    """`/find.json?q=` and `/find.csv?q=`: all rows of the command `find`, some at a time."""
    text, form = request.args.get("q") or "", request.url_vars["form"]
    asked = (find_data, text, Narrowing.parse(pairs_of(request)))
    found = await read(datasette, data_of, *asked, 0, FOUND_AT_ONCE, form)
    if not found.is_more:
        return data(found, form)

    async def following(first: int) -> Data:
        return await read(datasette, data_of, *asked, first, FOUND_AT_ONCE, form)

    await _send_parts(send, found, following, form)
    return None


async def _send_parts(
    send: Any, found: Data, following: Callable[[int], Awaitable[Data]], form: str
) -> None:
    """Send rows in parts; break the connection if one of them cannot be read.

    Args:
        send: sends the response.
        found: the first part.
        following: returns the part that begins after so many rows.
        form: json or csv.
    """
    start, between, end = _AROUND[form]
    headers = [*OWN_PAGE.items(), ("content-type", _KINDS[form])]
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": 200, "headers": encoded})
    body, first = found.body.removesuffix(end), FOUND_AT_ONCE
    while found.is_more:
        await send({"type": "http.response.body", "body": body.encode(), "more_body": True})
        try:
            found = await following(first)
        except Exception as error:
            # Without a last message, the server closes the connection.
            print(f"the rows of a search end early: {error!r:.500}", file=sys.stderr)
            return
        body = between + found.body.removeprefix(start).removesuffix(end)
        first += FOUND_AT_ONCE
    await send({"type": "http.response.body", "body": (body + end).encode()})


async def cover(datasette: Any, request: Any) -> Any:
    """`/cover`: an environment in the address or in a form; as a page, `.json` or `.csv`.

    A form that is short leads to the address that asks the same.
    """
    is_form = request.method == "POST"
    if is_form and not request.headers.get("content-type", FORM_TYPE).startswith(FORM_TYPE):
        advice = "curl --data-urlencode q@spack.yaml"
        said = f"Error: expected a form ({FORM_TYPE}) with the field q: {advice}\n"
        return Response.text(said, status=415)
    query = (await request.post_body()).decode("latin-1") if is_form else request.query_string
    is_long = len(query) > LONGEST_LINK
    pasted = await read(datasette, load_pasted, query) if is_long else pasted_text(query)
    if pasted is None:
        said = f"Error: the form has more than {MOST_FORM_FIELDS} fields\n"
        return Response.text(said, status=413)
    if (form := request.url_vars["form"]) is not None:
        return data(await read(datasette, data_of, cover_data, pasted, form), form)
    is_short = len(pasted.text) <= LONGEST_LINK and len(pasted.query) <= LONGEST_LINK
    if is_form and is_short:
        return Response.redirect(f"{datasette.urls.path('/cover')}?{pasted.query}", status=303)
    page = await read(datasette, load_cover, pasted)
    context = {"page": page, "pasted": pasted, "is_short": is_short}
    return await render(datasette, request, "cover.html", context)


async def changes(datasette: Any, request: Any) -> Any:
    """`/diff/<old>...<new>`: two releases, or stacks of them; as a page, `.json` or `.csv`."""
    old, new = (unquote(request.url_vars[side]) for side in ("old", "new"))
    sides = replace(Sides.parse(pairs_of(request)), old=old, new=new)
    if (form := request.url_vars["form"]) is not None:
        return data(await read(datasette, data_of, changes_data, sides, form), form)
    page = await read_once(datasette, load_changes, sides)
    links = DataLinks(None, sides.address("json"), sides.address("csv"))
    context = {"page": page, "sides": sides, "links": None if page.error else links}
    return await render(datasette, request, "changes.html", context, 404 if page.error else 200)


async def compare(datasette: Any, request: Any) -> Any:
    """`/diff?old=&new=`: where a form with two releases leads."""
    return redirect(datasette, Sides.parse(pairs_of(request)).address())


async def changes_feed(datasette: Any, request: Any) -> Any:
    """`/feed.atom`, of a package or a stack as well, and `/find.atom?q=`."""
    # Only feeds need the library that writes them.
    from spack_cache_db.site.discovery import atom

    topic = Topic.parse(pairs_of(request))
    if (request.url_vars["of"] == "find") != (topic.q is not None):
        return data(Data(error="the feed of a spec is /find.atom?q=SPEC"), "atom")
    found = await read_once(datasette, load_feed, topic)
    if found.error is not None:
        return data(Data(error=found.error), "atom")

    def absolute(path: str) -> str:
        return str(datasette.absolute_url(request, datasette.urls.path(path)))

    return data(Data(atom(found, topic, absolute)), "atom")


async def package_json(datasette: Any, request: Any) -> Any:
    """`/package/<name>.json`: how many binaries a package has, and what Spack says of it."""
    name = unquote(request.url_vars["package"])
    found = await read(datasette, package_data, name)
    if found is None:
        known = await read(datasette, known_name, name)
        return data(Data(error=known.sentence, status=404), "json")
    return data(Data(json_text(found.as_dict())), "json")


async def badge(datasette: Any, request: Any) -> Any:
    """`/badge/<package>.svg`: a picture for a README."""
    name = unquote(request.url_vars["package"])
    text = await read_once(datasette, load_badge, name)
    if text is None:
        return await missing(datasette, request, "package", name)
    picture = await rendered(datasette, request, "badge.svg", {"package": name, "text": text})
    return data(Data(picture), "svg")


async def coverage(datasette: Any, request: Any) -> Any:
    """`/coverage/<release>`: which packages have binaries for what."""
    name, asked = unquote(request.url_vars["release"]), CoverageFilters.parse(pairs_of(request))
    page = await read(datasette, load_gaps, name, asked)
    if page is None:
        return await missing(datasette, request, "release", name)
    links = data_links(data_path(datasette), "release_counts", [("release", name)], many=True)
    return await render(datasette, request, "coverage.html", {"page": page, "links": links})


async def download(datasette: Any, request: Any, send: Any) -> None:
    """`/<database>.db`: the whole file, with length, entity tag and ranges."""
    database = asked_database(datasette, request)
    if not database.path or database.is_mutable:
        raise NotFound("There is no such file here.")
    if not datasette.setting("allow_download"):
        raise Forbidden("Downloading the file is turned off here.")
    await ensure(datasette, request.actor, "view-database-download", database.name)
    path = Path(database.path)
    if not is_as_it_was(path):
        raise NotFound("The file has been overwritten; the server has to be started again.")
    await send_file(request.scope, send, path, f'"{database.hash}"')


def asked_database(datasette: Any, request: Any) -> Any:
    """Return the database that a request reads: the one that its address names, or the published.

    Raises:
        NotFound: there is none of that name.
        NoCatalogue: none is published.
    """
    name = request.url_vars.get("database")
    if name is None:
        return published(datasette)
    try:
        return datasette.get_database(route=tilde_decode(name))
    except KeyError:
        raise NotFound("There is no such file here.") from None


_PACKAGE, _RELEASE, _STACK = (f"(?P<{kind}>.*[^/])" for kind in ("package", "release", "stack"))
"""A name may have a `/` in it, written so or as `%2F`."""


class Route(NamedTuple):
    """A page: the pattern of its path, what answers, and the fields that its address may have."""

    pattern: str
    handler: Handler
    fields: tuple[str, ...] = ()


_NARROWING, _SIDES, _LIST = Narrowing.names(), Sides.names(), ("q", "sort", "order", "page")
ROUTES: tuple[Route, ...] = (
    Route(r"^/$", home),
    Route(r"^/find$", find, ("q", *_NARROWING, "page", "open")),
    Route(r"^/find\.(?P<form>json|csv)$", find_rows, ("q", *_NARROWING)),
    Route(r"^/cover(?:\.(?P<form>json|csv))?$", cover, ("q", *_NARROWING)),
    Route(r"^/(?P<of>feed|find)\.atom$", changes_feed, Topic.names()),
    Route(r"^/badge/(?P<package>.+)\.svg$", badge),
    Route(rf"^/coverage/{_RELEASE}$", coverage, CoverageFilters.names()),
    Route(r"^/diff$", compare, _SIDES),
    Route(r"^/diff/(?P<old>.+?)\.\.\.(?P<new>.+?)(?:\.(?P<form>json|csv))?$", changes, _SIDES),
    Route(rf"^/package/{_PACKAGE}\.json$", package_json),
    Route(rf"^/package/{_PACKAGE}$", package, (*Filters.names(), *_NARROWING)),
    Route(r"^/spec/(?P<hash>[^/]+)$", spec, (*_NARROWING, "page")),
    Route(rf"^/release/{_RELEASE}$", group),
    Route(rf"^/stack/{_STACK}$", group),
    Route(r"^/(?P<kind>packages)(?:\.(?P<form>json|csv))?$", listed, ListFilters.names()),
    Route(r"^/(?P<kind>releases)(?:\.(?P<form>json|csv))?$", listed, (*_LIST, "kind")),
    Route(r"^/(?P<kind>stacks)(?:\.(?P<form>json|csv))?$", listed, _LIST),
    Route(r"^/about$", about),
    Route(r"^/suggest\.json$", suggest, ("q",)),
    Route(r"^/robots\.txt$", robots),
    Route(r"^/sitemap\.xml$", sitemap),
    Route(r"^/opensearch\.xml$", opensearch),
    Route(r"^/(?P<database>[^/]+)\.db$", download),
)

_OWN = [re.compile(each.pattern) for each in ROUTES]


def is_own_page(path: str) -> bool:
    """Return whether a path is that of one of our pages."""
    return any(pattern.match(path) for pattern in _OWN)


def handler_of(route: Route) -> Handler:
    """Return what answers a route: for those who may view the database, and after a check."""
    check = partial(check_own_page, pattern=route.pattern, fields=route.fields)
    return permitted(route.handler, asked_database, check)


async def render(
    datasette: Any, request: Any, template: str, context: dict[str, Any], status: int = 200
) -> Any:
    """Render one of our templates, with the headers of our own pages."""
    words = {"labels": LABELS, "hideable": HIDEABLE}
    context = {"links": None, "feed": None, **words, **context}
    html = await rendered(datasette, request, template, context)
    return Response.html(html, status=status, headers=dict(OWN_PAGE))


def data(found: Data, form: str, headers: dict[str, str] | None = None) -> Any:
    """Return rows as JSON or CSV, or why there are none."""
    if found.error is None:
        named = {**OWN_PAGE, **(headers or {})}
        return Response(found.body, headers=named, content_type=_KINDS[form])
    if form == "json":
        said = {"ok": False, "error": found.error, "status": found.status}
        return Response.json(said, status=found.status, headers=dict(OWN_PAGE))
    return Response.text(f"Error: {found.error}\n", found.status, dict(OWN_PAGE))


async def missing(datasette: Any, request: Any, what: str, text: str) -> Any:
    """Say that there is no such thing, and offer the search."""
    close = await read(datasette, load_close, what, text)
    context: dict[str, Any] = {"what": what, "text": text, "close": close}
    if what == "package":
        context["known_name"] = await read(datasette, known_name, text)
    return await render(datasette, request, "missing.html", context, 404)


def redirect(datasette: Any, path: str, query: dict[str, str] | None = None) -> Any:
    """Lead to another of our pages."""
    address = datasette.urls.path(path) + (f"?{urlencode(query)}" if query else "")
    return Response.redirect(address)
