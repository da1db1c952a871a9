"""build.documents: what has one page, or one index, has no second one."""

import shutil
import sqlite3
from contextlib import closing
from itertools import permutations
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.assembly.verify import verify
from spack_cache_db.errors import InputError
from spack_cache_db.query.open.info import info
from tests.indexes import index, node, record
from tests.pagetexts import page, spec, spec_hash, write


def refusals(folder: Path, **pages: bytes) -> tuple[list[str], list[str]]:
    """Build pages in every order of their folders; return the built ones, and the
    faults.
    """
    paths = [write(folder / name, page=data) for name, data in pages.items()]
    found = []
    for order in permutations(paths):
        report = build(order, folder / "x.db", keep_going=True)
        with closing(sqlite3.connect(folder / "x.db")) as db:
            packages = [
                row[0] for row in db.execute("SELECT DISTINCT package FROM builds")
            ]
        found.append(
            (
                packages,
                [str(fault).replace(f"{folder}/", "") for fault in report.faults],
            )
        )
    assert all(each == found[0] for each in found)
    return found[0]


def test_pages_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    """Whichever comes first, the first by path is kept, and the message names both."""
    same = page(specs=[spec(1)])
    other = page(specs=[spec(2)])

    assert refusals(tmp_path, a=same, b=other, c=same)[1] == [
        "b/page.md: another page of zlib in develop than a/page.md, expected one page per "
        "package and release"
    ]


def test_a_spec_is_of_one_package_in_a_release(tmp_path: Path) -> None:
    """The later package by name is refused; the message names the first such spec."""
    specs = [spec(1), spec(2)]
    found = refusals(tmp_path, a=page("zstd", specs=specs), b=page("zlib", specs=specs))

    assert found == (
        ["zlib"],
        [
            f"a/page.md: lists the spec {spec_hash(1)}, which b/page.md lists in the same release; "
            "expected one package"
        ],
    )


def write_index(folder: Path, *names: str) -> Path:
    """Write an index of some packages; return its path."""
    folder.mkdir(parents=True)
    (folder / "index.json").write_bytes(index(*(record(node(name)) for name in names)))
    return folder / "index.json"


def test_two_indexes_of_one_stack_are_refused_by_both_names(tmp_path: Path) -> None:
    """Nothing says which is right, so the fault names both, and what tells them
    apart.
    """
    one = write_index(tmp_path / "one", "a")
    two = write_index(tmp_path / "two", "a", "b")

    with pytest.raises(InputError) as error:
        build([two, one], tmp_path / "x.db")
    (fault,) = error.value.faults
    assert str(fault) == (
        f"{two}: another index of the stack root in root than {one}, expected one index per "
        "release and stack (--release, --stack)"
    )
    assert not (tmp_path / "x.db").exists()


def test_the_same_bytes_again_are_one_index(tmp_path: Path) -> None:
    """A copy is passed over, as a copy of a page is, and the file holds both."""
    one = write_index(tmp_path / "one", "a", "b")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    report = build(
        [tmp_path / "one", tmp_path / "two" / "index.json"], tmp_path / "x.db"
    )

    assert (report.indexes, report.records, report.faults) == (1, 2, ())
    assert info(tmp_path / "x.db")["indexes"] == 1
    for path in (tmp_path / "one", tmp_path / "two", one):
        assert verify(tmp_path / "x.db", path).differences == ()


def test_indexes_of_one_mirror_belong_together(tmp_path: Path, layout3: Path) -> None:
    """A mirror's own index and its views may all be asked into one stack."""
    report = build(layout3, tmp_path / "x.db", release="v1", stack="mine")
    assert report.indexes == 3
    assert (
        verify(tmp_path / "x.db", layout3, release="v1", stack="mine").differences == ()
    )
