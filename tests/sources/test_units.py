"""sources: the input divided, always in the same way, and everything that is missing told."""

from __future__ import annotations

from pathlib import Path

import pytest

from spack_cache_db import sources
from spack_cache_db.arguments import DEFAULT_MAX_PAGE_SIZE
from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources import File, Folder, RawFile, files_of, plan
from spack_cache_db.sources.readers import read
from tests.pagetexts import write


def test_a_folder_is_shown_as_it_was_typed(tmp_path: Path) -> None:
    """No slash is doubled in what is shown."""
    write(tmp_path / "in", a=b"x")
    (unit,) = plan([f"{tmp_path}/in/"])
    assert unit == (File(f"{tmp_path}/in/a.md", "a.md"),)


def test_the_plan_does_not_depend_on_the_order_of_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same files are divided the same way; archives come last, in units of their own."""
    monkeypatch.setattr(sources, "ENTRIES_PER_UNIT", 2)
    write(tmp_path, a=b"1", b=b"2", c=b"3")
    path = f"{tmp_path}/pages.tar"
    Path(path).touch()
    files = [str(tmp_path / f"{name}.md") for name in "abc"]
    planned = plan([*files, path])
    assert plan([path, *reversed(files), files[0]]) == planned
    assert [len(unit) for unit in planned] == [2, 1, 1]
    assert planned[-1] == (File(path, "pages.tar"),)


def test_every_missing_path_and_empty_folder_is_told(tmp_path: Path) -> None:
    """All of them at once, not only the first."""
    for name in ("empty", "void"):
        (tmp_path / name).mkdir()
    too_long = "x" * 300
    with pytest.raises(InputError) as caught:
        plan([f"{tmp_path}/{name}" for name in ("empty", "void", "missing", too_long)])
    assert str(caught.value).replace(f"{tmp_path}/", "").splitlines() == [
        "empty: the folder holds no file, expected pages or indexes",
        "missing: no such file or folder, expected pages or indexes",
        "void: the folder holds no file, expected pages or indexes",
        f"{too_long}: no such file or folder, expected pages or indexes",
    ]


def test_many_folders_are_left_to_those_who_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders of one name come together; what lies in them is found, however deep."""
    monkeypatch.setattr(sources, "ENOUGH_FOLDERS", 3)
    monkeypatch.setattr(sources, "ENTRIES_PER_UNIT", 2)
    for release in ("develop", "v0.20"):
        for package in ("zlib", "hdf5"):
            write(tmp_path / release / package / "deeper", a=b"x")
    planned = plan([str(tmp_path)])
    assert [[entry.path for entry in unit] for unit in planned] == [
        ["develop/hdf5", "v0.20/hdf5"],
        ["develop/zlib", "v0.20/zlib"],
    ]
    assert all(isinstance(entry, Folder) for unit in planned for entry in unit)
    assert [file.path for file in files_of(planned[0]) if isinstance(file, File)] == [
        "develop/hdf5/deeper/a.md",
        "v0.20/hdf5/deeper/a.md",
    ]


def paths_of(*folders: Path) -> list[str]:
    """Return the names within the input of the files of these folders."""
    found = [file for unit in plan(map(str, folders)) for file in files_of(unit)]
    return sorted(each.path for each in found)


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
    """A link to a folder in which it lies is named; all other files are read, each once."""
    write(tmp_path / "in" / "below", a=b"x")
    (tmp_path / "in" / "below" / "round").symlink_to(target)

    found = [*read(plan([str(tmp_path / "in")])[0], DEFAULT_MAX_PAGE_SIZE)]

    faults = [each for each in found if isinstance(each, Fault)]
    assert [str(each) for each in faults] == [
        f"{tmp_path}/in/below/round: is a link to a folder in which it lies, expected no circle"
    ]
    assert [each.path for each in found if isinstance(each, RawFile)] == ["below/a.md"]


def test_links_below_many_folders_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that whoever reads a folder lists as well."""
    monkeypatch.setattr(sources, "ENOUGH_FOLDERS", 1)
    write(tmp_path / "in" / "one" / "two", a=b"x")
    write(tmp_path / "elsewhere", b=b"x")
    (tmp_path / "in" / "one" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in" / "one" / "two" / "again").symlink_to(tmp_path / "in" / "one")

    assert paths_of(tmp_path / "in") == ["one/linked/b.md", "one/two/a.md", "one/two/again"]


def test_a_folder_that_vanished_is_told(tmp_path: Path) -> None:
    """Between planning and reading anything may happen."""
    gone = Folder(f"{tmp_path}/gone", "gone")
    assert [*files_of((gone,))] == [
        Fault(gone.location, 0, "cannot be listed: No such file or directory")
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
