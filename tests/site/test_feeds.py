"""Feeds are valid Atom, say what snapshots changed, and stay when a file is built
again.
"""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import feedparser
import pytest

from spack_cache_db.assembly.builds import build
from tests.pagetexts import page, spec, write
from tests.site.addresses import get
from tests.site.conftest import site

pytestmark = pytest.mark.slow

WEEKS = (
    "develop-2025-01-05",
    "develop-2025-01-12",
    "develop-2025-01-19",
    "develop-2025-01-26",
)
HDF5 = (1, "1.0", "e4s")
HDF5_IN_ML = (2, "1.0", "ml")
NEW_HDF5 = (4, "1.1", "e4s")
ZLIB = (3, "1.3", "e4s")
ZLIB_IN_ML = (5, "1.3", "ml")
"""Specs: number, version and stack."""

LISTED: tuple[dict[str, tuple[tuple[int, str, str], ...]], ...] = (
    {"hdf5": (HDF5, HDF5_IN_ML), "zlib": (ZLIB,)},
    {"hdf5": (HDF5, NEW_HDF5), "zlib": (ZLIB,)},
    {"hdf5": (HDF5, NEW_HDF5), "zlib": (ZLIB,)},
    {"hdf5": (NEW_HDF5,), "zlib": (ZLIB_IN_ML,)},
)
"""The specs of each week. Nothing changes in the third week."""

CHANGES = {
    "/feed.atom": {
        3: "26 Jan 2025: 0 configurations new, 1 gone",
        1: "12 Jan 2025: 1 configuration new, 0 gone",
    },
    "/feed.atom?package=hdf5": {3: "hdf5 1.0: gone", 1: "hdf5 1.1: new on x86-64-v3"},
    "/feed.atom?package=zlib": {},
    "/feed.atom?stack=e4s": {
        3: "hdf5 1.0, zlib 1.3: gone",
        1: "hdf5 1.1: new on x86-64-v3",
    },
    "/find.atom?" + urlencode({"q": "hdf5@1.1"}): {1: "hdf5 1.1: new on x86-64-v3"},
    "/find.atom?" + urlencode({"q": "hdf5@1.1", "stack": "ml"}): {},
    "/find.atom?" + urlencode({"q": "*", "stack": "ml"}): {
        3: "zlib 1.3: new on x86-64-v3",
        1: "hdf5 1.0: gone",
    },
    "/find.atom?" + urlencode({"q": "hdf5@99"}): {},
}
"""By feed: the titles of the weeks with a change, the newest first. Zlib was only
rebuilt, which is no change.
"""


def write_weeks(folder: Path, weeks: int) -> Path:
    """Write the pages of the first weeks, and of the branch and a release."""
    releases = dict(zip(WEEKS[:weeks], LISTED[:weeks], strict=True))
    releases["develop"] = LISTED[3]
    releases["v1.0"] = LISTED[0]
    pages = {}
    for release, packages in releases.items():
        for package, listed in packages.items():
            specs = [
                spec(number, versions=[version], stacks=[stack, "root"])
                for number, version, stack in listed
            ]
            pages[f"{package}-{release}"] = page(package, release, specs)
    return write(folder, **pages)


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of all weeks."""
    folder = tmp_path_factory.mktemp("weeks")
    build([str(write_weeks(folder / "pages", 4))], folder / "spack-cache.db")
    return folder / "spack-cache.db"


@pytest.fixture(scope="module")
def served(weeks: Path) -> Any:
    """The site of that file."""
    return site(weeks)


async def parsed(served: Any, path: str) -> Any:
    """Return a feed as a reader of feeds understands it."""
    answer = await get(served, path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/atom+xml; charset=utf-8"
    found = feedparser.parse(answer.content)
    assert not found.bozo, found.get("bozo_exception")
    assert found.version == "atom10"
    return found


@pytest.mark.asyncio
@pytest.mark.parametrize("path", CHANGES)
async def test_feed_has_an_entry_for_each_change(served: Any, path: str) -> None:
    """Each snapshot that changed the answer has an entry with its day, whose page is
    there.
    """
    found = await parsed(served, path)
    expected = CHANGES[path]

    assert [each.updated for each in found.entries] == [
        f"{WEEKS[week][-10:]}T00:00:00+00:00" for week in expected
    ]
    assert [each.title for each in found.entries] == list(expected.values())
    for entry in found.entries:
        assert entry.id.startswith("urn:uuid:") and entry.link.startswith(
            "http://localhost/diff/"
        )
        assert (
            await get(served, entry.link.removeprefix("http://localhost"))
        ).status_code == 200
    # RFC 4287, 4.1.1: what a feed must have.
    assert (
        found.feed.id and found.feed.title and found.feed.updated and found.feed.author
    )
    links = [(link.rel, link.type) for link in found.feed.links]
    assert links == [
        ("alternate", "text/html"),
        ("self", "application/atom+xml"),
        ("related", "text/html"),
    ]

    alternate = found.feed.links[0].href.removeprefix("http://localhost")
    assert (await get(served, alternate)).status_code in (200, 302)


@pytest.mark.asyncio
async def test_people_who_open_a_feed_read_what_it_is(served: Any) -> None:
    """Browsers show the source, which begins with a sentence for people."""
    text = (await get(served, "/feed.atom")).text
    assert "<!-- This is a feed: copy its address into a feed reader" in text[:200]
    assert 'href="http://localhost/about#feeds" rel="related"' in text
    assert '<h2 id="feeds">Feeds</h2>' in (await get(served, "/about")).text

    page_of_stack = (await get(served, "/stack/e4s")).text
    assert '<a class="quiet" href="/about#feeds">' in page_of_stack


@pytest.mark.asyncio
async def test_entries_stay_when_the_file_is_built_anew(
    served: Any, tmp_path: Path
) -> None:
    """A later snapshot adds an entry, and leaves ids and dates of the others as they
    were.
    """
    build([str(write_weeks(tmp_path / "pages", 3))], tmp_path / "spack-cache.db")
    before = site(tmp_path / "spack-cache.db")

    for path in CHANGES:
        now = await parsed(served, path)
        then = await parsed(before, path)
        assert now.feed.id == then.feed.id
        older = [(entry.id, entry.updated, entry.title) for entry in then.entries]
        newer = [(each.id, each.updated, each.title) for each in now.entries]
        assert newer[len(newer) - len(older) :] == older


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path",
    [
        "/find.atom",
        "/find.atom?q=hdf5@",
        "/feed.atom?package=no",
        "/feed.atom?stack=no",
    ],
)
async def test_what_has_no_feed_is_refused(datasette: Any, path: str) -> None:
    """A text that is no spec and an unknown name are status 400, in words."""
    answer = await get(datasette, path)
    assert (answer.status_code, answer.text[:7]) == (400, "Error: ")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "path", ["/", "/releases", "/package/hdf5", "/stack/e4s", "/find?q=hdf5@99"]
)
async def test_pages_name_their_feed(datasette: Any, path: str) -> None:
    """A reader of feeds finds the one of a page, also of a search that finds nothing
    yet.
    """
    text = (await get(datasette, path)).text
    link = re.search(
        r'<link rel="alternate" type="application/atom\+xml"[^>]* href="([^"]*)"', text
    )

    assert link and text.count(link[1]) >= 1
    await parsed(datasette, link[1].replace("&amp;", "&"))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "change",
    [
        "date = 'soon'",
        "date = ''",
        "date = 5",
        "date = x'ff'",
        "previous_release_id = 999",
    ],
)
async def test_a_database_with_odd_dates_has_feeds(
    change: str, weeks: Path, tmp_path: Path
) -> None:
    """An invalid date or an unknown release is neither an entry nor a failure."""
    file = Path(shutil.copy(weeks, tmp_path))
    with closing(sqlite3.connect(file)) as db:
        db.execute(
            f"UPDATE releases SET {change} WHERE {change.split()[0]} IS NOT NULL"
        )
        db.commit()
    file.with_suffix(".inspect.json").write_text("{}")
    served = site(file)

    for path in CHANGES:
        answer = await get(served, path)
        assert answer.status_code == 200, answer.text
        assert feedparser.parse(answer.text).entries == []
