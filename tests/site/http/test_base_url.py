"""Below a path of a proxy: every link of every kind of page leads to a page below
it.
"""

import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from datasette.utils import StartupError

from tests.site.addresses import DATASETTES, OWN
from tests.site.conftest import SQL, site

pytestmark = pytest.mark.slow

BASE = "/cache/"
TABLES = (
    "packages?_size=2", "builds?_size=2", "builds.json?_size=2",
    "packages.json?_size=2", "builds.json?_size=2&_shape=array",
    "packages.json?_shape=objects&_size=2&_sort=spec_count",
    "configurations?_facet=os_id&_size=3",
    "configurations?_facet=os_id&_size=3&os_id=1", "builds?package=hdf5&_sort=version",
    "releases?name=develop", "packages/1", "packages/1.json",
    "variant_values_of_package?package=hdf5",
    "variant_values_of_package.json?package=hdf5",
    "variant_values_of_package?package=hdf5&_hide_sql=1",
    "builds?_filter_column=package&_filter_op=exact&_filter_value=hdf5",
    "builds?package=HDF5", "packages?_where=spec_count>1&_where=spec_count>2",
    "builds?_where=1", "listings?_size=2&_labels=on", "nothing-here", "builds?packge=1",
)  # fmt: skip
PAGES = (
    *OWN,
    *DATASETTES,
    *(f"/spack-cache/{table}" for table in TABLES),
    f"{SQL}?sql=select+hash+from+specs&_hide_sql=1",
    "/package/HDF5",
    "/find?q=hdf5",
    "/diff?old=develop&new=v0.23.1",
    "/spec/ddddddd",
    "/sitemap.xml",
    "/feed.atom",
    "/llms.txt",
    "/opensearch.xml",
    "/robots.txt",
    "/package/no-such",
)
LINKS = re.compile(
    r'(?:href|src|action|formaction|data-source)="([^"#]*)|<loc>([^<]*)<|"\w*url": "([^"]*)"'
)
ELSEWHERE = re.compile(r"\?sql=|_labels=on.*&_size=max|/static/|/-/static")
"""What need not be asked for: statements, large answers and files."""


class Proxy:
    """What stands before the site: it passes the base on, or cuts it off."""

    def __init__(self, served: Any, *, passes_on: bool) -> None:
        self._served = served
        self._passes_on = passes_on

    async def get(self, path: str) -> Any:
        """Ask for a whole path, as a visitor of the proxy does."""
        assert path.startswith(BASE), path
        path = path if self._passes_on else f"/{path.removeprefix(BASE)}"
        await self._served.invoke_startup()
        transport = httpx.ASGITransport(app=self._served.app())
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.get(f"http://localhost{path}")


def links_of(response: Any, path: str) -> set[str]:
    """Return where a response leads: links, addresses in JSON, headers."""
    found = [each for some in LINKS.findall(response.text) for each in some if each]
    found += re.findall(r"<([^>]*)>", response.headers.get("link", ""))
    found += [response.headers["location"]] if "location" in response.headers else []
    whole = (urljoin(f"http://localhost{path}", html.unescape(each)) for each in found)
    parts = (urlsplit(each) for each in whole)
    addresses = set()
    for part in parts:
        if part.netloc == "localhost" and part.scheme in ("http", "https"):
            query = f"?{part.query}" if part.query else ""
            addresses.add(f"{part.path}{query}")
    return addresses


@pytest.mark.asyncio
async def test_every_link_leads_below_the_base(database: Path) -> None:
    """Pages, tables, rows, queries, JSON, CSV, feeds, redirects and errors."""
    proxy = Proxy(site(database, base_url=BASE), passes_on=True)
    asked: set[str] = set()

    for page in PAGES:
        path = BASE + page[1:]
        response = await proxy.get(path)
        assert response.status_code in (200, 301, 302, 400, 404), path
        links = links_of(response, path)
        for link in sorted(links):
            assert link.startswith(BASE), (path, link)
            assert not link.startswith(f"{BASE}cache/"), (path, link)
            kind = re.sub(r"=[^&]*|\w{32}|\d+", "", link)
            if kind not in asked and not ELSEWHERE.search(link):
                asked.add(kind)
                found = await proxy.get(link)
                assert found.status_code in (200, 301, 302), (
                    path,
                    link,
                    found.text[:300],
                )
    assert len(asked) > 300


@pytest.mark.asyncio
async def test_both_proxies_give_the_same(database: Path) -> None:
    """Whether a proxy passes the base on or cuts it off, the response has the same
    bytes.
    """
    served = site(database, base_url=BASE)

    for page in (
        "/",
        "/package/hdf5",
        "/spack-cache/builds?_size=2",
        "/spack-cache/builds.json",
    ):
        first, second = [
            await Proxy(served, passes_on=passes_on).get(BASE + page[1:])
            for passes_on in (True, False)
        ]
        without_times = [
            re.sub(r"[\d.]+ ?ms|_ms\": [\d.]+", "", each.text)
            for each in (first, second)
        ]
        assert without_times[0] == without_times[1], page


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "base", ["/spack-cache/", "/package/", "/static/", "/spack-cache/x/"]
)
async def test_a_base_like_a_page_is_refused(database: Path, base: str) -> None:
    """Of a path that begins so, nobody could say whether a proxy has cut the base
    off.
    """
    with pytest.raises(StartupError, match="base_url"):
        await site(database, base_url=base).invoke_startup()
