"""What browsers and crawlers ask for, and what is on every page for everybody."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.site.addresses import get

pytestmark = pytest.mark.slow

SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
SEARCH = "{http://a9.com/-/spec/opensearch/1.1/}"


@pytest.mark.asyncio
async def test_the_sitemap_has_every_page(datasette: Any) -> None:
    """All packages, releases and stacks are in it, each address leads to a page."""
    robots = (await get(datasette, "/robots.txt")).text
    address = re.search(r"Sitemap: http://[^/]+(/\S+)", robots)
    assert address is not None
    answer = await get(datasette, address[1])
    found = [each.text or "" for each in ElementTree.fromstring(answer.text).iter(f"{SITEMAP}loc")]
    paths = [re.sub("^http://[^/]+", "", each) for each in found]

    assert answer.headers["content-type"].startswith("application/xml")
    assert {"/", "/packages", "/package/hdf5", "/release/develop", "/stack/e4s"} <= {*paths}
    for path in paths:
        assert (await get(datasette, path)).status_code == 200, path


@pytest.mark.asyncio
async def test_a_browser_can_search_here(datasette: Any) -> None:
    """The description that each page links to leads to the search."""
    page = (await get(datasette, "/package/hdf5")).text
    address = re.search(r'<link rel="search"[^>]*href="([^"]*)"', page)
    assert address is not None
    described = ElementTree.fromstring((await get(datasette, address[1])).text)
    template = described.find(f"{SEARCH}Url").get("template")  # type: ignore[union-attr]
    name = described.findtext(f"{SEARCH}ShortName")

    assert template == "http://localhost/find?q={searchTerms}"
    assert name and len(name) <= 16


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "close"),
    [
        ("/package/hdf", "/package/hdf5"),
        ("/package/HDF-5", "/package/hdf5"),
        ("/package/py-torchvison", "/package/py-torchvision"),
        ("/release/develop-2025-04-21", "/release/develop-2025-04-20"),
        ("/stack/es4", "/stack/e4s"),
        ("/package/" + "x" * 3000, None),
    ],
)
async def test_what_is_misspelled_leads_to_what_is_close(
    datasette: Any, path: str, close: str | None
) -> None:
    """A page that is not there names those of its kind that are spelled alike."""
    answer = await get(datasette, path)
    named = re.findall(r'Perhaps you mean <a href="([^"]*)"', answer.text)

    assert answer.status_code == 404
    assert named == ([close] if close else [])
