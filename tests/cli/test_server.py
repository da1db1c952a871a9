"""What is served: the site's files, the database's name, its inspect file, the settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import spack_cache_db
from spack_cache_db.build.inspect_file import inspect_path
from spack_cache_db.cli.server import datasette, served, site_folder, site_settings
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


def test_the_database_is_called_spack_cache(samples_file: Path) -> None:
    """Whatever the file is called, its name in URLs is spack-cache; the link goes afterwards."""
    with served(samples_file) as file:
        assert file.path.name == "spack-cache.db"
        assert file.path.samefile(samples_file)
    assert not file.path.exists()


def test_a_stale_inspect_file_is_not_believed(samples_file: Path, tmp_path: Path) -> None:
    """An inspect file of another database is replaced by what this one really holds."""
    copy = tmp_path / "copy.db"
    shutil.copy(samples_file, copy)
    inspected = json.loads(inspect_path(samples_file).read_text(encoding="utf-8"))
    inspected["spack-cache"]["hash"] = "0" * 64
    inspected["spack-cache"]["tables"]["specs"]["count"] = 999
    inspect_path(copy).write_text(json.dumps(inspected), encoding="utf-8")
    with served(copy) as file:
        assert file.inspected["spack-cache"]["tables"]["specs"]["count"] == 413


def test_settings_are_those_of_the_site(samples_file: Path) -> None:
    """Datasette gets each setting, and visitors' SQL is on unless it is switched off."""
    with served(samples_file) as file:
        on = datasette(file, sql=True, cors=False)
        off = datasette(file, sql=False, cors=False)

    assert {name: on.setting(name) for name in site_settings()} == site_settings()
    assert on.setting("default_allow_sql") is True
    assert off.setting("default_allow_sql") is False


def test_both_settings_files_say_the_same() -> None:
    """Datasette 0.65 and 1.0 read different files of a folder, and find the same in them."""
    for_065 = json.loads((site_folder() / "settings.json").read_text(encoding="utf-8"))

    assert for_065 == site_settings()
