"""Our own pages: which address leads to which function, and what each answers.

The functions run in worker processes. Each takes the site and a request, reads records with the
functions of `pages`, and returns an `Answer`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from itertools import chain, islice
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

from spack_cache_db.errors import BuilderError
from spack_cache_db.query.answers import found_part, found_rows
from spack_cache_db.query.names import known_name, read_spellings
from spack_cache_db.query.packages import PackageData, read_binaries, read_package_data
from spack_cache_db.query.words import Reading
from spack_cache_db.row_forms import Rows, csv_text, json_text
from spack_cache_db.site.addresses import check_fields, respelled, spans_of
from spack_cache_db.site.answers import (
    PAGES,
    SEARCH,
    Answer,
    Kind,
    Request,
    Site,
    data,
    moved,
    refused,
)
from spack_cache_db.site.pages.changes import (
    Sides,
    difference_of,
    latest_changes,
    load_changes,
    with_defaults,
)
from spack_cache_db.site.pages.coverage import CoverageFilters, load_coverage
from spack_cache_db.site.pages.dependency_tree import tree_rows
from spack_cache_db.site.pages.feeds import Topic, load_feed
from spack_cache_db.site.pages.filters import (
    DataLinks,
    Filters,
    Narrowing,
    data_links,
    package_links,
    page_number,
)
from spack_cache_db.site.pages.home import load_about, load_home
from spack_cache_db.site.pages.lists import (
    PAGE_ROWS,
    ListFilters,
    classes,
    list_rows,
    load_releases,
    load_stacks,
)
from spack_cache_db.site.pages.names import (
    having,
    load_close,
    load_names,
    named,
    suggested,
)
from spack_cache_db.site.pages.package import load_badge, load_package
from spack_cache_db.site.pages.package_status import load_package_list
from spack_cache_db.site.pages.pasted_environment import (
    MOST_FORM_FIELDS,
    covered,
    load_cover,
    pasted_text,
)
from spack_cache_db.site.pages.releases_and_stacks import load_release, load_stack
from spack_cache_db.site.pages.search import (
    asked_spec,
    kept_matching,
    kept_question,
    load_find,
    page_filters,
    reasons_of,
)
from spack_cache_db.site.pages.spec import (
    MOST_CANDIDATES,
    is_hash_prefix,
    load_candidates,
    load_spec,
    spec_line,
)
from spack_cache_db.site.sandbox.sql_functions import parse

LONGEST_LINK = 6_000
"""Characters of an address to which a pasted text leads; most servers take eight thousand."""
FOUND_AT_ONCE = 1_000
"""Configurations that are read and sent at once as JSON or CSV."""
SITEMAP_PAGES = ("", "packages", "releases", "stacks", "about")
MOST_ADDRESSES = 50_000
"""A sitemap may have no more (sitemaps.org, "Sitemaps XML format")."""
MOST_OF_NAME = 16
"""Characters of a short name (OpenSearch 1.1)."""

SITEMAP = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{urls}</urlset>
"""
OPENSEARCH = """<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
<ShortName>{name}</ShortName>
<Description>Search Spack packages: {title}</Description>
<InputEncoding>UTF-8</InputEncoding>
<Url type="text/html" template="{find}?q={{searchTerms}}"/>
</OpenSearchDescription>
"""

Names = tuple[str, ...]
Handler = Callable[..., Answer]


class Route(NamedTuple):
    """A page: the pattern of its path, its function, and the fields that its address may have.

    Groups of the pattern are arguments of the function.
    """

    pattern: str
    handler: Handler
    fields: tuple[str, ...] = ()
    kind: Kind = PAGES


def respond(site: Site, number: int, request: Request) -> Answer:
    """Return the answer of the route with this number.

    Where the answer would be JSON or CSV, an error of the program is refused in that form.

    Raises:
        BadAddress: the route does not know a field of the address.
    """
    route = ROUTES[number]
    found = re.match(route.pattern, request.path)
    if found is None:
        raise ValueError(f"{request.path} is no address of {route.pattern}")
    check_fields(request, route.fields)
    filled = [pair for pair in request.pairs if pair[1]]
    if len(filled) < len(request.pairs) and request.form is None and not request.is_data:
        query = f"?{urlencode(filled)}" if filled else ""
        return moved(site.urls.path(request.path) + query, 302)
    if (answer := respelled(site, request.path, spans_of(found), request.pairs)) is not None:
        return answer
    names = {name: value and unquote(value) for name, value in found.groupdict().items()}
    try:
        return route.handler(site, request, **names)
    except BuilderError as error:
        if (form := names.get("form")) is None:
            raise
        return refused(str(error), form)


def home(site: Site, request: Request) -> Answer:
    """`/`."""
    context = {"page": load_home(site.lookups), "size": site.settings.size, "feed": Topic().feed}
    return site.page(request, "home.html", context)


def package(site: Site, request: Request, package: str) -> Answer:
    """`/package/<name>`."""
    filters = Filters.parse(request.pairs)
    page = load_package(site.lookups, package, filters)
    if page is None:
        known = read_package(site, package)
        if known is None:
            return missing(site, request, "package", package)
        words = {"data": known, "known_name": known_name(site.lookups, package)}
        return site.page(request, "unbuilt.html", words)
    links = package_links(site.settings.route, package, filters)
    context = {"page": page, "links": links, "feed": Topic(package=package).feed}
    return site.page(request, "package.html", context)


def read_package(site: Site, name: str) -> PackageData | None:
    """Return what is known of a package; None if the database has nothing of it."""
    return read_package_data(site.conn, name) or read_binaries(site.conn, name)


def spec(site: Site, request: Request, hash: str) -> Answer:
    """`/spec/<hash>`, or a prefix of it: the only spec that has it, or a list of them."""
    text, number = hash.lower(), page_number(request.args.get("page"))
    if not is_hash_prefix(text):
        return missing(site, request, "spec", text)
    page = load_spec(site.lookups, text, number, request.args.get("release"))
    if page is None:
        return candidates(site, request, text)
    table = "build_listings" if page.listings else "specs"
    links = data_links(site.settings.route, table, [("hash", text)])
    narrowing = replace(Narrowing.parse(request.pairs), release=page.release)
    context = {"page": page, "links": links, "tree_rows": tree_rows, "narrowing": narrowing}
    return site.page(request, "spec.html", context)


def candidates(site: Site, request: Request, prefix: str) -> Answer:
    """Return the specs whose hash begins so."""
    found = load_candidates(site.lookups, prefix)
    if not found:
        return missing(site, request, "spec", prefix)
    if len(found) == 1:
        return site.redirect(f"/spec/{found[0].hash}")
    is_more = len(found) > MOST_CANDIDATES
    context = {"prefix": prefix, "candidates": found[:MOST_CANDIDATES], "is_more": is_more}
    return site.page(request, "candidates.html", context)


def release(site: Site, request: Request, release: str) -> Answer:
    """`/release/<name>`."""
    page = load_release(site.lookups, release)
    if page is None:
        return missing(site, request, "release", release)
    pairs = [("release", release)]
    links = data_links(site.settings.route, "build_listings", pairs, many=True)
    return site.page(
        request, "release.html", {"page": page, "links": links, "first_rows": PAGE_ROWS}
    )


def stack(site: Site, request: Request, stack: str) -> Answer:
    """`/stack/<name>`."""
    page = load_stack(site.lookups, stack)
    if page is None:
        return missing(site, request, "stack", stack)
    links = data_links(site.settings.route, "spec_stacks", [("stack", stack)], many=True)
    context = {"page": page, "links": links, "feed": Topic(stack=stack).feed}
    return site.page(request, "stack.html", context | {"first_rows": PAGE_ROWS})


LISTED = {"packages": load_package_list, "releases": load_releases, "stacks": load_stacks}


def listed(site: Site, request: Request, kind: str, form: str | None) -> Answer:
    """`/packages`, `/releases` and `/stacks`; as a page, `.json` or `.csv`."""
    asked = ListFilters.parse(request.pairs)
    page = LISTED[kind](site.lookups, asked)
    if form is not None:
        if page.notices:
            return refused(" ".join(page.notices), form)
        if not page.rows:
            none = (
                f"none of {page.total:,} {kind} matches" if page.total else f"there are no {kind}"
            )
            return refused(f"{none} in this database", form, 404)
        rows = Rows(page.csv_columns, page.in_order())
        return data(form_of(rows.records, rows, form), form)
    body = list_rows(page, site.urls.path(f"/{page.kind.removesuffix('s')}/"))
    context: dict[str, Any] = {"page": page, "asked": page.asked, "rows": body, "classes": classes}
    context["links"] = DataLinks.of_page(f"/{kind}", asked.address()) if page.rows else None
    context["feed"] = Topic().feed if kind == "releases" else None
    return site.page(request, "list.html", context)


def about(site: Site, request: Request) -> Answer:
    """`/about`."""
    context = {"page": load_about(site.lookups), "others": request.databases}
    context |= {"size": site.settings.size, "sha256": site.settings.sha256}
    return site.page(request, "about.html", context)


def suggest(site: Site, request: Request) -> Answer:
    """`/suggest.json?q=`: the names that have the text in them."""
    return data(json_text(suggested(names_of(site), request.args.get("q", ""))), "json")


def names_of(site: Site) -> Any:
    """Return all names, which are read once."""
    return site.lookups.once(load_names, lambda: load_names(site.lookups))


def to_package(
    site: Site, name: str, narrowing: Narrowing, filters: Sequence[tuple[str, str]] = ()
) -> Answer:
    """Lead to the page of a package, or to its rows where the page would show more."""
    if narrowing.explicit:
        return site.redirect("/find", [("q", f"{name}@:"), *narrowing.pairs])
    return site.redirect(f"/package/{quote(name)}", [*filters, *narrowing.pairs])


def find(site: Site, request: Request) -> Answer:
    """`/find?q=`."""
    text = (request.args.get("q") or "").strip()
    narrowing, lookups, names = Narrowing.parse(request.pairs), site.lookups, names_of(site)
    name = named(names, read_spellings(lookups), text)
    if name is not None:
        if name.kind == "package":
            return to_package(site, name.name, narrowing)
        return site.redirect(name.address)
    word = text.removeprefix("/").lower()
    searched = word if is_hash_prefix(word) else text
    number, opened = page_number(request.args.get("page")), request.args.get("open")
    page = load_find(lookups, searched, number, narrowing, opened)
    if page.reading is not None and page.is_elsewhere:
        return to_reading(site, page.reading, narrowing)
    if page.package is not None:
        return to_package(site, page.package, narrowing)
    if page.hashes:
        kept = [("release", narrowing.release)] if narrowing.release else []
        return site.redirect(f"/spec/{page.prefix}", kept)
    if page.reading is not None:
        narrowing = narrowing.within(page.reading.release, page.reading.stack)
    has_rows = page.answer and page.answer.rows and page.reading is None
    query = f"?{urlencode([('q', text), *narrowing.pairs])}"
    links = DataLinks.of_page("/find", query) if has_rows else None
    is_spec = page.answer is not None and page.reading is None
    topic = Topic(text, stack=narrowing.stack, host=narrowing.host)
    context = {"page": page, "search_text": text, "links": links, "narrowing": narrowing}
    context["others"] = [
        each
        for each in having(names, text)
        if each.kind != "package" and f"-{text.lower()}" in f"-{each.name.lower()}"
    ]
    context["feed"] = topic.feed if is_spec else None
    return site.page(request, "find.html", context)


def to_reading(site: Site, reading: Reading, narrowing: Narrowing) -> Answer:
    """Lead to what words ask for: on their machine, and with no more than they say."""
    narrowing = narrowing.within(reading.release, reading.stack)
    narrowing = replace(narrowing, host=reading.host or narrowing.host)
    # One word is no spec: it may be the name of a package elsewhere, or describe several.
    is_word = len(reading.rest) == 1 and reading.spec in (reading.package, f"+{reading.rest[0]}")
    is_own = reading.package in map(str.lower, reading.rest)
    is_spec = not (reading.words or reading.left_out) and (is_own or not is_word)
    text = reading.spec if is_spec else " ".join(reading.rest)
    if not text:
        return site.redirect("/packages", narrowing.pairs)
    filters = page_filters(site.lookups, text, narrowing) if is_spec else None
    if filters is not None:
        return to_package(site, reading.package, narrowing, filters)
    return site.redirect("/find", [("q", text), *narrowing.pairs])


def find_rows(site: Site, request: Request, form: str) -> Answer:
    """`/find.json?q=` and `/find.csv?q=`: rows of the command `find`, from `request.first` on."""
    lookups, narrowing = site.lookups, Narrowing.parse(request.pairs)
    query = parse(asked_spec(lookups, request.args.get("q", ""), narrowing).spec)
    scope = narrowing.scope(lookups)
    results = kept_matching(lookups, kept_question(lookups, query, scope).conditions)
    if not results.ids:
        return refused("; ".join(reasons_of(lookups, query, scope)), form, 404)
    end = request.first + FOUND_AT_ONCE
    found = found_part(lookups, results, slice(request.first, end + 1), with_hashes=False)
    following = end if len(found) > FOUND_AT_ONCE else None
    rows = found_rows(found[:FOUND_AT_ONCE], hashes=False)
    body = form_of(rows.records, rows, form)
    start, between, last = AROUND[form]
    body = body if request.first == 0 else between + body.removeprefix(start)
    return data(body if following is None else body.removesuffix(last), form, following)


AROUND = {"json": ("[\n", ",\n", "\n]"), "csv": (csv_text(found_rows((), hashes=False)), "", "")}
"""What stands before the rows of `/find`, between two parts of them, and after them."""


def cover(site: Site, request: Request, form: str | None) -> Answer:
    """`/cover`: an environment in the address or in a form; as a page, `.json` or `.csv`.

    A form that is short leads to the address that asks the same.
    """
    pasted = pasted_text(request.query if request.form is None else request.form)
    if pasted is None:
        return refused(f"the form has more than {MOST_FORM_FIELDS} fields", None, 413)
    if form is not None:
        found = covered(site.lookups, pasted)
        return data(form_of(found.as_dict(), found.rows, form), form)
    is_short = len(pasted.text) <= LONGEST_LINK and len(pasted.query) <= LONGEST_LINK
    if request.form is not None and is_short:
        return site.redirect(f"/cover?{pasted.query}", status=303)
    page = load_cover(site.lookups, pasted)
    context = {"page": page, "pasted": pasted, "is_short": is_short}
    context |= {"spec_line": spec_line, "quoted": shlex.quote}
    return site.page(request, "cover.html", context)


def changes(site: Site, request: Request, old: str, new: str, form: str | None) -> Answer:
    """`/diff/<old>...<new>`: two releases, or stacks of them; as a page, `.json` or `.csv`."""
    sides = replace(Sides.parse(request.pairs), old=old, new=new)
    if form is not None:
        return changed_rows(site, sides, form)
    page = load_changes(site.lookups, sides)
    links = DataLinks(None, sides.address("json"), sides.address("csv"))
    context = {"page": page, "sides": sides, "links": None if page.error else links}
    topic = Topic(package=sides.package, stack=sides.stack, host=sides.host)
    context["feed"] = None if page.error else topic.feed
    return site.page(request, "changes.html", context, 404 if page.error else 200)


def changed_rows(site: Site, sides: Sides, form: str) -> Answer:
    """Return what the command `diff` prints with `--json` or `--csv`."""
    found = difference_of(site.lookups, sides)
    if not any(found.specs):
        nothing = f"neither {found.old} nor {found.new} has such a binary, so nothing is compared"
        return refused(nothing, form, 404)
    return data(form_of(found.as_dict(), found.rows, form), form)


def form_of(document: Any, rows: Rows, form: str) -> str:
    """Return a document as JSON, or its rows as CSV."""
    return json_text(document) if form == "json" else csv_text(rows)


def compare(site: Site, request: Request) -> Answer:
    """`/diff`: the form that chooses two releases, and where it leads."""
    sides = Sides.parse(request.pairs)
    if sides.old and sides.new:
        return site.redirect(sides.address())
    context = {"sides": with_defaults(site.lookups, sides), "latest": latest_changes(site.lookups)}
    return site.page(request, "compare.html", context)


def changes_feed(site: Site, request: Request, of: str) -> Answer:
    """`/feed.atom`, of a package or a stack as well, and `/find.atom?q=`."""
    # Only feeds need the library that writes them.
    from spack_cache_db.site.atom import atom

    topic = Topic.parse(request.pairs)
    if (of == "find") != (topic.q is not None):
        return refused("the feed of a spec is /find.atom?q=SPEC", None)
    found = load_feed(site.lookups, topic)
    if found.error is not None:
        return refused(found.error, None)
    return data(atom(found, topic, lambda path: site.absolute(request, path)), "atom")


def package_json(site: Site, request: Request, package: str) -> Answer:
    """`/package/<name>.json`: how many binaries a package has, and what Spack says of it."""
    found = read_package(site, package)
    if found is None:
        return refused(known_name(site.lookups, package).sentence, "json", 404)
    return data(json_text(found.as_dict()), "json")


def badge(site: Site, request: Request, package: str) -> Answer:
    """`/badge/<package>.svg`: a picture for a README."""
    text = load_badge(site.lookups, package)
    if text is None:
        return missing(site, request, "package", package)
    picture = site.page(request, "badge.svg", {"package": package, "text": text})
    return data(picture.body, "svg")


def coverage(site: Site, request: Request, release: str) -> Answer:
    """`/coverage/<release>`: which packages have binaries for what."""
    page = load_coverage(site.lookups, release, CoverageFilters.parse(request.pairs))
    if page is None:
        return missing(site, request, "release", release)
    pairs = [("release", release)]
    links = data_links(site.settings.route, "release_counts", pairs, many=True)
    return site.page(request, "coverage.html", {"page": page, "links": links})


def robots(site: Site, request: Request) -> Answer:
    """`/robots.txt`: our pages may be read by crawlers; tables, SQL and filters are endless."""
    base = site.urls.path("/")
    closed = [f"/{site.settings.route}", "/find", "/cover", "/diff", "/-/", "/*?"]
    lines = ["User-agent: *", *(f"Disallow: {base}{path.lstrip('/')}" for path in closed)]
    lines.append(f"Sitemap: {site.absolute(request, '/sitemap.xml')}")
    return data("\n".join(lines) + "\n", "text")


def sitemap(site: Site, request: Request) -> Answer:
    """`/sitemap.xml`: the lists, and every package, release and stack."""
    named_pages = (
        f"{name.kind}/{quote(name.name)}"
        for name in names_of(site)
        if name.kind in ("package", "release", "stack")
    )
    start = site.absolute(request, "/")
    urls = "".join(
        f"<url><loc>{escape(start + path)}</loc></url>\n"
        for path in islice(chain(SITEMAP_PAGES, named_pages), MOST_ADDRESSES)
    )
    return data(SITEMAP.format(urls=urls), "xml")


def opensearch(site: Site, request: Request) -> Answer:
    """`/opensearch.xml`: lets a browser search this site from its address bar."""
    title = site.facts.title
    name = title if len(title) <= MOST_OF_NAME else "Spack packages"
    address = site.absolute(request, "/find")
    text = OPENSEARCH.format(name=escape(name), title=escape(title), find=escape(address))
    return data(text, "opensearch")


def missing(site: Site, request: Request, what: str, text: str) -> Answer:
    """Return a page that says that there is no such thing, and offers the search."""
    context: dict[str, Any] = {"what": what, "text": text}
    context["close"] = load_close(site.lookups, what, text)
    if what == "package":
        context["known_name"] = known_name(site.lookups, text)
    return site.page(request, "missing.html", context, 404)


_PACKAGE, _RELEASE, _STACK = (f"(?P<{kind}>.*[^/])" for kind in ("package", "release", "stack"))
"""A name may have a `/` in it, written so or as `%2F`."""
_NARROWING, _SIDES, _LIST = Narrowing.names(), Sides.names(), ("q", "sort", "order", "page")
ROUTES: tuple[Route, ...] = (
    Route(r"^/$", home),
    Route(r"^/find$", find, ("q", *_NARROWING, "page", "open"), SEARCH),
    Route(r"^/find\.(?P<form>json|csv)$", find_rows, ("q", *_NARROWING), SEARCH),
    Route(r"^/cover(?:\.(?P<form>json|csv))?$", cover, ("q", *_NARROWING), SEARCH),
    Route(r"^/(?P<of>feed|find)\.atom$", changes_feed, Topic.names(), SEARCH),
    Route(r"^/badge/(?P<package>.+)\.svg$", badge),
    Route(rf"^/coverage/{_RELEASE}$", coverage, CoverageFilters.names(), SEARCH),
    Route(r"^/diff$", compare, _SIDES),
    Route(
        r"^/diff/(?P<old>.+?)\.\.\.(?P<new>.+?)(?:\.(?P<form>json|csv))?$", changes, _SIDES, SEARCH
    ),
    Route(rf"^/package/{_PACKAGE}\.json$", package_json),
    Route(rf"^/package/{_PACKAGE}$", package, (*Filters.names(), *_NARROWING)),
    Route(r"^/spec/(?P<hash>[^/]+)$", spec, (*_NARROWING, "page")),
    Route(rf"^/release/{_RELEASE}$", release),
    Route(rf"^/stack/{_STACK}$", stack),
    Route(r"^/(?P<kind>packages)(?:\.(?P<form>json|csv))?$", listed, ListFilters.names()),
    Route(r"^/(?P<kind>releases)(?:\.(?P<form>json|csv))?$", listed, (*_LIST, "kind")),
    Route(r"^/(?P<kind>stacks)(?:\.(?P<form>json|csv))?$", listed, _LIST),
    Route(r"^/about$", about),
    Route(r"^/suggest\.json$", suggest, ("q",)),
    Route(r"^/robots\.txt$", robots),
    Route(r"^/sitemap\.xml$", sitemap),
    Route(r"^/opensearch\.xml$", opensearch),
)

_PATTERNS = [re.compile(route.pattern) for route in ROUTES]


def route_of(path: str) -> int | None:
    """Return the number of the route of a path; None where it is none of ours."""
    numbers = (number for number, pattern in enumerate(_PATTERNS) if pattern.match(path))
    return next(numbers, None)
