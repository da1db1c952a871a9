"""The tasks of a reader of Spack's public build cache, each from the first page to its
answer, with the clicks and keys that it takes.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from spack_cache_db.assembly.builds import build
from tests.pagetexts import page, spec, write
from tests.serving import Server, serving
from tests.site.browser.test_ways import Walk
from tests.site.browser.visitors import NARROW, WIDE, Visit
from tests.site.cache import spec_hash

pytestmark = pytest.mark.slow

BEFORE = "develop-2026-11-15"
NEWEST = "develop-2026-11-22"
Toolchain = dict[str, Any]
GCC_13: Toolchain = {
    "compiler": "gcc@13.2.0",
    "os": "ubuntu24.04",
    "target": "x86_64_v3",
}
GCC_11: Toolchain = {
    "compiler": "gcc@11.4.0",
    "os": "ubuntu22.04",
    "target": "x86_64_v3",
}
GRAVITON: Toolchain = {"compiler": "gcc@12.4.0", "os": "amzn2", "target": "neoverse_v1"}


def hash_of(number: int) -> str:
    """Return the hash of a binary."""
    return spec_hash(f"task {number}")


def binary(number: int, version: str, toolchain: Toolchain, *variants: str) -> Any:
    """Return a record of a page."""
    return spec(
        number,
        hash=hash_of(number),
        versions=[version],
        variants=list(variants),
        stacks=["e4s", "root"],
        **toolchain,
    )


OLD_HDF5 = binary(1, "1.14.5", GCC_11, "+mpi")
HDF5 = [
    binary(2, "1.14.6", GCC_11, "+mpi"),
    binary(3, "2.1.0", GCC_13, "+mpi"),
    binary(4, "2.1.0", GRAVITON, "+mpi"),
]
TORCH = [
    binary(5, "2.9.0", GCC_13, "+cuda", "cuda_arch=80"),
    binary(6, "2.9.0", GCC_13, "+cuda", "cuda_arch=90"),
    binary(7, "2.9.0", GCC_13, "~cuda"),
]
GDAL = [binary(8, "3.11.4", GCC_13)]
PAGES = {
    "hdf5": {BEFORE: [OLD_HDF5], NEWEST: HDF5, "develop": HDF5},
    "py-torch": {BEFORE: TORCH, NEWEST: TORCH, "develop": TORCH},
    "gdal": {BEFORE: GDAL, "develop": GDAL, "v1.2.0": GDAL},
}
"""The records of each page, by package and release. Gdal is lost in the last week."""


@pytest.fixture(scope="module")
def public_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over these pages."""
    folder = tmp_path_factory.mktemp("tasks")
    pages = {}
    for package, releases in PAGES.items():
        for release, records in releases.items():
            pages[f"{package}-{release}"] = page(package, release, records)
    file = folder / "spack-cache.db"
    build([write(folder / "pages", **pages)], file)
    with serving(file) as running:
        yield running


@pytest.fixture(
    params=[pytest.param(WIDE, id="wide"), pytest.param(NARROW, id="narrow")]
)
def walk(
    request: pytest.FixtureRequest, browser: Browser, public_server: Server
) -> Iterator[Walk]:
    """A visitor on the first page, at a desk or with a phone."""
    visit = Visit(browser, public_server, viewport=request.param)
    visit.page.goto("/")
    yield Walk(visit)
    visit.context.close()
    assert visit.faults == []


def command_of(number: int, package: str) -> str:
    """Return the command that installs a binary."""
    return f"spack install --cache-only {package}/{spec_hash(f'task {number}')[:7]}"


def test_hdf5_for_zen3(walk: Walk) -> None:
    """Ten keys and one click copy the command for the newest hdf5 on a zen3."""
    walk.search("hdf5 zen3")

    assert walk.copy("Copy: the command") == command_of(3, "hdf5")
    assert (walk.keys, walk.clicks) == (10, 1)


def test_a_version_for_a_compiler(walk: Walk) -> None:
    """The newest version that gcc 11 built is not the newest of all."""
    walk.search("hdf5 gcc 11")
    copied = walk.copy("Copy all: the commands")

    assert copied.splitlines()[-1] == command_of(2, "hdf5")
    expect(walk.page.get_by_role("main")).to_contain_text("1.14.6")
    assert (walk.keys, walk.clicks) == (12, 1)


def test_pytorch_with_cuda_for_an_a100(walk: Walk) -> None:
    """The name of the graphics processor is enough: CUDA follows from it."""
    walk.search("pytorch A100")
    copied = walk.copy("Copy all: the commands")

    assert copied.splitlines()[-1] == command_of(5, "py-torch")
    assert (walk.keys, walk.clicks) == (13, 1)


def test_what_changed_last_week(walk: Walk) -> None:
    """One click shows the four numbers of the newest week, and what was upgraded."""
    walk.follow("What changed")
    numbers = walk.page.get_by_role("list", name="Changed packages")

    assert numbers.get_by_role("listitem").all_inner_texts()[0].split()[0] == "1"
    expect(walk.page.locator("#upgraded")).to_contain_text("1 package")
    row = walk.page.locator(".upgrades li")
    expect(row).to_contain_text(re.compile(r"hdf5\s+1\.14\.5 →\s+2\.1\.0\s+major"))
    assert (walk.keys, walk.clicks) == (0, 1)


def test_which_package_was_lost_and_where_it_still_is(walk: Walk) -> None:
    """The lost package comes first, with links to the releases that still have it:
    three clicks copy the command that installs it from there.
    """
    walk.follow("What changed")
    lost = walk.page.locator(".one-side li").first
    expect(lost).to_contain_text("gdal 3.11.4")
    expect(lost).to_contain_text("still in develop, v1.2.0")

    lost.get_by_role("link", name="v1.2.0").click()
    walk.clicks += 1
    assert walk.path == "/package/gdal?release=v1.2.0"
    assert walk.copy("Copy: the command") == command_of(8, "gdal")
    assert (walk.keys, walk.clicks) == (0, 3)


def test_an_environment_for_one_toolchain(walk: Walk) -> None:
    """The column of a compiler is a link; the copied spack.yaml has its binaries."""
    walk.follow("Check my spack.yaml")
    walk.page.locator("textarea").fill("hdf5\npy-torch+cuda\ngdal")
    walk.page.get_by_role("button", name="Find binaries").click()
    expect(walk.page.get_by_role("heading", level=1)).to_contain_text("3 of 3 specs")
    walk.follow("gcc 11.4.0")
    expect(walk.page.get_by_role("heading", level=1)).to_contain_text("1 of 3 specs")
    walk.page.locator(".tabs").get_by_text("spack.yaml").click()
    copied = walk.copy("Copy: the spack.yaml")
    specs = [json.loads(line[4:]) for line in copied.splitlines() if "  - " in line]

    assert specs[0].startswith("hdf5@=1.14.6")
    assert specs[1:] == ["py-torch+cuda", "gdal"]


def test_a_graviton_machine_is_remembered(walk: Walk) -> None:
    """A machine that is chosen once decides the build on later pages."""
    machine = walk.page.get_by_role("combobox", name="my machine").first
    machine.select_option("neoverse_v1")
    walk.search("hdf5")
    assert walk.path == "/package/hdf5?host=neoverse_v1"
    assert walk.copy("Copy: the command") == command_of(4, "hdf5")

    walk.page.goto("/releases")
    remembered = walk.page.get_by_role("combobox", name="my machine")
    expect(remembered).to_have_value("neoverse_v1")


def test_the_history_of_a_package(walk: Walk) -> None:
    """The page of a package says since when, and until when, each version is there."""
    walk.search("hdf5")
    versions = walk.page.get_by_role("group", name="Version", exact=True)
    expect(versions).to_contain_text("until 15 Nov")
    old = walk.page.get_by_role("rowheader", name="1.14.5")
    expect(old.first).to_be_visible()

    assert (walk.keys, walk.clicks) == (5, 0)


def test_a_binary_by_its_hash(walk: Walk) -> None:
    """Seven characters lead to the binary, one click copies what installs it."""
    walk.search(hash_of(6)[:7])
    assert walk.path == f"/spec/{spec_hash('task 6')}"
    copied = walk.copy("Copy all: the commands")

    assert copied.splitlines()[-1] == command_of(6, "py-torch")
    assert (walk.keys, walk.clicks) == (8, 1)


def test_sql_with_a_link(walk: Walk) -> None:
    """Two clicks on a package's page lead to SQL; its address repeats the query."""
    walk.search("hdf5")
    walk.page.locator(".menu summary").click()
    walk.clicks += 1
    walk.follow("SQL")
    rows = walk.page.locator("table.rows-and-columns tbody tr")
    expect(rows).to_have_count(4)
    walk.page.goto(walk.page.url)
    expect(rows).to_have_count(4)

    assert "sql=" in walk.path and "package=hdf5" in walk.path
    assert (walk.keys, walk.clicks) == (5, 2)
