"""Where the site's files are."""

from __future__ import annotations

from pathlib import Path

import pytest

import spack_cache_db
from spack_cache_db.cli.server import site_folder
from spack_cache_db.errors import DatabaseError
from tests.paths import ROOT


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package elsewhere, in `builder/` of what may be a checkout."""
    folder = tmp_path / "builder" / "spack_cache_db"
    (folder / "site" / "files").mkdir(parents=True)
    monkeypatch.setattr(spack_cache_db, "__file__", str(folder / "__init__.py"))
    return folder


def test_a_checkout_is_its_own_site() -> None:
    """The folder of a checkout is its root, where `datasette .` looks for the same files."""
    assert site_folder() == ROOT


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
