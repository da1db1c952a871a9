"""What Spack says of a package on the site: beside its binaries, and where there are none."""

from __future__ import annotations

from typing import Any

import pytest

from spack_cache_db.build import build
from tests.package_data import REAL, described, published, write_packages
from tests.pagetexts import SAMPLES
from tests.site.addresses import get
from tests.site.conftest import site


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The site of the sample pages, real package data, and some that is hostile."""
    folder = tmp_path_factory.mktemp("packages")
    hostile = published(
        "hostile",
        "1.0",
        description="<img src=x onerror=alert(1)>\u202e\x07",
        homepage="javascript:alert(1)",
        variants=[{"name": "x", "default": True, "description": "<script>alert(1)</script>\u202e"}],
    )
    needed = published("needed", "2.0", dependent_to=described("py-mpi4py"))
    build([SAMPLES, REAL, write_packages(folder / "in", hostile, needed)], folder / "x.db")
    return site(folder / "x.db")


@pytest.mark.asyncio
async def test_a_package_with_binaries_says_what_is_behind(packages: Any) -> None:
    """Beside Spack's version and the address of its recipe."""
    text = (await get(packages, "/package/py-mpi4py")).text
    assert "The newest binary is 4.0.1, Spack has 4.1.1: 4 versions behind." in text
    assert 'rel="noopener nofollow">Recipe</a>' in text
    assert "4 versions behind" not in (await get(packages, "/package/py-ml-dtypes")).text


@pytest.mark.asyncio
async def test_a_package_without_a_binary_has_a_page(packages: Any) -> None:
    """With what it is for, its versions and variants, and who here may depend on it."""
    answer = await get(packages, "/package/fftw")
    assert answer.status_code == 200
    assert "No binary of it is here." in answer.text
    assert "FFTW is a C subroutine library" in answer.text
    assert "<code>~openmp</code>" in answer.text
    assert "deprecated" in (await get(packages, "/package/expat")).text
    assert '/package/py-mpi4py"' in (await get(packages, "/package/needed")).text
    assert (await get(packages, "/package/nothing-of-the-kind")).status_code == 404


@pytest.mark.asyncio
async def test_words_find_packages_by_what_they_are_for(packages: Any) -> None:
    """Behind what they name; a spec is answered as a spec."""
    text = (await get(packages, "/find?q=fourier+transforms")).text
    section = text.partition('id="described"')[2]
    assert '/package/fftw"' in section
    assert "no binary" in section
    assert "Nothing here matches" not in text
    assert 'id="described"' not in (await get(packages, "/find?q=py-mpi4py@4:")).text
    assert 'id="described"' not in (await get(packages, "/find?q=qqqqqq")).text


@pytest.mark.asyncio
async def test_what_recipes_say_is_text(packages: Any) -> None:
    """Markup, addresses that run scripts, and characters that turn the text around them."""
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
    assert ("openmp", "False") in {(each["name"], each["default"]) for each in found["variants"]}
    assert (await get(packages, "/package/nothing.json")).status_code == 404
