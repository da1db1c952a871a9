"""The install box in each of its forms, and pages about binaries that the mirror has
lost.
"""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run
from tests.forms import every_form
from tests.histories import FIRST
from tests.indexes import hash_of
from tests.site.addresses import get
from tests.site.conftest import site

TAGS = re.compile(r"<[^>]+>")
SPACE = re.compile(r"\s+")
ASIDE = re.compile(r"<aside>(.*?)</aside>", re.DOTALL)
DAY = "2026-11-01"


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with each form."""
    return every_form(tmp_path_factory.mktemp("forms"))


@pytest.fixture
def served(forms: Path) -> Iterator[Any]:
    """The site of this database."""
    yield site(forms)


async def text_of(served: Any, path: str, part: re.Pattern[str] | None = None) -> str:
    """Return the words of a page, or of a part of it."""
    answer = await get(served, path)
    assert answer.status_code == 200, path
    page = answer.text.partition("<main")[2]
    if part is not None:
        match = part.search(page)
        assert match is not None, path
        page = match[1]
    return SPACE.sub(" ", html.unescape(TAGS.sub(" ", page)))


TRUST = "yes | spack buildcache keys --install --trust"
BOXES: dict[str, tuple[list[str], list[str]]] = {
    "signed": (
        [
            "spack mirror add develop https://develop.example.org",
            TRUST,
            "spack install --cache-only signed/",
            "Spack downloads 3 packages, 212 MB.",
        ],
        ["--unsigned", "no binary here", "Needs"],
    ),
    "unsigned": (
        [
            "spack mirror add --unsigned --s3-endpoint-url https://s3.example.org team",
            "spack install --cache-only unsigned/",
        ],
        ["buildcache keys", "Spack downloads"],
    ),
    "split": (
        [
            "spack mirror add split-a https://split-a.example.org",
            "spack mirror add split-b https://split-b.example.org",
            TRUST,
            "spack install --cache-only split/",
        ],
        ["no binary here"],
    ),
    "incomplete": (
        [
            "3 of 4 dependencies have no binary here: "
            "Spack builds gcc-runtime, pkgconf and zlib-ng from source.",
            "spack mirror add partial https://partial.example.org",
            "spack install incomplete/",
        ],
        ["--cache-only", "Spack downloads"],
    ),
    "external": (
        [
            "spack install --cache-only external/",
            "Needs openmpi@5.0.10 at /opt/site/openmpi",
            "provided by the system.",
        ],
        ["no binary here"],
    ),
}
"""For each package: the texts of its box, in order, and texts that are not there."""


@pytest.mark.asyncio
@pytest.mark.parametrize("package", BOXES)
async def test_a_box_says_what_installing_takes(served: Any, package: str) -> None:
    """On the page of a package, of a binary and of a search, from one record."""
    shown, hidden = BOXES[package]
    paths = (
        f"/package/{package}",
        f"/spec/{hash_of(package)}",
        f"/find?q={package}%40:",
    )

    for path in paths:
        text = await text_of(served, path, ASIDE)
        places = [text.find(words) for words in shown]
        assert -1 not in places, (path, shown[places.index(-1)], text)
        for words in hidden:
            assert words not in text, (path, words)


@pytest.mark.asyncio
async def test_each_machine_has_its_own_commands(served: Any) -> None:
    """The machine is named, and each button copies the commands of one machine."""
    page = (await get(served, "/package/modules")).text
    text = await text_of(served, "/package/modules", ASIDE)

    casper = text.index("On casper")
    derecho = text.index("On derecho")
    assert casper < text.index("spack load modules/") < derecho
    assert derecho < text.index("module load modules/6.5-gcc")
    copied = re.findall(r'class="copy primary" data-copy="([^"]*)"', page)
    assert [command.partition(" ")[0] for command in copied] == ["spack", "module"]


@pytest.mark.asyncio
async def test_a_lost_binary_has_no_commands(served: Any) -> None:
    """Its own page says when it was last listed; no page copies commands for it."""
    for name in ("hdf5_new", "solo"):
        path = f"/spec/{hash_of(name)}"
        text = await text_of(served, path, ASIDE)
        assert "Gone from its mirror" in text
        assert f"it was last listed on {DAY}." in text
        assert "spack" not in text

    solo = await text_of(served, "/package/solo", ASIDE)
    assert "Nothing to install" in solo
    assert "spack" not in solo

    # The copy lists it, and the rows are marked.
    page = await text_of(served, f"/package/solo?release={FIRST}")
    assert page.count("gone from its mirror") == 2
    assert "spack install" not in page

    release = await text_of(served, f"/release/{FIRST}")
    assert "A copy of what site listed" in release
    assert f"The mirror has lost 4 of these binaries, last listed {DAY}." in release
    assert "spack mirror add site https://cache.example.org/v1.0" in release


@pytest.mark.asyncio
async def test_lost_binaries_are_shown_apart(served: Any) -> None:
    """Beside those that count, with a link to as many rows, in searches and in
    trees.
    """
    more = f"2 more that the mirror has lost, last listed {DAY}"
    answer = await get(served, "/package/hdf5")

    assert more in await text_of(served, "/package/hdf5")

    (table,) = re.findall(r'href="([^"]+is_gone=1)"', answer.text)
    rows = await get(served, html.unescape(table).replace("builds?", "builds.json?"))
    assert len(json.loads(rows.text)["rows"]) == 2
    assert more in await text_of(served, "/find?q=hdf5%40:")
    assert more not in await text_of(served, "/package/netcdf")
    lost = f"its mirror has lost all 2 binaries, last listed {DAY}"
    assert lost in await text_of(served, "/find?q=solo%402.0")
    gone = f"Such a binary is gone from its mirror, last listed {DAY}"
    assert gone in await text_of(served, "/find?q=hdf5%401.14")

    tree = await text_of(served, f"/spec/{hash_of('app')}")
    assert re.search(r"hdf5@1.14.6 link gone", tree)
    beside = f"1 more that the mirror has lost, last listed {DAY}"
    assert beside in await text_of(served, f"/spec/{hash_of('hdf5_old')}")


@pytest.mark.asyncio
async def test_data_and_badges_name_lost_binaries(served: Any) -> None:
    """JSON and CSV by the names of `find --json`; a badge says so, and a feed has an
    entry.
    """
    package = json.loads((await get(served, "/package/solo.json")).text)
    facts = (package["spec_count"], package["gone_count"], package["gone_last_listed"])

    assert facts == (0, 2, DAY)

    found = json.loads((await get(served, "/find.json?q=hdf5")).text)
    assert [(row["version"], row["is_gone"]) for row in found] == [("1.12.2", False)]

    copy = json.loads((await get(served, f"/find.json?q=hdf5&release={FIRST}")).text)
    assert [(row["version"], row["is_gone"]) for row in copy] == [
        ("1.14.6", True),
        ("1.12.2", False),
    ]

    refused = await get(served, "/find.json?q=solo")
    assert refused.status_code == 404
    assert f"last listed {DAY}" in refused.text
    assert ">1.12.2 on x86_64<" in (await get(served, "/badge/hdf5.svg")).text
    assert ">gone from its mirror<" in (await get(served, "/badge/solo.svg")).text

    feed = (await get(served, "/feed.atom?package=solo")).text
    assert "<title>solo 2.0, solo 2.1: gone</title>" in feed


@pytest.mark.asyncio
async def test_a_bar_says_where_dependencies_come_from(served: Any) -> None:
    """From the same mirror, from another one, from the system, or from source."""
    shares = {
        "signed": "2 with a binary in develop",
        "split": "1 with a binary in another mirror",
        "incomplete": "3 to build from source",
        "external": "1 of the system",
    }

    for package, words in shares.items():
        text = await text_of(served, f"/spec/{hash_of(package)}")
        assert words in text, (package, text)


@pytest.mark.asyncio
async def test_releases_have_badges(served: Any) -> None:
    """With the number of their binaries; others are not found."""
    badge = await get(served, f"/badge/release/{FIRST}.svg")
    assert re.search(r">\d+ (binary|binaries|specs?)<", badge.text)

    whole = await get(served, "/badge.svg")
    assert re.search(r">\d+ (binary|binaries|specs?)(, \d+ \w+ \d{4})?<", whole.text)

    missing = await get(served, "/badge/release/nothing.svg")
    assert missing.status_code == 404


@pytest.mark.asyncio
async def test_the_json_of_a_binary_has_the_facts_of_its_box(
    served: Any, forms: Path
) -> None:
    """By the names of `find --hashes --json` and of `find --install --json`."""
    for package in BOXES:
        record = json.loads((await get(served, f"/spec/{hash_of(package)}.json")).text)
        found = json.loads(
            run("find", package, "--hashes", "--install", "--json", forms).stdout
        )
        (row,) = found["found"]
        shared = record.keys() & row.keys()
        assert {"package", "hash", "releases", "last_seen", "is_gone"} <= shared
        assert {key: record[key] for key in shared} == {key: row[key] for key in shared}
        assert record["kind"] == "binary"
        assert {**found["install"], "reason": None} == record["install"]

    gone = json.loads((await get(served, f"/spec/{hash_of('solo')}.json")).text)
    assert gone["kind"] == "gone"
    assert gone["is_gone"] is True
    assert gone["install"]["commands"] == []

    refused = await get(served, f"/spec/{hash_of('nothing')}.json")
    assert refused.status_code == 404


@pytest.mark.asyncio
async def test_pages_of_the_public_cache_are_as_quiet_as_before(datasette: Any) -> None:
    """Without dependency data there is no note about what is missing, and no lost
    binary.
    """
    answer = await get(datasette, "/package/hdf5")

    for words in (
        "no binary here",
        "has lost",
        "Spack downloads",
        "Needs",
        "no binary available",
    ):
        assert words not in answer.text


@pytest.mark.asyncio
async def test_the_beginning_of_a_hash_leads_to_its_json(served: Any) -> None:
    """Seven characters redirect, as on the page; other texts are refused in words."""
    whole = hash_of("hdf5_old")
    short = await get(served, f"/spec/{whole[:7]}.json")

    assert short.status_code == 302
    assert short.headers["location"] == f"/spec/{whole}.json"

    missing = await get(served, "/spec/7777777.json")
    assert missing.status_code == 404
