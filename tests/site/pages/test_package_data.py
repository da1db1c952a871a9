"""What Spack says of a package on the site: beside its binaries, and where there are
none.
"""

import json
import random
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.behind import behind
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.site.pages.list_page import ListFilters
from spack_cache_db.site.pages.package_list import load_packages
from tests.package_data import REAL, described, published, write_packages
from tests.pagetexts import SAMPLES, page, spec, write
from tests.site.addresses import get
from tests.site.conftest import asked_of, open_site, site

RECIPES = "https://packages.spack.io/package.html?name="


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The site of the sample pages, real package data, and some that is hostile."""
    folder = tmp_path_factory.mktemp("packages")
    hostile = published(
        "hostile",
        "1.0",
        description="<img src=x onerror=alert(1)>\u202e\x07",
        homepage="javascript:alert(1)",
        variants=[
            {
                "name": "x",
                "default": True,
                "description": "<script>alert(1)</script>\u202e",
            }
        ],
    )
    needed = published("needed", "2.0", dependent_to=described("py-mpi4py"))
    virtual = {"name": "mpi4", "description": "The package py-ml-dtypes."}
    user = published("user", dependencies=[virtual])
    provider = published("py-ml-dtypes", "0.4.0")
    build(
        [SAMPLES, REAL, write_packages(folder / "in", hostile, needed, user, provider)],
        folder / "x.db",
    )
    return site(folder / "x.db")


@pytest.mark.asyncio
async def test_a_package_with_binaries_says_what_is_behind(packages: Any) -> None:
    """Beside Spack's version, its homepage and one address of its recipe."""
    text = (await get(packages, "/package/py-mpi4py")).text
    assert "Spack has 4.1.1: 4 versions behind" in text
    assert 'rel="noopener nofollow">Homepage</a>' in text
    assert re.findall('href="([^"]*)"[^>]*>Recipe</a>', text) == [f"{RECIPES}py-mpi4py"]

    provider = (await get(packages, "/package/py-ml-dtypes")).text
    assert "4 versions behind" not in provider and "provides mpi4" in provider


@pytest.mark.asyncio
async def test_a_package_without_a_binary_has_a_page(packages: Any) -> None:
    """With what it is for, its versions and variants, and who here may depend on it."""
    answer = await get(packages, "/package/fftw")

    assert answer.status_code == 200
    assert "Spack has this package, no binary of it is in this database." in answer.text
    assert "FFTW is a C subroutine library" in answer.text
    assert "<code>~openmp</code>" in answer.text
    assert f'href="{RECIPES}fftw"' in answer.text
    assert "deprecated" in (await get(packages, "/package/expat")).text
    assert '/package/py-mpi4py"' in (await get(packages, "/package/needed")).text
    assert (await get(packages, "/package/nothing-of-the-kind")).status_code == 404


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The site of a package in three configurations, with one variant that Spack does
    not know.
    """
    folder = tmp_path_factory.mktemp("variants")
    described = [
        {"name": "mpi", "default": True, "description": "Use\n  MPI"},
        {"name": "cuda", "default": False, "description": "For <GPUs>"},
        {"name": "libs", "default": "static,shared", "description": ""},
    ]
    sets = (
        ["+mpi", "~cuda", "libs=shared,static", "+other"],
        ["~mpi", "~cuda", "libs=shared,static", "+other"],
        ["+mpi", "+cuda", "libs=shared", "+other"],
    )
    specs = [spec(at, variants=each) for at, each in enumerate(sets)]
    build(
        [
            write(folder / "pages", x=page("x", specs=specs)),
            write_packages(
                folder / "data", published("x", "1.0", variants=described), names=["xy"]
            ),
        ],
        folder / "x.db",
    )
    return site(folder / "x.db")


def shown(text: str) -> list[list[str]]:
    """Return the variants of each row of a page."""
    cells = re.findall(r'<td class="variants"[^>]*>(.*?)</td>', text, re.DOTALL)
    return [re.findall(r"<code[^>]*>([^<]*)</code>", cell) for cell in cells]


@pytest.mark.asyncio
async def test_what_is_no_default_comes_first(variants: Any) -> None:
    """In a row what is no default stands before what is; what all rows have stands once
    below.
    """
    every = shown((await get(variants, "/package/x")).text)

    assert sorted(every) == [
        ["+cuda", "libs=shared", "+mpi"],
        ["+mpi", "libs=shared,static", "~cuda"],
        ["~mpi", "libs=shared,static", "~cuda"],
    ]


@pytest.mark.asyncio
async def test_variants_say_what_they_mean(variants: Any) -> None:
    """In the rows, in the filters, and in a table as text."""
    text = (await get(variants, "/package/x")).text

    assert '<code title="Use MPI; the default">+mpi</code>' in text
    assert '<code title="For &lt;GPUs&gt;; default ~cuda">+cuda</code>' in text
    assert (
        '<option value="~mpi" title="Use MPI; default +mpi">~mpi (1)</option>' in text
    )
    assert (
        '<option value="+mpi" title="Use MPI; the default">+mpi (2), default</option>'
        in text
    )
    assert re.search(r"<code>libs=shared,static</code></td>\s*<td[^>]*></td>", text)


@pytest.mark.asyncio
async def test_names_say_what_they_are_for(variants: Any) -> None:
    """A suggestion has the first line; a name that nobody knows is answered with what
    is close.
    """
    assert (await get(variants, "/suggest.json?q=x")).json()[0] == {
        "name": "x",
        "kind": "package",
        "summary": "The package x.",
    }

    close = await get(variants, "/package/xyy")
    assert close.status_code == 404
    assert "/package/xy" in close.text
    assert "/package/xy<" not in (await get(variants, "/sitemap.xml")).text


@pytest.mark.asyncio
async def test_what_recipes_say_is_text(packages: Any) -> None:
    """Markup, addresses that run scripts, and characters that turn the text around
    them.
    """
    text = (await get(packages, "/package/hostile")).text

    assert "<img" not in text.partition("<h1>")[2]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "javascript:" not in text
    assert "\u202e" not in text
    assert "\x07" not in text


@pytest.mark.asyncio
async def test_the_data_of_a_package_is_json(packages: Any) -> None:
    """With or without a binary; a package of which there is none is not found."""
    found = (await get(packages, "/package/py-mpi4py.json")).json()
    assert (found["newest_version"], found["versions_behind"]) == ("4.0.1", 4)

    found = (await get(packages, "/package/fftw.json")).json()
    assert (found["newest_version"], found["spec_count"]) == (None, 0)
    assert ("openmp", "false") in {
        (variant["name"], variant["default"]) for variant in found["variants"]
    }

    nothing = await get(packages, "/package/nothing.json")
    assert nothing.status_code == nothing.json()["status"] == 404
    assert nothing.json()["error"] == "nothing: no package has this name"


VERSIONS = ("1.0", "1.9", "1.10", "2.0", "3.1")
STACKS = ("e4s", "ml")
RELEASES = ("develop", "v0.23")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random binaries of ten packages, and the versions that Spack has of twelve."""
    folder = tmp_path_factory.mktemp("lag")
    rng = random.Random(7)
    pages = {}
    for package in range(10):
        for release in rng.sample(RELEASES, rng.randint(1, 2)):
            specs = []
            for version in rng.sample(VERSIONS, rng.randint(1, 3)):
                number = rng.randrange(10**6)
                stack = rng.choice(STACKS)
                specs.append(spec(number, versions=[version], stacks=[stack]))
            pages[f"{package}-{release}"] = page(f"p{package}", release, specs)
    known = [
        published(
            f"p{at}", *rng.sample(VERSIONS, 3), description="<b>What</b> it is. More.\n"
        )
        for at in range(12)
    ]
    build([write(folder / "pages", **pages), write_packages(folder / "data", *known)],
          folder / "x.db")  # fmt: skip
    return folder / "x.db"


def test_the_list_is_that_of_the_command(file: Path) -> None:
    """In each release, each stack and both; what is missing is what has no row
    there.
    """
    conn = sqlite3.connect(file)
    lookups = read_lookups(conn)

    for release in (None, *RELEASES):
        for stack in (None, *STACKS):
            where = {"release": release or "", "stack": stack or ""}
            found = load_packages(lookups, ListFilters(**where, behind="1"))
            assert {
                (row["name"], row["version"], row["behind"]) for row in found.rows
            } == {
                (status.name, status.newest_version, status.versions_behind)
                for status in behind(file, release=release, stack=stack)
            }
            every = load_packages(lookups, ListFilters(**where))
            missing = load_packages(lookups, ListFilters(**where, missing="1"))
            assert {row["name"] for row in missing.rows} == {
                f"p{at}" for at in range(12)
            } - {row["name"] for row in every.rows}
            assert missing.rows
    conn.close()


def test_most_comes_first(file: Path) -> None:
    """Unless another order is asked for; rows are text, and CSV has their columns."""
    conn = sqlite3.connect(file)
    lookups = read_lookups(conn)
    found = load_packages(lookups, ListFilters(behind="1"))
    counts = [row["behind"] for row in found.in_order()]

    assert counts == sorted(counts, reverse=True)

    asked = ListFilters(missing="1", q="p1", sort="name")
    assert [row["name"] for row in load_packages(lookups, asked).in_order()] == [
        "p10",
        "p11",
    ]

    own_site = open_site(file)
    page, text = (
        asked_of(own_site, f"/packages{form}{asked.address()}").body
        for form in ("", ".csv")
    )
    assert b"&lt;b&gt;What&lt;/b&gt; it is.<" in page
    assert text.startswith(b"name,latest,dependents,summary\np10,")
    conn.close()


def test_what_cannot_be_compared_is_told(file: Path, samples_file: Path) -> None:
    """Without package data, and where nothing could be both."""
    found_site = open_site(file)
    for other in ("behind", "lacks"):
        refused = asked_of(found_site, f"/packages.json?missing=1&{other}=x86_64").body
        expected = f"missing and {other} exclude each other: ask for one of them."
        assert json.loads(refused)["error"] == expected

    conn = sqlite3.connect(samples_file)
    found = load_packages(read_lookups(conn), ListFilters(behind="1"))
    assert found.rows
    assert found.faults == (
        "This database has no package data: it cannot be compared with Spack.",
    )
    conn.close()


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_pages_of_releases_and_stacks_lead_to_the_lists(file: Path) -> None:
    """Narrowed to the release or the stack, where there is package data."""
    lookups = read_lookups(sqlite3.connect(file))
    served = site(file)
    places = [("release", release.name) for release in lookups.releases.values()]
    places += [("stack", stack.name) for stack in lookups.stacks.values()]

    for kind, name in places:
        text = (await served.client.get(f"/{kind}/{name}")).text
        for field in ("behind", "missing"):
            address = f"/packages?{kind}={name}&{field}=1"
            assert address.replace("&", "&amp;") in text
            assert (await served.client.get(address)).status_code == 200
