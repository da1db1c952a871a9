"""Every number that is a link leads to as many rows, over all pages of contradicting
files.
"""

import html
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.model import Configuration
from tests.contradictions import RELEASES, Listing, write_sources
from tests.histories import binary, build_history
from tests.pagetexts import spec_hash
from tests.site.addresses import get
from tests.site.conftest import site

SAYS = re.compile(
    r'id="configurations-heading">([\d,]+) configurations? <span[^>]*>\s*'
    r"(?:that runs? on [^,]*, )?([\d,]+) binar"
    r'|class="lead result" role="status">[^/]*?(?:<a [^>]*>[^<]*</a>[^/]*?)?()([\d,]+) binar'
    r'|id="configurations-heading">([\d,]+)() configuration'
    r'|class="facts" role="status">([\d,]+)() configuration'
    r'|class="facts">()([\d,]+) (?:binar|spec)\w+ of'
    r'|class="facts">([\d,]+) configurations?,\s+([\d,]+) (?:binar|spec)'
)
"""What a page says of itself: how many configurations, how many binaries."""
FACETS = re.compile(r'<details class="facets">.*?</details>', re.DOTALL)
"""The values beside a search, which count configurations; all other numbers count
binaries.
"""
BESIDE = re.compile(
    r'<a href="([^"]+)"[^>]*>[^<]*</a>(?:</th>\s*<td class="bar">.*?</td>\s*<td class="count">'
    r'| <span class="quiet">)([\d,]+)<',
    re.DOTALL,
)
INSIDE = re.compile(r'<a href="([^"]+)"[^>]*>([\d,]+)</a>')
ROW = re.compile(r'<th scope="row"><a href="([^"]+)">.*?</tr>')
COUNT = re.compile(r'<td class="count">([\d,]+)</td>')


def drawn(seed: int) -> list[Listing]:
    """Return listings of a few specs that most releases and indexes tell otherwise."""
    chance = random.Random(seed)
    usual = {number: configuration(chance) for number in range(5)}
    found = []
    for number, known in usual.items():
        for release in RELEASES[:4]:
            if chance.random() < 0.6:
                shown = configuration(chance) if chance.random() < 0.4 else known
                stacks = chance.choice(
                    [("root",), ("e4s", "root"), ("e4s", "ml", "root")]
                )
                found.append(Listing(release, spec_hash(number), shown, stacks))
            if seed % 2 and chance.random() < 0.2:
                indexed = (release, spec_hash(number), known, ("e4s",))
                found.append(Listing(*indexed, index="e4s"))
    return found


def configuration(chance: random.Random) -> Configuration:
    """Return a configuration at random; one target is called as its family."""
    return Configuration(
        package=chance.choice(["aa", "bb"]),
        version=chance.choice(["1.0", "2.0"]),
        compiler=chance.choice(["gcc@12.1.0", "gcc@13.2.0", "gcc", "none"]),
        os=chance.choice(["rhel8", "ubuntu22.04"]),
        platform=chance.choice(["linux", "linux", "darwin"]),
        target=chance.choice(["x86_64_v3", "aarch64", "neoverse_v1"]),
        variants=chance.choice([("+x",), ("~x",)]),
    )


def counted_links(text: str) -> Iterator[tuple[str, bool, int]]:
    """Yield the addresses beside a number, whether it counts configurations, and the
    number.
    """
    content = text.partition("<main")[2]
    rest = FACETS.sub("", content)
    pairs = [
        (*pair, True)
        for each in FACETS.findall(content)
        for pair in BESIDE.findall(each)
    ]
    pairs += [(*pair, False) for pair in (*BESIDE.findall(rest), *INSIDE.findall(rest))]
    if '<table class="list"' in content:
        pairs += [
            (match[1], COUNT.findall(match[0])[-1], False)
            for match in ROW.finditer(content)
        ]
    for address, number, is_of_configurations in pairs:
        yield html.unescape(address), is_of_configurations, int(number.replace(",", ""))


async def followed(served: Any, path: str) -> Any:
    """Return the page to which an address leads in the end."""
    answer = await get(served, path)
    while answer.status_code == 302:
        answer = await get(served, answer.headers["location"])
    assert answer.status_code == 200, path
    return answer


async def walked(served: Any) -> int:
    """Follow every link with a number from the first pages; return how many were
    compared.
    """
    ahead = ["/", "/packages", "/releases", "/stacks", "/find?q=*"]
    compared = 0
    ahead += [
        "/packages?has=neoverse_v1&target=aarch64:",
        "/packages?has=aarch64&target=x86_64_v3",
    ]
    ahead += ["/packages?has=aarch64&target=neoverse_v1"]
    # Machines, of which some have one of the platforms only.
    for host in ("neoverse_v1", "m1", "aarch64", "zen3"):
        ahead += [f"/packages?host={host}", f"/find?q=*&host={host}"]
        ahead += [f"/package/aa?host={host}", f"/find?q=+x&host={host}"]
    pages: dict[str, Any] = {}
    while ahead:
        page = await followed(served, ahead.pop())
        path = str(page.url.path)
        for relative, is_of_configurations, number in counted_links(page.text):
            address = path + relative if relative.startswith("?") else relative
            if address not in pages:
                pages[address] = SAYS.search((await followed(served, address)).text)
                ahead.append(address)
            said = pages[address]
            assert said is not None, f"{path} links {number} to {address}"
            found = [int(each.replace(",", "")) for each in said.groups() if each]
            assert found[0 if is_of_configurations else -1] == number, (
                f"{page.url}: {address}"
            )
            compared += 1
    return compared


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("seed", [0, 1])
async def test_every_number_leads_to_as_many_rows(tmp_path: Path, seed: int) -> None:
    """Bars, lists, grids and values beside a search: the page behind each has that
    many.
    """
    file = tmp_path / "spack-cache.db"
    build([str(write_sources(tmp_path / "in", drawn(seed)))], file)

    assert await walked(site(file)) > 100


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("seed", [0, 1])
async def test_numbers_in_a_history_lead_to_as_many_rows(
    tmp_path: Path, seed: int
) -> None:
    """Also if the mirror has lost binaries that its copies list."""
    chance = random.Random(seed)
    versions = {
        f"{package}_{number}": "1.0" for package in ("aa", "bb") for number in range(4)
    }
    versions |= {name: "2.0" for name in versions if chance.random() < 0.5}
    days: dict[str, list[Any]] = {}
    for day in ("2026-11-01", "2026-11-02", "2026-11-03"):
        today = [name for name in versions if chance.random() < 0.6]
        days[day] = [
            binary(name, versions[name]) for name in ("cc", *today) if name in versions
        ]
    file = build_history(tmp_path, days)

    assert await walked(site(file)) > 50
