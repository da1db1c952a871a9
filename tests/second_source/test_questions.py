"""What a question needs of a source is asked of the file, and not of what kind it is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.query.answers import find
from spack_cache_db.query.conditions import UnsupportedQuery
from tests.madeup import document, known


def built(folder: Path, *specs: dict[str, object]) -> Path:
    """Build what one file of the made-up kind says."""
    (folder / "in").write_bytes(document("develop", "a", specs))
    build([folder / "in"], folder / "x.db")
    return folder / "x.db"


def packages(path: Path, query: str) -> list[str]:
    """Return the packages of what is found."""
    return [each.configuration.package for each in find(path, query)]


def test_dependencies_are_answered_where_the_file_has_them(tmp_path: Path) -> None:
    """Whatever told of them: those of a spec, those further below, and that there are none."""
    path = built(
        tmp_path,
        known(1, "zlib", needs=[]),
        known(2, "hdf5", needs=[1]),
        known(3, "netcdf-c", needs=[2]),
        known(4, "gmake", needs=[]),
    )
    assert packages(path, "* ^zlib") == ["hdf5", "netcdf-c"]
    assert packages(path, "* %zlib") == ["hdf5"]
    assert packages(path, "zlib ^hdf5") == []


def test_where_the_file_has_none_they_are_not_answered(tmp_path: Path) -> None:
    """The same specs from the same kind of source, which says nothing of what they need."""
    path = built(tmp_path, known(1, "zlib"), known(2, "hdf5"))
    with pytest.raises(UnsupportedQuery, match="this file has no dependency data"):
        find(path, "hdf5 ^zlib")


def test_a_spec_that_the_source_says_nothing_more_of_is_not_guessed_at(tmp_path: Path) -> None:
    """Beside others of which it tells what they need, it is not among those that lack something."""
    path = built(
        tmp_path, known(1, "zlib", needs=[]), known(2, "hdf5", needs=[1]), known(3, "gmake")
    )
    assert packages(path, "* ^zlib") == ["hdf5"]
    assert packages(path, "*") == ["gmake", "hdf5", "zlib"]
