"""What a search leads to, and what a word in the search box names."""

import html
import re
import sqlite3
from dataclasses import replace
from typing import Any
from urllib.parse import quote_plus, unquote

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.reasons import WhyNot
from spack_cache_db.query.answers.why_not import NO_TIME
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.site.pages.names import having, load_names, suggested
from spack_cache_db.site.pages.search_answers import Search
from spack_cache_db.site.pages.search_page import SearchPage
from tests.package_data import published, write_packages
from tests.pagetexts import page, spec, write
from tests.site.addresses import get
from tests.site.conftest import site


def test_no_time_to_say_why_is_no_error(lookups: Lookups) -> None:
    """Whenever its time is over after the answer itself is known, the answer is given
    without.
    """

    def asked(steps: int) -> SearchPage | None:
        left = iter(range(steps))
        lookups.conn.set_progress_handler(lambda: next(left, None) is None, 10)
        try:
            page = Search(lookups).result("+cuda target=aarch64")
            assert isinstance(page, SearchPage)
            return page
        except sqlite3.OperationalError:
            return None
        finally:
            lookups.conn.set_progress_handler(None, 0)

    # The first number of steps with which there is an answer.
    hasty = next(filter(None, map(asked, range(100_000))))
    whole = asked(10**9)

    assert hasty.answer is not None and hasty.why == WhyNot(notes=(NO_TIME,))
    assert whole is not None and whole.why is not None and whole.why.without
    assert replace(whole, why=None) == replace(hasty, why=None)


@pytest.mark.asyncio
async def test_the_ways_out_are_links(datasette: Any) -> None:
    """Each leads to the spec without what excludes everything, or to the one that is
    meant.
    """
    excluded = await datasette.client.get("/find?q=hdf5%401.14+%2Bcuda")

    assert 'href="/find?q=hdf5%401.14">Without +cuda: 4 configurations' in excluded.text
    words = (
        await datasette.client.get("/find?q=hdf5+rhel8+aarch64+nothingelse+in+develop")
    ).text
    assert "Left out, because no binary matches: “nothingelse”" in words
    assert re.search(
        r'As a spec: <a href="/find\?q=hdf5%20[^"]*release=develop">', words
    )


@pytest.mark.asyncio
async def test_the_commonest_order_of_a_spec_is_answered(datasette: Any) -> None:
    """With the options behind the compiler, which are those of the compiler in Spack:
    the page says so, and the box keeps the text.
    """
    text = "hdf5 %gcc target=zen3"
    misplaced = await datasette.client.get(f"/find?q={quote_plus(text)}")
    moved = "hdf5 target=zen3 %gcc"

    assert f"this is the answer for {moved}." in misplaced.text
    assert f'name="q" value="{text}"' in misplaced.text
    assert 'id="configurations"' in misplaced.text


def test_part_of_a_name(lookups: Lookups) -> None:
    """Names that begin with the text come first, of every kind; eight are suggested."""
    names = load_names(lookups)
    found = [(each.kind, each.name) for each in having(names, "E4")]

    assert found == [("stack", "e4s"), ("stack", "e4s-arm")]
    assert [each.name for each in having(names, "vision")] == ["py-torchvision"]
    assert [each.name for each in having(names, "h")][:3] == ["hdf5", "hostile", "hep"]
    assert {"gcc": "compiler", "rhel8": "os"}.items() <= {
        each.name: each.kind for each in names
    }.items()
    assert having(names, "x" * 81) == having(names, " ") == []
    assert len(suggested(names, "e")) == 8


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "place", "address"),
    [
        # As people write it: the compiler first, and the machine's own target.
        (
            "hdf5@1.14 %gcc@13 +mpi target=neoverse_v1",
            "",
            "hdf5@1.14 +mpi target=:neoverse_v1 %gcc@13",
        ),
        ("hdf@1.14 +mpi", "&host=zen3", "hdf5@1.14 +mpi&host=zen3"),
        ("hdf5@1.9", "&release=v0.23.1", "hdf5@1.9"),
        (
            "hdf5@1.9 +mpi",
            "&release=v0.23.1&host=zen3",
            "hdf5 +mpi&release=v0.23.1&host=zen3",
        ),
    ],
)
async def test_a_way_out_keeps_what_it_does_not_name(
    datasette: Any, text: str, place: str, address: str
) -> None:
    """A search without an answer is one link from what comes nearest, on the same
    machine.
    """
    page = await get(datasette, f"/find?q={quote_plus(text)}{place}")
    links = [
        unquote(html.unescape(each))
        for each in re.findall(r'href="(/find\?q=[^"]*)"', page.text)
    ]

    assert f"/find?q={address}" in links
    for link in links:
        query, *rest = link.removeprefix("/find?q=").split("&")
        found = await get(
            datasette, f"/find.json?q={quote_plus(query)}&{'&'.join(rest)}"
        )
        assert found.json(), link


BUILT = {
    "py-torch": "Tensors and dynamic neural networks in Python with strong GPU acceleration.",
    "py-torchvision": "Image and video datasets and models for PyTorch.",
    "hdf5": "HDF5 is a data model, library, and file format for storing data.",
    "metis": "METIS is a set of serial programs for partitioning finite element meshes.",
    "py-mpi4py": "This package provides Python bindings for the Message Passing Interface (MPI).",
    "python": "The Python programming language.",
    "openblas": "OpenBLAS: An optimized BLAS library.",
    "openmpi": "An open source Message Passing Interface implementation.",
    "mpich": "MPICH is a high performance implementation of MPI.",
    "py-numpy": "Fundamental package for array computing in Python.",
    "netcdf-c": "NetCDF is a set of software libraries.",
}
UNBUILT = {
    "py-tensorflow": "TensorFlow is an open source library for machine learning.",
    "parmetis": "ParMETIS partitions unstructured graphs, meshes and matrices in parallel.",
    "hipblas": "hipBLAS is a BLAS marshalling library.",
}
CARD = re.compile(
    r'<tr class="package[^"]*">(.*?)(?=<tr class="package|</tbody>)', re.DOTALL
)
"""A package, and the build that its command installs."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The site of some packages with descriptions, most of them with two binaries."""
    folder = tmp_path_factory.mktemp("cards")
    pages = {}
    for number, name in enumerate(BUILT):
        first = 3 * number + 1
        specs = [
            spec(first, compiler="gcc@11.4.0", variants=["+mpi", "~cuda"]),
            spec(first + 1, target="zen3", variants=["~mpi", "+cuda"]),
            spec(first + 2, target="zen4", variants=["~mpi", "~cuda"]),
        ]
        pages[name] = page(name, specs=specs)
    data = [
        published(name, description=text) for name, text in (BUILT | UNBUILT).items()
    ]
    sources = [write(folder / "pages", **pages), write_packages(folder / "in", *data)]
    build(sources, folder / "x.db")
    return site(folder / "x.db")


async def answer(packages: Any, text: str) -> Any:
    """Return the page to which a search leads."""
    address = f"/find?q={quote_plus(text)}"
    for _ in range(3):
        found = await get(packages, address)
        if found.status_code != 302:
            return found
        address = found.headers["location"]
    raise AssertionError(f"{text} leads on to {address}")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("pytorch", "py-torch"),
        ("PyTorch", "py-torch"),
        ("torch", "py-torch"),
        ("torc", "py-torch"),
        ("pytroch", "py-torch"),
        ("mesh partitioner", "metis"),
        ("python bindings for mpi", "py-mpi4py"),
        ("blas", "openblas"),
        ("libhdf5-dev", "hdf5"),
        ("libhdf5-openmpi-dev", "hdf5"),
        ("hdf5-devel", "hdf5"),
        ("python3-numpy", "py-numpy"),
        ("netcdf", "netcdf-c"),
        ("open-mpi/ompi", "openmpi"),
        ("git@github.com:pytorch/pytorch.git", "py-torch"),
        ("https://github.com/pytorch/vision", "py-torchvision"),
        ("image datasets", "py-torchvision"),
    ],
)
async def test_the_package_that_is_meant_comes_first(
    packages: Any, text: str, first: str
) -> None:
    """By its name elsewhere, a part of its name, or its description."""
    found = await answer(packages, text)
    cards = CARD.findall(found.text)

    assert found.status_code == 200
    assert f'<a href="/package/{first}">{first}</a>' in cards[0]
    (copied,) = re.findall(r'data-copy="([^"]*)"', cards[0])
    assert copied.splitlines()[-1].startswith(f"spack install --cache-only {first}/")


@pytest.mark.asyncio
async def test_a_card_says_what_there_is(packages: Any) -> None:
    """And why it is there, if its name does not say so."""
    found = (await answer(packages, "pytorch for my zen3")).text
    (torch, _) = CARD.findall(found)

    text = " ".join(re.sub(r"<[^>]*>", "", torch).split())
    assert "“pytorch” is called py-torch in Spack" in text
    assert "2 packages have a binary for zen3" in found
    # One binary for x86_64_v3, and those for zen3 and zen4 together.
    assert "1 none none none none none 2" in text
    assert "chosen for zen3" in text
    assert 'href="/package/py-torch?host=zen3"' in torch


@pytest.mark.asyncio
async def test_providers_come_first(packages: Any) -> None:
    """Of a virtual package, before those that have its name in theirs."""
    cards = CARD.findall((await answer(packages, "MPI")).text)

    names = [re.findall(r"/package/([^\"?]*)", card)[0] for card in cards]
    assert [*sorted(names[:2]), *names[2:]] == ["mpich", "openmpi", "py-mpi4py"]
    assert all("provides MPI" in card for card in cards[:2])


@pytest.mark.asyncio
async def test_a_package_without_a_binary_is_not_replaced(packages: Any) -> None:
    """No other rows are shown; what builds it is."""
    for text in ("tensorflow gpu", "tensorflow +cuda zen3", "TensorFlow"):
        found = (await answer(packages, text)).text
        assert (
            "” is called py-tensorflow in Spack. This database has no binary of"
            in found
        )
        assert "<code>spack install py-tensorflow</code>" in found
        assert 'id="configurations"' not in found and not CARD.findall(found)

    found = " ".join((await answer(packages, "blas")).text.split())
    assert (
        '<a href="/package/hipblas">'
        in found.partition("without a binary in this database")[2]
    )


@pytest.mark.asyncio
async def test_a_package_without_a_binary_for_the_machine_says_so(
    packages: Any,
) -> None:
    """And leads to those for others."""
    (card,) = CARD.findall((await answer(packages, "libhdf5-dev m1")).text)

    assert "no binary for m1" in card and "3 binaries in all" in card
    assert "data-copy" not in card


@pytest.mark.asyncio
async def test_a_version_counts_beside_words_that_are_left_out(packages: Any) -> None:
    """No command installs another version than the one that was typed."""
    for text in ("hdf5 9.9 or newer", "hdf5 9.9 abcdef zen3"):
        found = (await answer(packages, text)).text
        assert "No binary for" in found and "no version 9.9 of hdf5" in found.lower()
        assert "left out, because no binary matches" in found.lower()
        assert 'data-copy="spack mirror add' not in found

    # Two packages are named, and neither is dropped.
    both = (await answer(packages, "openmpi 9.9 hdf5")).text
    assert 'href="/package/openmpi' in both and 'href="/package/hdf5' in both


@pytest.mark.asyncio
async def test_an_option_that_is_off_needs_no_package(packages: Any) -> None:
    """`-cuda` is `~cuda` in Spack; an unknown one is a word."""
    off = (await answer(packages, "-cuda")).text
    word = (await answer(packages, "-nonesuch")).text

    assert f"{len(BUILT)} packages have a binary with ~cuda" in off
    assert "No package is called “-nonesuch”" in word


@pytest.mark.asyncio
async def test_one_package_is_singular(packages: Any) -> None:
    """Also if it has no binary as asked."""
    found = (await answer(packages, "hdf5 abcdef m1")).text

    assert "0 of 1 package has a binary for m1" in found


@pytest.mark.asyncio
async def test_the_command_of_a_spec_is_one_click_away(packages: Any) -> None:
    """The page with rows says how it read the words, and how to install the first."""
    found = (await answer(packages, "py-torch +cuda zen3 gcc13")).text
    head, _, rows = found.partition('id="configurations"')

    assert "Read as</span> py-torch +cuda %gcc@13" in head
    assert "spack buildcache keys" in head and "1 configuration on zen3" in head
    commands = re.findall(r'data-copy="(spack mirror add[^"]*)"', head)
    installs = re.findall(r'data-copy="(spack mirror add[^"]*)"', rows)
    assert commands[0] == installs[0]


@pytest.mark.asyncio
async def test_no_words_lead_in_a_circle(packages: Any) -> None:
    """Every pair of words has an answer."""
    words = re.findall(
        r"\S+", "hdf5 pytorch cuda mpi zen3 epyc develop gcc13 e4s xyz /a/b"
    )

    for first in words:
        for second in words:
            assert (await answer(packages, f"{first} {second}")).status_code == 200
