"""Our own pages as Datasette routes: which address leads to which page.

What a page shows is computed in `pages`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from datasette.utils.asgi import Forbidden, NotFound, Response

from spack_cache_db.query.catalogue import hashes_beginning
from spack_cache_db.site import list_routes
from spack_cache_db.site.cover_answer import answer_cover
from spack_cache_db.site.download import send_file
from spack_cache_db.site.pages.dependency_tree import tree_rows
from spack_cache_db.site.pages.filters import (
    Filters,
    Narrowing,
    data_links,
    found_links,
    package_links,
    page_number,
)
from spack_cache_db.site.pages.find import having, load_find, named
from spack_cache_db.site.pages.groups import load_release, load_stack
from spack_cache_db.site.pages.home import load_home
from spack_cache_db.site.pages.package import load_package
from spack_cache_db.site.pages.spec import (
    MOST_CANDIDATES,
    is_hash_prefix,
    load_candidates,
    load_spec,
)
from spack_cache_db.site.permissions import Handler, ensure
from spack_cache_db.site.reading import published, read, read_once
from spack_cache_db.site.rendering import missing, pairs_of, redirect, render


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
        context = {"page": page, "links": links, "tree_rows": tree_rows}
        return await render(datasette, request, "spec.html", context)
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
    pairs = pairs_of(request)
    text, narrowing = (request.args.get("q") or "").strip(), Narrowing.parse(pairs)
    names = await list_routes.names(datasette)
    name, parts = named(names, text), having(names, text)
    if name is not None:
        kept = dict(narrowing.pairs) if name.kind == "package" else {}
        return redirect(datasette, name.address, kept)
    word = text.removeprefix("/").lower()
    text = word if is_hash_prefix(word) else text
    listed = {"names": parts, "search_text": text}
    if parts and text != word:
        return await render(datasette, request, "names.html", listed)
    number, opened = page_number(pairs), request.args.get("open")
    page = await read(
        datasette,
        lambda conn, lookups: load_find(conn, lookups, text, number, narrowing, opened),
    )
    if page.package is not None:
        return redirect(datasette, f"/package/{quote(page.package)}", dict(narrowing.pairs))
    if page.hashes:
        kept = {"release": narrowing.release} if narrowing.release else {}
        return redirect(datasette, f"/spec/{page.prefix}", kept)
    if parts:
        return await render(datasette, request, "names.html", listed)
    links = found_links(text, narrowing) if page.answer and page.answer.rows else None
    context = {"page": page, "search_text": text, "links": links, "narrowing": narrowing}
    return await render(datasette, request, "find.html", context)


async def robots(datasette: Any, request: Any) -> Any:
    """`/robots.txt`: our pages may be read by crawlers; tables, SQL and filters are endless."""
    base = datasette.urls.path("/")
    closed = [f"/{published(datasette).name}", "/find", "/cover", "/-/", "/*?"]
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
    (r"^/cover(?:\.(?P<form>json|csv))?$", answer_cover),
    (rf"^/package/{NAME}$", package),
    (r"^/spec/(?P<hash>[^/]+)$", spec),
    (rf"^/release/{NAME}$", release),
    (rf"^/stack/{NAME}$", stack),
    *list_routes.ROUTES,
    (r"^/robots\.txt$", robots),
    (r"^/(?P<database>[^/]+)\.db$", download),
)
