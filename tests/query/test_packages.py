"""One package as records, for Python and for JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import spack_cache_db
from spack_cache_db.build import build
from tests.package_data import REAL, listed, published, write_packages
from tests.pagetexts import SAMPLES


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the sample pages and real package data."""
    output = tmp_path_factory.mktemp("data") / "x.db"
    build([SAMPLES, REAL], output)
    return output


def test_a_package_is_a_record(file: Path) -> None:
    """With or without a binary, from a path or an open file; what nothing is known of is None."""
    with spack_cache_db.Cache(file) as cache:
        found = cache.package_data("fftw")
        assert found == spack_cache_db.package_data(str(file), "fftw")
        assert {each.name for each in cache.behind()} == {"py-mpi4py"}
    assert found is not None
    assert found.status.spec_count == 0
    assert found.versions[0].version == found.status.latest_version
    told = {each.name: each.default_text for each in found.variants}
    assert told["openmp"] == "~openmp"
    built = spack_cache_db.package_data(file, "py-mpi4py")
    assert built is not None
    assert (built.status.newest_version, built.status.versions_behind) == ("4.0.1", 4)
    assert spack_cache_db.package_data(file, "nothing") is None


def test_a_package_needs_no_package_data(samples_file: Path) -> None:
    """A package with a binary is a record in a database without package data as well."""
    found = spack_cache_db.package_data(samples_file, "py-mpi4py")
    assert found is not None
    assert (found.status.spec_count, found.status.newest_version) == (91, "4.0.1")
    assert (found.dependent_count, found.versions) == (None, ())
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict() | {"versions": []}


def test_no_address_of_a_recipe_is_a_dead_one(tmp_path: Path) -> None:
    """Spack prints a folder that it no longer has, of packages of other people too."""
    old = (
        "https://github.com/spack/spack/blob/develop/var/spack/spack_repo/{}/packages/a/package.py"
    )
    site = "https://packages.spack.io/package.html?name="
    recipes = {
        "of-spack": (old.format("builtin"), f"{site}of-spack"),
        "of-others": (old.format("ours"), None),
        "elsewhere": (
            "https://git.example.org/a/package.py",
            "https://git.example.org/a/package.py",
        ),
        "script": ("javascript:alert(1)", None),
    }
    some = [listed(name, "1", file=address) for name, (address, _) in recipes.items()]
    build(write_packages(tmp_path / "in", published("site", "1"), list=some), tmp_path / "x.db")
    expected = {name: url for name, (_, url) in recipes.items()} | {"site": f"{site}site"}
    for name, url in expected.items():
        found = spack_cache_db.package_data(tmp_path / "x.db", name)
        assert found is not None
        assert found.recipe_url == url, name
