"""site.static_site: a folder that is whole, and that replaces nothing of others."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from spack_cache_db import build
from spack_cache_db.site.static_site import CATALOGUE
from tests.commands import run
from tests.pagetexts import SAMPLES
from tests.paths import ROOT

pytestmark = pytest.mark.once


def export(file: Path, folder: Path) -> str:
    """Export a file, and return the name of its copy."""
    done = run("export-static", file, "-o", folder)
    assert done.exit_code == 0, done.stderr
    name: str = json.loads((folder / CATALOGUE).read_text())["database"]
    assert name in done.stdout
    return name


def test_the_folder_has_all_that_the_page_needs(samples_file: Path, tmp_path: Path) -> None:
    """The page, what it loads, and a copy of the file byte for byte."""
    name = export(samples_file, tmp_path / "public")
    files = {each.name for each in (ROOT / "static-site").iterdir()}
    held = {each.name for each in (tmp_path / "public").iterdir()}
    assert held == {*files, "site.css", CATALOGUE, name}
    assert (tmp_path / "public" / name).read_bytes() == samples_file.read_bytes()


def test_another_file_is_exported_under_another_name(samples_file: Path, tmp_path: Path) -> None:
    """Whoever has the page open never reads parts of two files; the old copy does not stay."""
    folder = tmp_path / "public"
    old = export(samples_file, folder)
    assert export(samples_file, folder) == old
    build(next(SAMPLES.iterdir()), tmp_path / "other.db")
    new = export(tmp_path / "other.db", folder)
    assert new != old
    assert [each.name for each in folder.glob("*.db")] == [new]


def test_a_folder_of_others_stays(samples_file: Path, tmp_path: Path) -> None:
    """What this command did not write is not written over, and nothing is put beside it."""
    (tmp_path / "index.html").write_text("mine")
    told = run("export-static", samples_file, "-o", tmp_path)
    assert told.exit_code == 2
    assert "has other files, expected a new or an empty folder" in told.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["index.html"]


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    """No folder is made for what the page could not show."""
    sqlite3.connect(tmp_path / "x.db").executescript("CREATE TABLE a (b)").close()
    told = run("export-static", tmp_path / "x.db", "-o", tmp_path / "public")
    assert told.exit_code == 2
    assert told.stderr.startswith("Error: ")
    assert not (tmp_path / "public").exists()
