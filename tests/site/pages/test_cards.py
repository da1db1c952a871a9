"""The first result of a search is the package that people mean."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote_plus

import pytest

from spack_cache_db.build import build
from tests.package_data import published, write_packages
from tests.pagetexts import page, spec, write
from tests.site.addresses import get
from tests.site.conftest import site

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
CARD = re.compile(r'<li class="card found">(.*?)</li>', re.DOTALL)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The site of some packages with descriptions, most of them with two binaries."""
    folder = tmp_path_factory.mktemp("cards")
    pages = {
        name: page(
            name,
            specs=[
                spec(3 * at + 1, compiler="gcc@11.4.0", variants=["+mpi", "~cuda"]),
                spec(3 * at + 2, target="zen3", variants=["~mpi", "+cuda"]),
                spec(3 * at + 3, target="zen4", variants=["~mpi", "~cuda"]),
            ],
        )
        for at, name in enumerate(BUILT)
    }
    data = [published(name, description=text) for name, text in (BUILT | UNBUILT).items()]
    build([write(folder / "pages", **pages), write_packages(folder / "in", *data)], folder / "x.db")
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
async def test_the_package_that_is_meant_comes_first(packages: Any, text: str, first: str) -> None:
    """By its name elsewhere, a part of its name, or its description."""
    found = await answer(packages, text)
    cards = CARD.findall(found.text)

    assert found.status_code == 200
    assert f'<h2><a href="/package/{first}">{first}</a>' in cards[0]
    assert re.search(rf'data-copy="spack install --cache-only {first}/', cards[0])


@pytest.mark.asyncio
async def test_a_card_says_what_there_is(packages: Any) -> None:
    """And why it is there, if its name does not say so."""
    (torch, _) = CARD.findall((await answer(packages, "pytorch for my zen3")).text)

    text = re.sub(r"<[^>]*>", "", torch)
    assert "“pytorch” is called py-torch in Spack" in text
    assert "2 binaries for zen3 · gcc 11\N{EN DASH}13 · +cuda +mpi · in develop" in " ".join(
        text.split()
    )
    assert 'href="/package/py-torch?host=zen3"' in torch


@pytest.mark.asyncio
async def test_providers_come_first(packages: Any) -> None:
    """Of a virtual package, before those that have its name in theirs."""
    cards = CARD.findall((await answer(packages, "MPI")).text)

    names = [re.findall(r"/package/([^\"]*)", card)[0] for card in cards]
    assert [*sorted(names[:2]), *names[2:]] == ["mpich", "openmpi", "py-mpi4py"]
    assert all("provides MPI" in card for card in cards[:2])


@pytest.mark.asyncio
async def test_a_package_without_a_binary_is_not_replaced(packages: Any) -> None:
    """No other rows are shown; what builds it is."""
    for text in ("tensorflow gpu", "tensorflow +cuda zen3", "TensorFlow"):
        found = (await answer(packages, text)).text
        assert "” is called py-tensorflow in Spack. This database has no binary of" in found
        assert "<code>spack install py-tensorflow</code>" in found
        assert 'id="configurations"' not in found and not CARD.findall(found)
    found = (await answer(packages, "blas")).text
    assert '<a href="/package/hipblas">' in found.partition("without a binary in this database")[2]


@pytest.mark.asyncio
async def test_a_package_without_a_binary_for_the_machine_says_so(packages: Any) -> None:
    """And leads to those for others."""
    (card,) = CARD.findall((await answer(packages, "libhdf5-dev m1")).text)

    assert '<a href="/package/hdf5">3 binaries in all</a>' in card
    assert "data-copy" not in card


@pytest.mark.asyncio
async def test_the_command_of_a_spec_is_one_click_away(packages: Any) -> None:
    """The page with rows says how it read the words, and how to install the first."""
    found = (await answer(packages, "py-torch +cuda zen3 gcc13")).text
    head, _, rows = found.partition('id="configurations"')

    assert "Read as</span> py-torch +cuda %gcc@13" in head
    assert "spack buildcache keys" in head and "1 configuration on zen3" in head
    commands = re.findall(r'data-copy="(spack mirror add[^"]*)"', head)
    installs = re.findall(r'data-copy="(spack install[^"]*)"', rows)
    assert commands[0].splitlines()[-1] == installs[0]


@pytest.mark.asyncio
async def test_no_words_lead_in_a_circle(packages: Any) -> None:
    """Every pair of words has an answer."""
    words = ("hdf5", "pytorch", "cuda", "mpi", "zen3", "epyc", "develop", "gcc13", "e4s", "xyz")
    for first in words:
        for second in words:
            assert (await answer(packages, f"{first} {second}")).status_code == 200
