"""The command `site`: the folder of the site's files, in a checkout and from a wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

import spack_cache_db.site
from spack_cache_db.errors import DatabaseError
from spack_cache_db.site import site_folder
from tests.commands import run
from tests.paths import ROOT


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package elsewhere, in `builder/` of what may be a checkout."""
    folder = tmp_path / "builder" / "spack_cache_db"
    (folder / "site" / "files").mkdir(parents=True)
    monkeypatch.setattr(spack_cache_db.site, "__file__", str(folder / "site" / "__init__.py"))
    return folder


def test_what_a_wheel_carries_comes_first(package: Path) -> None:
    """Files in the package win over those of a folder that happens to hold it."""
    for folder in (package / "site" / "files", package.parents[1]):
        (folder / "metadata.yml").touch()
    assert site_folder() == package / "site" / "files"


def test_a_damaged_installation_is_told(package: Path) -> None:
    """Where the files are in neither place, the message names both and says what to do."""
    with pytest.raises(DatabaseError) as error:
        site_folder()
    assert str(package / "site" / "files") in str(error.value)
    assert str(package.parents[1]) in str(error.value)
    assert "install spack-cache-db again" in str(error.value)


def test_it_prints_the_folder_alone() -> None:
    """Its output is a folder's path alone, for a shell; a checkout's root is its own site."""
    result = run("site")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{ROOT}\n", "")
