"""build.pipeline: the same pages give the same bytes, and a kill never leaves half a
file.
"""

import random
import shutil
import sqlite3
import tarfile
from pathlib import Path
from typing import Literal

import pytest
import zstandard

from spack_cache_db.assembly import file as sqlite_file
from spack_cache_db.assembly.builds import build, check
from spack_cache_db.errors import OutputError
from spack_cache_db.schema import identity
from spack_cache_db.sources import units
from tests.builds import built
from tests.pagetexts import SAMPLES, page, write


def test_two_builds_are_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    """Nothing of the time or the place of a build goes into the file."""
    assert built(tmp_path / "one.db", folder) == built(
        tmp_path / "two" / "other.db", folder
    )


def test_the_order_of_paths_does_not_matter(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders in any order, divided in any way, give the same bytes."""
    releases = sorted(folder.iterdir())
    first = built(tmp_path / "x.db", *releases)
    chance = random.Random(1)

    for files_per_unit in (1, 3, 5):
        monkeypatch.setattr(units, "ENTRIES_PER_UNIT", files_per_unit)
        chance.shuffle(releases)
        assert built(tmp_path / "x.db", *releases) == first


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.zst", ".zip"])
def test_archives_give_what_their_folder_gives(
    suffix: str, folder: Path, tmp_path: Path
) -> None:
    """An archive whose members have the same names, also as `tar -C FOLDER .` writes
    them.
    """
    path = tmp_path / f"archive{suffix}"
    if suffix == ".zip":
        shutil.make_archive(str(tmp_path / "archive"), "zip", folder)
    else:
        mode: Literal["w:gz", "w:"] = "w:gz" if suffix == ".tar.gz" else "w:"
        prefix = "./" if suffix == ".tar" else ""
        with tarfile.open(path, mode) as tar:
            for release in folder.iterdir():
                tar.add(release, f"{prefix}{release.name}")
    if suffix == ".tar.zst":
        path.write_bytes(zstandard.compress(path.read_bytes()))

    assert built(tmp_path / "x.db", path) == built(tmp_path / "y.db", folder)


@pytest.mark.slow
def test_the_number_of_jobs_does_not_matter(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, two or four processes give the same bytes."""
    monkeypatch.setattr(units, "ENTRIES_PER_UNIT", 5)
    first = built(tmp_path / "x.db", folder)
    for jobs in (2, 4):
        assert built(tmp_path / "x.db", folder, jobs=jobs) == first


def test_progress_is_reported_unit_by_unit(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last call says that all is read."""
    monkeypatch.setattr(units, "ENTRIES_PER_UNIT", 10)
    calls: list[tuple[float, int]] = []
    build([str(folder)], tmp_path / "x.db", progress=lambda *call: calls.append(call))
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_check_finds_problems_and_faults(tmp_path: Path) -> None:
    """Both at once, without writing anything."""
    write(tmp_path, a=page(meta={"num_specs": 3}), b=b"nothing")
    faults, problems = check([str(tmp_path)])

    assert [str(fault).replace(f"{tmp_path}/", "") for fault in faults] == [
        "b.md: unknown kind of file, expected a page, an index, package data, an "
        "archive or a database"
    ]
    assert [each.message for each in problems] == [
        "meta declares num_specs 3, the page lists 1"
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"a.md", "b.md"}


@pytest.mark.parametrize("damage", ["a lost row", "a page of the file"])
def test_a_damaged_result_is_not_published(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old file stays in its place, and nothing is left beside it."""
    finish = sqlite_file.finish

    def finish_with_damage(db: sqlite3.Connection) -> None:
        finish(db)
        if damage == "a lost row":
            db.execute("DELETE FROM configurations WHERE id = 1")
            return
        (path,) = (row[2] for row in db.execute("PRAGMA database_list"))
        with Path(path).open("r+b") as stream:
            stream.seek(8 * identity.PAGE_SIZE)
            stream.write(b"\xff" * identity.PAGE_SIZE)

    monkeypatch.setattr(sqlite_file, "finish", finish_with_damage)
    output = tmp_path / "x.db"
    output.touch()
    with pytest.raises(OutputError, match="damaged, nothing was replaced"):
        build(SAMPLES, output)
    assert output.read_bytes() == b""
    assert list(tmp_path.iterdir()) == [output]
