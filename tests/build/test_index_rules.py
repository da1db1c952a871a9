"""build.index_rules: a stack of a release has one index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.errors import InputError
from spack_cache_db.query.info import describe
from spack_cache_db.verify import verify
from tests.indexes import index, node, record


def write(folder: Path, *names: str) -> Path:
    """Write an index of some packages; return its path."""
    folder.mkdir(parents=True)
    (folder / "index.json").write_bytes(index(*(record(node(name)) for name in names)))
    return folder / "index.json"


def test_two_indexes_of_one_stack_are_refused_by_both_names(tmp_path: Path) -> None:
    """Nothing says which is right, so the fault names both, and what tells them apart."""
    one, two = write(tmp_path / "one", "a"), write(tmp_path / "two", "a", "b")

    with pytest.raises(InputError) as error:
        build([two, one], tmp_path / "x.db")

    (fault,) = error.value.faults
    assert str(fault) == (
        f"{two}: another index of the stack root in root than {one}, expected one index per "
        "release and stack (--release, --stack)"
    )
    assert not (tmp_path / "x.db").exists()


def test_with_keep_going_the_first_is_built(tmp_path: Path) -> None:
    """By path; the other is told in `problems`, and nothing of it is stored."""
    one, two = write(tmp_path / "one", "a"), write(tmp_path / "two", "b")

    report = build([two, one], tmp_path / "x.db", keep_going=True)

    assert (report.indexes, report.records, report.specs) == (1, 1, 1)
    assert [str(each).startswith(f"{two}: another index") for each in report.faults] == [True]
    assert verify(tmp_path / "x.db", one).differences == ()


def test_the_same_bytes_again_are_one_index(tmp_path: Path) -> None:
    """A copy is passed over, as a copy of a page is, and the file holds both."""
    one = write(tmp_path / "one", "a", "b")
    shutil.copytree(tmp_path / "one", tmp_path / "two")

    report = build([tmp_path / "one", tmp_path / "two" / "index.json"], tmp_path / "x.db")

    assert (report.indexes, report.records, report.faults) == (1, 2, ())
    assert describe(tmp_path / "x.db")["indexes"] == 1
    for path in (tmp_path / "one", tmp_path / "two", one):
        assert verify(tmp_path / "x.db", path).differences == ()


def test_indexes_of_one_mirror_belong_together(tmp_path: Path, layout3: Path) -> None:
    """A mirror's own index and its views may all be asked into one stack."""
    report = build(layout3, tmp_path / "x.db", release="v1", stack="mine")

    assert report.indexes == 3
    assert verify(tmp_path / "x.db", layout3, release="v1", stack="mine").differences == ()
