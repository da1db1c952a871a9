"""The site over pages that contradict themselves or carry markup: shown as data, never a 500."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from markupsafe import escape

from spack_cache_db.build import build
from tests.pagetexts import page, spec, spec_hash, write
from tests.site.conftest import site

pytestmark = pytest.mark.slow

NO_LINKS = (
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "blob:x",
    "file:///etc/passwd",
    "//example.org/x",
    "/-/x",
    "https:/x",
)
LINKS = ("https://example.org/a.spack", "HTTP://example.org/a.spack")
SCRIPT = "<script>alert(1)</script>"
QUOTED = quote(SCRIPT, safe="")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A site whose names are scripts, but for packages, and whose one hash is two packages."""
    folder = tmp_path_factory.mktemp("odd")
    names = {"variants": [SCRIPT, "+cuda"], "stacks": [SCRIPT, "root"], "os": SCRIPT}
    pages = write(
        folder / "pages",
        hostile=page("hostile", "develop", specs=[spec(1, target=SCRIPT, **names)]),
        other=page("zlib", SCRIPT, specs=[spec(1)]),
    )
    build([str(pages)], folder / "spack-cache.db")
    return site(folder / "spack-cache.db")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A site whose tarballs have odd addresses, and whose names look like paths."""
    folder = tmp_path_factory.mktemp("addresses")
    odd = [spec(number, tarball=url, size="1") for number, url in enumerate((*NO_LINKS, *LINKS))]
    pages = write(
        folder / "pages",
        odd=page("odd", specs=odd),
        path=page("odd.path", "rel/x", specs=[spec(90, stacks=["sta/ck", "root"])]),
    )
    build([str(pages)], folder / "spack-cache.db")
    return site(folder / "spack-cache.db")


@pytest.mark.asyncio(loop_scope="session")
async def test_only_addresses_of_the_web_are_links(addresses: Any) -> None:
    """A tarball's address is a link if it is one of the web; a script, a file, a path is text."""
    links: set[str] = set()
    for path in ("build_listings", "tarball_prefixes", "tarball_prefixes?_facet=url"):
        page_of = await addresses.client.get(f"/spack-cache/{path}")
        links |= {*re.findall(r'href="([^"]*)"', page_of.text)}
    for number, url in enumerate(map(str, map(escape, (*NO_LINKS, *LINKS)))):
        text = (await addresses.client.get(f"/spec/{spec_hash(number)}")).text
        assert url in text
        assert (f'href="{url}"' in text) == (number >= len(NO_LINKS))
        assert url not in links or number >= len(NO_LINKS)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "path",
    [
        *("/package/odd.path?release=rel/x", "/package/odd.path?release=rel%2Fx"),
        *("/release/rel/x", "/release/rel%2Fx", "/stack/sta/ck", "/stack/sta%2Fck"),
    ],
)
async def test_names_may_have_slashes(addresses: Any, path: str) -> None:
    """What has a name that looks like a path has its page, whichever way it is written."""
    answer = await addresses.client.get(path)

    assert answer.status_code == 200
    assert spec_hash(90)[:7] in answer.text or "odd.path" in answer.text


@pytest.mark.asyncio(loop_scope="session")
async def test_a_slash_too_many_is_taken_off(addresses: Any) -> None:
    """A name does not end with a slash: such an address leads to the one without."""
    answer = await addresses.client.get("/release/rel/x/")

    assert answer.headers["location"] == "/release/rel/x"


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "path",
    ["/releases", f"/spec/{spec_hash(90)}", "/find?q=odd", "/release/rel/x", "/spack-cache/builds"],
)
async def test_links_to_names_with_slashes_lead_there(addresses: Any, path: str) -> None:
    """Every link to a package, release or stack leads to its page."""
    page_of = await addresses.client.get(path, follow_redirects=True)
    found = re.findall(r'href="(/(?:package|release|stack|spec)/[^"#]*)', page_of.text)

    assert found
    for link in found:
        assert (await addresses.client.get(link.replace("&amp;", "&"))).status_code == 200


@pytest.mark.asyncio(loop_scope="session")
async def test_a_contradiction_stands_on_the_page_of_the_spec(odd: Any) -> None:
    """A hash that is two packages in two releases is told in words, on every page without a 500."""
    told = await odd.client.get(f"/spec/{spec_hash(1)}")

    assert told.status_code == 200
    assert "contradicts this" in told.text
    assert "package zlib, not hostile" in told.text


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/package/hostile",
        "/package/zlib",
        f"/package/zlib?release={QUOTED}",
        f"/release/{QUOTED}",
        f"/stack/{QUOTED}",
        f"/find?q={QUOTED}",
        "/find?q=zlib",
        "/find?q=%2Bcuda",
        f"/spec/{spec_hash(1)}",
        f"/packages?q={QUOTED}&release={QUOTED}",
        f"/releases?q={QUOTED}",
        "/stacks",
        "/spack-cache/configurations",
        "/spack-cache/builds",
        "/spack-cache/problems",
    ],
)
async def test_names_are_shown_not_run(odd: Any, path: str) -> None:
    """Every page answers, and a name that is a script stands there as text."""
    response = await odd.client.get(path, follow_redirects=True)

    assert response.status_code == 200
    assert SCRIPT not in response.text
