"""What is served: the site's files, the database's name, its inspect file, the settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from spack_cache_db.build.publication import inspect_path
from spack_cache_db.cli.server import datasette, served, site_settings
from spack_cache_db.site import site_folder


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
