"""Our pages and data: which address leads where, and what it answers."""

import csv
import hashlib
import html
import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from spack_cache_db.site.pages import search
from spack_cache_db.site.site import Site
from tests.commands import run
from tests.graphs import installs
from tests.site.addresses import UNKNOWN, get
from tests.site.conftest import asked_of, site

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
@pytest.mark.parametrize(
    "start", ["/packages?host=zen3", "/find?q=hdf5+%2Bmpi&host=zen3"]
)
async def test_the_chosen_machine_stays_chosen(datasette: Any, start: str) -> None:
    """From a list to a package, a spec, back to the package and to the search it is
    kept.
    """
    path = start
    kept = "<option selected>zen3</option>"

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
    """An external says what it is, offers no command, and links to what is known of
    it.
    """
    served = site(real_index_file)
    external = next(
        each for each in sorted(installs()) if "external" in installs()[each]["spec"]
    )

    page = await get(served, f"/spec/{external}")
    assert page.status_code == 200
    assert "It is an external" in page.text
    assert "spack install" not in page.text
    links = re.findall(r'href="(/spack-cache/[^"]*)"', page.text)
    asked = [html.unescape(each) for each in links if external in each]
    assert len(asked) == 4, asked
    for link in asked:
        assert (await get(served, link)).status_code == 200, link
    (row,) = (
        await get(served, f"/spack-cache/specs.json?hash={external}&_shape=array")
    ).json()
    assert row["release_count"] == 0


@pytest.mark.asyncio
@pytest.mark.parametrize("page", ["/release/develop", "/stack/e4s"])
async def test_many_packages_go_on_in_the_list(index_site: Any, page: str) -> None:
    """A page of a release or a stack has the first packages, its link the next; none is
    lost.
    """
    packages = r'<a href="/package/([^"?]+)'
    path = page
    shown = []
    while path:
        text = (await get(index_site, path)).text
        shown += re.findall(packages, text)
        following = re.search(
            r'<a (?:class="button"|rel="next") href="([^"]*page=\d+)"', text
        )
        next_path = html.unescape(following[1]) if following else ""
        path = f"/packages{next_path}" if next_path.startswith("?") else next_path

    every = (await get(index_site, "/packages.json")).json()
    assert shown == sorted(each["name"] for each in every)
    assert len(shown) > 200


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("package", "text"),
    [
        ("hdf5", "1.14.10 on x86_64"),
        ("zlib", "1.3.1 on x86_64"),
        ("hostile", "1.1 on x86_64"),
    ],
)
async def test_badge_names_the_newest_version(
    datasette: Any, package: str, text: str
) -> None:
    """The picture is SVG, and its texts fit into it; a screen reader reads the same."""
    answer = await get(datasette, f"/badge/{package}.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml")

    picture = ElementTree.fromstring(answer.content)
    assert [each.text for each in picture.iter(f"{SVG}text")] == [package, text]
    assert picture.get("aria-label") == f"{package}: {text}"

    widths = [int(element.get("width", 0)) for element in picture.iter(f"{SVG}rect")]
    assert sum(widths) == int(picture.get("width", 0))


@pytest.mark.asyncio
async def test_package_without_a_binary_has_no_badge(datasette: Any) -> None:
    """An unknown package is 404, and no picture of nothing."""
    assert (await get(datasette, "/badge/nope.svg")).status_code == 404


SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
SEARCH = "{http://a9.com/-/spec/opensearch/1.1/}"


@pytest.mark.asyncio
async def test_the_sitemap_has_every_page(datasette: Any) -> None:
    """All packages, releases and stacks are in it, each address leads to a page."""
    robots = (await get(datasette, "/robots.txt")).text
    address = re.search(r"Sitemap: http://[^/]+(/\S+)", robots)
    assert address is not None
    answer = await get(datasette, address[1])
    found = [
        element.text or ""
        for element in ElementTree.fromstring(answer.text).iter(f"{SITEMAP}loc")
    ]
    paths = [re.sub("^http://[^/]+", "", each) for each in found]

    assert answer.headers["content-type"].startswith("application/xml")
    assert {"/", "/packages", "/package/hdf5", "/release/develop", "/stack/e4s"} <= set(
        paths
    )
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


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "spec", ["hdf5", "hdf5@1.10: +mpi", "*", "/" + "d" * 7, "%gcc@13"]
)
@pytest.mark.parametrize("end", ["json", "csv"])
async def test_found_as_on_the_command_line(
    datasette: Any, database: Path, spec: str, end: str
) -> None:
    """`/find.json` and `/find.csv` are what `find --json` and `find --csv` print."""
    answer = await get(datasette, f"/find.{end}?q={quote(spec)}")
    printed = run("find", spec, database, f"--{end}").stdout

    assert answer.status_code == 200
    assert answer.text.rstrip("\n") == printed.rstrip("\n")
    assert len(answer.text.splitlines()) > 1


@pytest.mark.asyncio
async def test_nothing_found_is_no_fault(datasette: Any) -> None:
    """Without rows the answer is an empty array, and CSV has its heading."""
    nothing = await get(datasette, "/find.json?q=hdf5@99")

    assert nothing.status_code == nothing.json()["status"] == 404
    assert "no version 99 of hdf5: newest " in nothing.json()["error"]
    assert (await get(datasette, "/find.csv?q=hdf5@99")).text.startswith(
        "Error: no binary in this"
    )


@pytest.mark.parametrize("end", ["json", "csv"])
@pytest.mark.parametrize("spec", ["*", "hdf5", "nothing"])
def test_parts_are_the_whole(
    own_site: Site, monkeypatch: pytest.MonkeyPatch, spec: str, end: str
) -> None:
    """However many configurations are sent at once, the response is the same."""
    whole = asked_of(own_site, f"/find.{end}?q={spec}")
    for number in (1, 2, 5, 11, 12, 13):
        monkeypatch.setattr(search, "FOUND_AT_ONCE", number)
        assert asked_of(own_site, f"/find.{end}?q={spec}") == whole


@pytest.mark.asyncio
async def test_suggestions(datasette: Any) -> None:
    """What is typed gets names that have it, whatever they are of, and nothing for
    nothing.
    """
    assert (await get(datasette, "/suggest.json?q=e4s-")).json() == [
        {"name": "e4s-arm", "kind": "stack"}
    ]
    assert (await get(datasette, "/suggest.json")).json() == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("/packages?sort=specs&q=t", 4),
        ("/packages?release=develop&stack=e4s&host=zen3", 5),
        ("/packages?compiler=gcc&os=rhel8", 1),
        ("/packages?target=aarch64:", 1),
        ("/releases?kind=snapshot", 2),
        ("/stacks", 3),
    ],
)
async def test_a_list_can_be_taken(datasette: Any, path: str, rows: int) -> None:
    """The links below a list lead to its rows as JSON and CSV, in its order, with its
    values.
    """
    page = (await get(datasette, path)).text
    names = re.findall(r'<th scope="row"><a href="[^"]*">([^<]*)</a>', page)
    links = re.findall(r'href="(/\w+\.(?:json|csv)[^"]*)"', page)
    as_json, as_csv = [await get(datasette, html.unescape(link)) for link in links]

    assert [row["name"] for row in as_json.json()] == names
    assert len(names) == rows
    csv_rows = csv.DictReader(io.StringIO(as_csv.text))
    for csv_row, json_row in zip(csv_rows, as_json.json(), strict=True):
        assert csv_row.keys() == json_row.keys()
        for name, value in json_row.items():
            assert csv_row[name] == ("" if value is None else str(value))


@pytest.mark.asyncio
async def test_a_list_of_what_is_not_there_is_refused(datasette: Any) -> None:
    """Data of a release or target that the file lacks is an error, and not that of
    all.
    """
    for asked in (
        "release=v9",
        "stack=x",
        "host=zen9",
        "target=zen9",
        "compiler=icc",
        "os=beos",
    ):
        assert (await get(datasette, f"/packages.json?{asked}")).status_code == 400


@pytest.mark.asyncio
async def test_a_search_names_only_what_it_has_read(datasette: Any) -> None:
    """Without package data there are no descriptions in which words can be missing."""
    answer = await get(datasette, "/find?q=mesh+partitioner")

    assert "No package is called “mesh partitioner”.</h1>" in answer.text
    assert "not their descriptions" in answer.text
