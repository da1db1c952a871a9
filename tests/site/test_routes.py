"""Our pages: which address leads where, and that what they offer is there."""

from __future__ import annotations

import hashlib
import html
import re
from pathlib import Path
from typing import Any

import pytest

from tests.graphs import installs
from tests.site.addresses import UNKNOWN, get
from tests.site.conftest import site

pytestmark = pytest.mark.slow


@pytest.mark.asyncio
@pytest.mark.parametrize("path", UNKNOWN)
async def test_unknown_things_are_told(datasette: Any, path: str) -> None:
    """What is not there is a 404 that says so, offers the search, and is not cached."""
    answer = await get(datasette, path)

    assert answer.status_code == 404
    assert "is called" in answer.text or "No binary has" in answer.text
    assert 'action="/find"' in answer.text
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.asyncio
@pytest.mark.parametrize("start", ["/packages?host=zen3", "/find?q=hdf5+%2Bmpi&host=zen3"])
async def test_the_chosen_machine_stays_chosen(datasette: Any, start: str) -> None:
    """From a list to a package, a spec, back to the package and to the search it is kept."""
    path, kept = start, '<input type="hidden" name="host" value="zen3">'
    for link in (r"/package/hdf5", r"/spec/\w{32}", r"/package/hdf5"):
        page = (await get(datasette, path)).text
        found = re.search(rf'href="({link}\?[^"#]*)', page)
        assert found is not None, path
        path = html.unescape(found[1])
        assert "host=zen3" in path
        text = (await get(datasette, path)).text
        assert kept in text
        assert '<a href="/packages?host=zen3"' in text


@pytest.mark.asyncio
async def test_the_download_has_its_sum(datasette: Any, database: Path) -> None:
    """Beside the file that is offered stands its true SHA-256."""
    answer = await get(datasette, "/about")

    assert hashlib.sha256(database.read_bytes()).hexdigest() in answer.text


@pytest.mark.asyncio
async def test_crawlers_are_kept_from_endless_pages(datasette: Any) -> None:
    """Crawlers are told to leave tables, SQL and filters alone."""
    answer = await get(datasette, "/robots.txt")

    assert "Disallow: /spack-cache\n" in answer.text
    assert "Disallow: /*?\n" in answer.text


@pytest.mark.asyncio
async def test_what_is_no_binary_has_a_page(real_index_file: Path) -> None:
    """An external says what it is, offers no command, and links to what is known of it."""
    served = site(real_index_file)
    external = next(each for each in sorted(installs()) if "external" in installs()[each]["spec"])

    page = await get(served, f"/spec/{external}")
    assert page.status_code == 200
    assert "It is an external" in page.text
    assert "spack install" not in page.text
    links = re.findall(r'href="(/spack-cache/[^"]*)"', page.text)
    asked = [html.unescape(each) for each in links if external in each]
    assert len(asked) == 4, asked
    for link in asked:
        assert (await get(served, link)).status_code == 200, link
    (row,) = (await get(served, f"/spack-cache/specs.json?hash={external}&_shape=array")).json()
    assert row["release_count"] == 0


@pytest.mark.asyncio
@pytest.mark.parametrize("page", ["/release/develop", "/stack/e4s"])
async def test_many_packages_go_on_in_the_list(index_site: Any, page: str) -> None:
    """A page of a release or a stack has the first packages, its link the next; none is lost."""
    packages = r'<a href="/package/([^"?]+)'
    path, shown = page, []
    while path:
        text = (await get(index_site, path)).text
        shown += re.findall(packages, text)
        following = re.search(r'<a (?:class="button"|rel="next") href="([^"]*page=\d+)"', text)
        next_path = html.unescape(following[1]) if following else ""
        path = f"/packages{next_path}" if next_path.startswith("?") else next_path

    every = (await get(index_site, "/packages.json")).json()
    assert shown == sorted(each["name"] for each in every)
    assert len(shown) > 200
