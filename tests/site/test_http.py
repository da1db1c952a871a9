"""The site's answers: status, headers, data links and downloads, in process."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from tests.site.cache import HOSTILE, MPI, spec_hash
from tests.site.conftest import SQL, site

PAGES = (
    "/",
    "/package/hdf5",
    "/package/hdf5?release=develop&variant=%2Bmpi",
    "/package/hdf5?version=none",
    f"/spec/{spec_hash(MPI)}",
    "/spec/aaaaaaa",
    "/release/develop-2025-04-20",
    "/stack/e4s",
    "/find",
    "/find?q=hdf5+%2Bmpi",
    "/find?q=%22",
    "/find?q=hdf5@1.12:",
)
STOCK = (
    "/spack-cache",
    "/spack-cache/configurations",
    "/spack-cache/builds",
    f"{SQL}?sql=select+1",
    "/spack-cache/specs/1",
)
UNKNOWN = ("/package/nope", "/spec/zzzzzzz", "/spec/not-a-hash", "/release/v9", "/stack/root")


async def get(datasette: Any, path: str, **headers: str) -> Any:
    """Ask the site in process."""
    return await datasette.client.get(path, headers=headers)


@pytest.mark.asyncio
@pytest.mark.parametrize("path", [*PAGES, *STOCK])
async def test_every_page_is_safe_and_cacheable(datasette: Any, path: str) -> None:
    """Every page has a security policy, tells caches how long, and says its language."""
    answer = await get(datasette, path)

    assert answer.status_code == 200, answer.text
    assert "unsafe-eval" not in answer.headers["content-security-policy"]
    assert "http" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "max-age=3600" in answer.headers["cache-control"]
    assert '<html lang="en">' in answer.text


@pytest.mark.asyncio
@pytest.mark.parametrize("path", PAGES)
async def test_own_pages_need_no_inline_code(datasette: Any, path: str) -> None:
    """Our pages allow no scripts or styles in the page, and have none."""
    answer = await get(datasette, path)

    assert "unsafe-inline" not in answer.headers["content-security-policy"]
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", answer.text)


@pytest.mark.asyncio
@pytest.mark.parametrize("path", PAGES)
async def test_every_link_leads_somewhere(datasette: Any, path: str) -> None:
    """No page links to a page of this site that is not there."""
    answer = await get(datasette, path)
    links = set(re.findall(r'href="(/[^"#]*|\?[^"#]*)', answer.text))
    base = path.partition("?")[0]
    assert links

    for link in sorted(links):
        address = (base + link if link.startswith("?") else link).replace("&amp;", "&")
        linked = await get(datasette, address)
        assert linked.status_code in (200, 302), (address, linked.text[:500])


@pytest.mark.asyncio
@pytest.mark.parametrize("path", UNKNOWN)
async def test_unknown_things_are_told(datasette: Any, path: str) -> None:
    """What is not there is a 404 that says so, offers the search, and is not cached."""
    answer = await get(datasette, path)

    assert answer.status_code == 404
    assert "No such" in answer.text
    assert 'action="/find"' in answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/find?q=hdf5", "/package/hdf5"),
        ("/find?q=/ddddddd", "/spec/ddddddd"),
        ("/spec/ddddddd", "/spec/ddddddd" + "e" * 25),
        ("/spec/DDDDDDD", "/spec/ddddddd" + "e" * 25),
    ],
)
async def test_names_and_hashes_redirect(datasette: Any, path: str, target: str) -> None:
    """A package's name and a unique prefix of a hash lead straight to the page."""
    answer = await get(datasette, path)

    assert (answer.status_code, answer.headers["location"]) == (302, target)


@pytest.mark.asyncio
async def test_ambiguous_prefix_lists_candidates(datasette: Any) -> None:
    """A prefix of several hashes lists them all."""
    answer = await get(datasette, "/spec/aaaaaaa")

    assert answer.text.count('<a class="hash"') == 2


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("/package/hdf5", 14),
        ("/package/hdf5?target=zen3", 1),
        ("/package/hdf5?release=v0.23.1", 7),
        ("/package/hdf5?stack=hep", 7),
        (f"/spec/{spec_hash(MPI)}", 4),
    ],
)
async def test_json_of_a_page_is_its_data(datasette: Any, path: str, rows: int) -> None:
    """The JSON link of a page gives its rows, as plain objects, and the CSV link as many."""
    page = await get(datasette, path)
    links = re.findall(r'href="(/spack-cache/\w+\.(?:json|csv)[^"]*)', page.text)
    as_json, as_csv = [await get(datasette, link.replace("&amp;", "&")) for link in links]

    assert len(as_json.json()) == rows
    assert {"package", "hash", "variants"} <= as_json.json()[0].keys()
    assert len(as_csv.text.splitlines()) == rows + 1


@pytest.mark.asyncio
async def test_values_are_escaped(datasette: Any) -> None:
    """A variant that looks like a script is text, on every page that shows it."""
    for path in ("/package/hostile", "/find?q=hostile+%2Bfine", "/spack-cache/variants"):
        answer = await get(datasette, path)
        assert HOSTILE not in answer.text
        assert "&lt;script&gt;" in answer.text


@pytest.mark.asyncio
async def test_searched_text_is_escaped(datasette: Any) -> None:
    """What a visitor types comes back as text."""
    answer = await get(datasette, '/find?q="><script>alert(1)</script>')

    assert "<script>alert" not in answer.text


@pytest.mark.asyncio
async def test_home_shows_size_and_sum(datasette: Any, database: Path) -> None:
    """The first page tells the true SHA-256 of the file it offers."""
    answer = await get(datasette, "/")

    assert hashlib.sha256(database.read_bytes()).hexdigest() in answer.text


@pytest.mark.asyncio
async def test_download_is_the_file(datasette: Any, database: Path) -> None:
    """The download is the file, with its length and an entity tag."""
    answer = await get(datasette, "/spack-cache.db")

    assert answer.content == database.read_bytes()
    assert int(answer.headers["content-length"]) == database.stat().st_size
    assert hashlib.sha256(answer.content).hexdigest() in answer.headers["etag"]


@pytest.mark.asyncio
async def test_download_resumes(datasette: Any, database: Path) -> None:
    """A part of the file can be asked for, so that a broken download goes on."""
    answer = await get(datasette, "/spack-cache.db", range="bytes=100-199")

    assert answer.status_code == 206
    assert answer.content == database.read_bytes()[100:200]
    assert answer.headers["content-range"] == f"bytes 100-199/{database.stat().st_size}"


@pytest.mark.asyncio
async def test_download_is_not_sent_twice(datasette: Any) -> None:
    """Who has the file already gets nothing again."""
    first = await datasette.client.head("/spack-cache.db")
    again = await get(datasette, "/spack-cache.db", **{"if-none-match": first.headers["etag"]})

    assert first.content == b""
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.asyncio
async def test_download_can_be_turned_off(database: Path) -> None:
    """Datasette's own setting turns the download off."""
    answer = await get(site(database, allow_download=False), "/spack-cache.db")

    assert answer.status_code == 403


@pytest.mark.asyncio
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_writes_are_refused(datasette: Any, method: str) -> None:
    """No method but reading ones is answered, on any page."""
    answer = await datasette.client.request(method, "/spack-cache")

    assert answer.status_code == 405
    assert "read-only" in answer.text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "tool", ["threads", "messages", "allow-debug", "patterns", "permissions", "databases.json"]
)
async def test_debugging_tools_are_closed(datasette: Any, tool: str) -> None:
    """Datasette's debugging tools, and what tells about the machine, are not answered."""
    assert (await get(datasette, f"/-/{tool}")).status_code == 404


@pytest.mark.asyncio
async def test_sql_can_be_turned_off(database: Path) -> None:
    """With SQL off our pages still work and typed SQL is refused."""
    closed = site(database, default_allow_sql=False)

    assert (await get(closed, "/package/hdf5")).status_code == 200
    assert (await get(closed, f"{SQL}?sql=select+1")).status_code == 403
    assert (await get(closed, "/spack-cache/find_spec.json?spec=hdf5")).status_code == 200


@pytest.mark.asyncio
async def test_crawlers_are_kept_from_endless_pages(datasette: Any) -> None:
    """Crawlers are told to leave tables, SQL and filters alone."""
    answer = await get(datasette, "/robots.txt")

    assert "Disallow: /spack-cache\n" in answer.text
    assert "Disallow: /*?\n" in answer.text


@pytest.mark.asyncio
async def test_pages_are_compressed(datasette: Any) -> None:
    """Pages travel compressed to who can read that, and plain to who cannot."""
    plain = await get(datasette, "/package/hdf5", **{"accept-encoding": "identity"})
    packed = await get(datasette, "/package/hdf5", **{"accept-encoding": "gzip"})

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text == plain.text
    assert len(gzip.compress(plain.content)) < 60_000


@pytest.mark.asyncio
async def test_a_lone_quote_is_told_clearly(datasette: Any) -> None:
    """Datasette's own search box refuses a lone quote, and says what to do."""
    answer = await get(datasette, "/spack-cache/configurations?_search=%22")

    assert answer.status_code in (200, 400)
    assert "quote" in answer.text or answer.status_code == 200


@pytest.mark.asyncio
async def test_hashes_in_tables_lead_to_specs(datasette: Any) -> None:
    """Datasette's own tables link hashes and packages to our pages."""
    answer = await get(datasette, "/spack-cache/builds?package=hdf5")

    assert f'<a href="/spec/{spec_hash(MPI)}">' in answer.text
    assert '<a href="/package/hdf5">' in answer.text


@pytest.mark.asyncio
async def test_base_url_is_kept(database: Path) -> None:
    """Behind a path prefix every link of ours carries it."""
    answer = await get(site(database, base_url="/cache/"), "/package/hdf5")

    assert answer.status_code == 200
    assert not re.search(r'(?:href|action|src)="/(?!cache/)', answer.text)
