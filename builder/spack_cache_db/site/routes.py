"""Our own pages as Datasette routes: which address leads to which page.

Reading happens in Datasette's threads, one hop for each page; what a page shows is computed by
the modules beside this one.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode
from weakref import WeakKeyDictionary

from datasette.utils import sqlite_timelimit
from datasette.utils.asgi import Forbidden, NotFound, Response

from spack_cache_db.query.lookups import Lookups, read_lookups
from spack_cache_db.query.specs import hashes_beginning
from spack_cache_db.site import charts
from spack_cache_db.site.data_links import data_links, package_links
from spack_cache_db.site.download import send_file
from spack_cache_db.site.filters import LABELS, Filters, page_number
from spack_cache_db.site.find import load_find
from spack_cache_db.site.groups import load_release, load_stack
from spack_cache_db.site.home import load_home
from spack_cache_db.site.package import load_package
from spack_cache_db.site.permissions import ensure
from spack_cache_db.site.spec import (
    MOST_CANDIDATES,
    is_hash_prefix,
    load_candidates,
    load_spec,
)
from spack_cache_db.site.wrapper import OWN_PAGE

T = TypeVar("T")
Load = Callable[[sqlite3.Connection, Lookups], T]
Handler = Callable[..., Awaitable[Any]]

DATABASE = "spack-cache"
TIME_LIMIT_MS = 2_000
MOST_CACHED = 200

_lookups: WeakKeyDictionary[Any, Lookups] = WeakKeyDictionary()
_pages: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def published(datasette: Any) -> Any:
    """Return the database that the pages read: the published file."""
    if DATABASE in datasette.databases:
        return datasette.databases[DATABASE]
    files = (each for each in datasette.databases.values() if each.path)
    found = next(files, None)
    if found is None:
        raise NotFound("No database is served here.")
    return found


async def read(datasette: Any, load: Load[T]) -> T:
    """Run `load` in one of Datasette's threads, within a time limit."""
    database = published(datasette)

    def in_thread(conn: sqlite3.Connection) -> T:
        with sqlite_timelimit(conn, TIME_LIMIT_MS):
            if database not in _lookups:
                _lookups[database] = read_lookups(conn)
            return load(conn, _lookups[database])

    result: T = await database.execute_fn(in_thread)
    return result


async def read_once(datasette: Any, key: str, load: Load[T]) -> T:
    """Read like `read`, and keep the answer: the file does not change while it is served."""
    database = published(datasette)
    kept = _pages.setdefault(database, {})
    if key in kept and not database.is_mutable:
        found: T = kept[key]
        return found
    result = await read(datasette, load)
    if len(kept) < MOST_CACHED:
        kept[key] = result
    return result


async def render(
    datasette: Any, request: Any, template: str, context: dict[str, Any], status: int = 200
) -> Any:
    """Render one of our templates, with the headers of our own pages."""
    context = {"charts": charts, "labels": LABELS, "links": None, **context}
    html = await datasette.render_template(template, context, request=request)
    return Response.html(html, status=status, headers=dict(OWN_PAGE))


async def missing(datasette: Any, request: Any, what: str, text: str) -> Any:
    """Say that there is no such thing, and offer the search."""
    return await render(datasette, request, "missing.html", {"what": what, "text": text}, 404)


def redirect(datasette: Any, path: str, query: dict[str, str] | None = None) -> Any:
    """Lead to another of our pages."""
    address = datasette.urls.path(path) + (f"?{urlencode(query)}" if query else "")
    return Response.redirect(address)


def pairs_of(request: Any) -> list[tuple[str, str]]:
    """Return the pairs of a request's query string, in order."""
    return parse_qsl(request.query_string, keep_blank_values=True, max_num_fields=200)


async def home(datasette: Any, request: Any) -> Any:
    """`/`."""
    database = published(datasette)
    page = await read_once(datasette, "home", load_home)
    context = {"page": page, "size": database.size, "sha256": database.hash}
    return await render(datasette, request, "home.html", context)


async def package(datasette: Any, request: Any) -> Any:
    """`/package/<name>`."""
    name, filters = unquote(request.url_vars["name"]), Filters.parse(pairs_of(request))
    page = await read(datasette, lambda conn, lookups: load_package(conn, lookups, name, filters))
    if page is None:
        return await missing(datasette, request, "package", name)
    links = package_links(published(datasette).name, name, filters)
    return await render(datasette, request, "package.html", {"page": page, "links": links})


async def spec(datasette: Any, request: Any) -> Any:
    """`/spec/<hash>`, or a prefix of it."""
    text, number = unquote(request.url_vars["hash"]).lower(), page_number(pairs_of(request))
    if not is_hash_prefix(text):
        return await missing(datasette, request, "spec", text)
    release = request.args.get("release")
    page = await read(
        datasette, lambda conn, lookups: load_spec(conn, lookups, text, number, release)
    )
    if page is not None:
        table = "build_listings" if page.listings else "specs"
        links = data_links(published(datasette).name, table, [("hash", text)])
        return await render(datasette, request, "spec.html", {"page": page, "links": links})
    return await candidates(datasette, request, text)


async def candidates(datasette: Any, request: Any, prefix: str) -> Any:
    """Lead to the only spec whose hash begins so, or list them."""
    hashes = await read(
        datasette, lambda conn, _: hashes_beginning(conn, prefix, MOST_CANDIDATES + 1)
    )
    if not hashes:
        return await missing(datasette, request, "spec", prefix)
    if len(hashes) == 1:
        return redirect(datasette, f"/spec/{hashes[0]}")
    shown = hashes[:MOST_CANDIDATES]
    found = await read(datasette, lambda conn, lookups: load_candidates(conn, lookups, shown))
    context = {"prefix": prefix, "candidates": found, "is_more": len(hashes) > MOST_CANDIDATES}
    return await render(datasette, request, "candidates.html", context)


async def release(datasette: Any, request: Any) -> Any:
    """`/release/<name>`."""
    return await listing_page(datasette, request, "release", load_release, "build_listings")


async def stack(datasette: Any, request: Any) -> Any:
    """`/stack/<name>`."""
    return await listing_page(datasette, request, "stack", load_stack, "spec_stacks")


async def listing_page(
    datasette: Any, request: Any, kind: str, load: Callable[..., object], view: str
) -> Any:
    """Show a release or a stack, whose rows are those of a view.

    Args:
        load: reads the page, given connection, lookups and name; None if there is none.
    """
    name = unquote(request.url_vars["name"])
    page = await read_once(
        datasette, f"{kind} {name}", lambda conn, lookups: load(conn, lookups, name)
    )
    if page is None:
        return await missing(datasette, request, kind, name)
    links = data_links(published(datasette).name, view, [(kind, name)], many=True)
    return await render(datasette, request, f"{kind}.html", {"page": page, "links": links})


async def find_page(datasette: Any, request: Any) -> Any:
    """`/find?q=`."""
    text, number = request.args.get("q") or "", page_number(pairs_of(request))
    page = await read(datasette, lambda conn, lookups: load_find(conn, lookups, text, number))
    if page.package is not None:
        return redirect(datasette, f"/package/{quote(page.package)}")
    if page.hashes:
        return redirect(datasette, f"/spec/{page.prefix}")
    return await render(datasette, request, "find.html", {"page": page, "search_text": text})


async def robots(datasette: Any, request: Any) -> Any:
    """`/robots.txt`: our pages may be read by crawlers; tables, SQL and filters are endless."""
    base = datasette.urls.path("/")
    closed = [f"/{published(datasette).name}", "/find", "/-/", "/*?"]
    lines = ["User-agent: *", *(f"Disallow: {base}{each.lstrip('/')}" for each in closed)]
    return Response.text("\n".join(lines) + "\n")


async def download(datasette: Any, request: Any, send: Any) -> None:
    """`/<database>.db`: the whole file, with length, entity tag and ranges."""
    database = datasette.databases.get(request.url_vars["database"])
    if database is None or not database.path or database.is_mutable:
        raise NotFound("There is no such file here.")
    if not datasette.setting("allow_download"):
        raise Forbidden("Downloading the file is turned off here.")
    await ensure(datasette, request.actor, "view-database-download", database.name)
    await send_file(request.scope, send, Path(database.path), f'"{database.hash}"')


def asset_version(folder: Path) -> str:
    """Return a text that changes when a style sheet or script changes."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


NAME = "(?P<name>.*[^/])"
"""A name may have a `/` in it, written so or as `%2F`."""

ROUTES: tuple[tuple[str, Handler], ...] = (
    (r"^/$", home),
    (r"^/find$", find_page),
    (rf"^/package/{NAME}$", package),
    (r"^/spec/(?P<hash>[^/]+)$", spec),
    (rf"^/release/{NAME}$", release),
    (rf"^/stack/{NAME}$", stack),
    (r"^/robots\.txt$", robots),
    (r"^/(?P<database>[^/]+)\.db$", download),
)
