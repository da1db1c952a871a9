"""sources: the input divided, always in the same way, and everything that is missing told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.errors import Fault
from spack_cache_db.sources import File, readers
from spack_cache_db.sources.readers import plan
from tests.pagetexts import write


def test_the_plan_does_not_depend_on_the_order_of_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same files are divided the same way; archives come last, in units of their own."""
    monkeypatch.setattr(readers, "ENTRIES_PER_UNIT", 2)
    write(tmp_path, a=b"1", b=b"2", c=b"3")
    path = f"{tmp_path}/pages.tar"
    Path(path).touch()
    files = [str(tmp_path / f"{name}.md") for name in "abc"]
    planned = plan([*files, path])
    assert plan([path, *reversed(files), files[0]]) == planned
    assert [len(unit) for unit in planned] == [2, 1, 1]
    assert planned[-1] == (File(path, "pages.tar"),)


def paths_of(*folders: Path) -> list[str]:
    """Return the names within the input of the files of these folders."""
    return sorted(each.path for unit in plan(map(str, folders)) for each in unit)


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    """What lies elsewhere is read, by the first link to it; what is read anyway is not again."""
    write(tmp_path / "in" / "real", a=b"x")
    write(tmp_path / "elsewhere" / "deep", b=b"x")
    for link, target in (
        ("again", "real"), ("linked", "../elsewhere"), ("third", "../elsewhere/deep"),
    ):  # fmt: skip
        (tmp_path / "in" / link).symlink_to(target)
    (tmp_path / "elsewhere" / "back").symlink_to("../in/real")

    assert paths_of(tmp_path / "in") == ["linked/deep/b.md", "real/a.md"]


@pytest.mark.parametrize("target", [".", "..", "../..", "/"])
def test_circles_are_told(tmp_path: Path, target: str) -> None:
    """A link to a folder that contains it is a fault; all other files are read, each once."""
    write(tmp_path / "in" / "below", a=b"x")
    (tmp_path / "in" / "below" / "round").symlink_to(target)

    files, faults = plan([str(tmp_path / "in")])

    assert [str(fault) for fault in faults] == [
        f"{tmp_path}/in/below/round: is a link to a folder that contains it, expected no circle"
    ]
    assert [file.path for file in files] == ["below/a.md"]


def test_a_folder_that_cannot_be_listed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the files of the others."""
    write(tmp_path / "in" / "good", a=b"x")
    bad = tmp_path / "in" / "bad"
    bad.mkdir()
    listed = os.scandir

    def scandir(path: str) -> Any:
        if path == str(bad):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert plan([str(tmp_path / "in")]) == [
        (File(f"{tmp_path}/in/good/a.md", "good/a.md"),),
        (Fault(str(bad), 0, "cannot be listed: Permission denied"),),
    ]


def test_what_is_named_twice_is_read_once(tmp_path: Path) -> None:
    """A file and an archive of a folder that are also named themselves, in any order."""
    write(tmp_path / "in", a=b"x")
    (tmp_path / "in" / "b.tar").touch()
    paths = [f"{tmp_path}/{name}" for name in ("in", "in/a.md", "in/b.tar")]
    assert plan(paths) == plan(paths[::-1]) == plan(paths[:1])
    deeper = [str(tmp_path), *paths]
    assert [[entry.path for entry in unit] for unit in plan(deeper)] == [["a.md"], ["b.tar"]]
    assert plan(deeper) == plan(deeper[::-1])
