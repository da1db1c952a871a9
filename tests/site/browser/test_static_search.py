"""A search in a static export, in a browser: what was understood, and the packages."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from spack_cache_db import build
from spack_cache_db.site.static.export import export_static
from spack_cache_db.site.static.vocabulary import VOCABULARY
from tests.package_data import published, write_packages
from tests.pagetexts import page as page_of_package
from tests.pagetexts import write
from tests.site.browser.static_hosts import hosted
from tests.site.real_names import write_database

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an export of a database with real names of packages."""
    folder = tmp_path_factory.mktemp("host")
    export_static(write_database(folder / "input"), folder / "public")
    # A database with package data: one package with a binary, and one without.
    packages = [
        published("scotch", description="Partitions meshes and graphs."),
        published("kahip", description="Karlsruhe high quality partitions of meshes"),
    ]
    sources = [
        write(folder / "pages", scotch=page_of_package("scotch")),
        write_packages(folder / "packages", *packages),
    ]
    build(sources, folder / "described.db")
    export_static(folder / "described.db", folder / "public" / "described")
    with hosted(folder) as served:
        yield served


def search(page: Page, address: str, text: str) -> None:
    """Open the answer to a search."""
    page.goto(f"{address}/index.html?q={quote(text)}")
    # The script shows this form before it looks for an answer.
    expect(page.locator("#search-again")).to_be_visible()
    expect(page.locator("main[aria-busy]")).to_have_count(0)
    expect(page.locator("main h1")).to_be_visible()


def tokens(page: Page) -> list[str]:
    """Return what was understood."""
    return page.locator(".tokens b").all_inner_texts()


def test_what_was_understood_can_be_removed(page: Page, address: str) -> None:
    """Each part has a link to the search without it."""
    search(page, address, "pytorch cuda zen3 gcc 13")
    assert sorted(tokens(page)) == ["+cuda", "gcc 13", "py-torch", "zen3"]

    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text(
        "1 package has a binary with +cuda built with gcc 13 for zen3"
    )
    page.get_by_role("link", name="Remove zen3").click()
    expect(heading).to_have_text("1 package has a binary with +cuda built with gcc 13")
    expect(page.get_by_role("searchbox").first).to_have_value("pytorch cuda gcc 13")

    assert sorted(tokens(page)) == ["+cuda", "gcc 13", "py-torch"]


def test_the_choice_is_carried_to_the_package(page: Page, address: str) -> None:
    """The fields of the package's page are what the words ask for."""
    search(page, address, "py-torch +cuda %gcc@13 zen3")
    page.get_by_role("link", name="Choose a build of py-torch").click()
    page.wait_for_url("**/package/py-torch.html?*")
    fields = parse_qsl(urlsplit(page.url).query)

    assert sorted(fields) == [
        ("compiler", "gcc@13.2.0"),
        ("host", "zen3"),
        ("variant", "+cuda"),
    ]


def test_a_whole_answer_opens_the_package(page: Page, address: str) -> None:
    """As on the website, without another click."""
    page.goto(f"{address}/index.html?q=parallel+hdf5")
    page.wait_for_url("**/package/hdf5.html?variant=%2Bmpi")


def test_what_is_left_out_is_said(page: Page, address: str) -> None:
    """Words without a meaning, dependencies that are not recorded, and stacks."""
    search(page, address, "please nonesuch numpy python 3.11")
    notes = page.locator(".notes")
    expect(notes).to_contain_text("Not used: “please”")
    expect(notes).to_contain_text("Not understood, and left out: “nonesuch”")
    expect(notes).to_contain_text("so “python 3.11” is not checked")
    search(page, address, "hdf5 e4s")
    expect(page.locator(".notes")).to_contain_text(
        "Not checked by this search: stack e4s"
    )
    search(page, address, "hdf5@1.14 openblas")
    expect(page.locator(".notes")).to_contain_text(
        "Not checked by this search: the version of hdf5@1.14"
    )


def test_providers_are_rows_with_their_processors(page: Page, address: str) -> None:
    """Columns of the processors that are asked for are marked."""
    search(page, address, "lapack for neoverse")
    rows = page.locator("table.processors tbody tr")
    names = rows.locator("th > a").all_inner_texts()

    assert {"intel-oneapi-mkl", "netlib-lapack", "openblas"} <= set(names)

    expect(rows.first).to_contain_text("provides lapack")
    chosen = page.locator("table.processors thead .chosen").all_inner_texts()
    assert chosen == ["aarch64", "neoverse v1", "neoverse v2"]


def test_a_mac_has_the_binaries_of_macos(page: Page, address: str) -> None:
    """Its column is marked, and each number leads to the binaries that it counts."""
    search(page, address, "hdf5 openblas m2")
    chosen = page.locator("table.processors thead .chosen").all_inner_texts()

    assert chosen == ["macOS"]

    row = page.locator("table.processors tbody tr.package").first
    addresses = [link.get_attribute("href") or "" for link in row.locator("td a").all()]
    assert any(text.endswith("?platform=darwin") for text in addresses), addresses
    linux = "?target=aarch64&platform=linux"
    assert any(text.endswith(linux) for text in addresses), addresses


def test_a_hash_leads_to_its_binary(page: Page, address: str) -> None:
    """A hash is looked up in the database."""
    # The hash of the first binary that the tests write.
    search(page, address, "a" * 31 + "b")
    binary = page.get_by_role("link", name="/" + "a" * 31 + "b")
    expect(binary).to_be_visible()


def test_descriptions_are_searched_if_no_name_is_known(
    page: Page, address: str
) -> None:
    """Packages without a binary are named; a database without descriptions says so."""
    search(page, f"{address}/described", "meshes partitions")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("1 package has a binary")
    expect(page.locator("table.processors th a")).to_have_text("scotch")
    known = "Known to Spack, without a binary here: kahip."
    expect(page.locator("main")).to_contain_text(known)
    search(page, address, "meshes partitions")
    expect(heading).to_have_text("No package is called “meshes partitions”.")
    expect(page.locator("main")).to_contain_text("not their descriptions")


@pytest.mark.parametrize("width", [390, 1366])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    browser: Browser, address: str, width: int, scheme: str
) -> None:
    """An answer with rows, one without a package, and a guess are accessible."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    window = context.new_page()

    for text in ("pytorch graviton gcc 13", "nonesuch", "hfd5", "cmake %gcc@9"):
        search(window, address, text)
        found = Axe().run(window).response["violations"]
        faults = [(fault["id"], fault["nodes"][0]["html"]) for fault in found]
        assert faults == [], text
        overflow = "document.documentElement.scrollWidth > innerWidth"
        assert not window.evaluate(overflow), text
    context.close()


def test_the_vocabulary_is_replaced_with_the_database(tmp_path: Path) -> None:
    """It is a file beside the catalogue, of the same export."""
    file = write_database(tmp_path / "input")
    export_static(file, tmp_path / "public")
    first = (tmp_path / "public" / VOCABULARY).read_bytes()
    (tmp_path / "public" / VOCABULARY).write_text("{}")
    export_static(file, tmp_path / "public")

    assert (tmp_path / "public" / VOCABULARY).read_bytes() == first
