"""build.documents: what has one page, or one index, has no second one."""

from __future__ import annotations

import shutil
from itertools import permutations
from pathlib import Path

import pytest

from spack_cache_db.build import build
from spack_cache_db.build.documents import consistent_documents
from spack_cache_db.build.frames import Frame, numbers
from spack_cache_db.build.verification import verify
from spack_cache_db.errors import InputError
from spack_cache_db.query.database import info
from spack_cache_db.sources.columns import Document, PageFacts
from tests.indexes import index, node, record

HASHES = ["a", "b", "c"]


def page(path: str, package: str = "zlib", release: str = "develop", sha256: str = "0") -> Document:
    """Return a page."""
    return Document(f"in/{path}", path, sha256, release, (), PageFacts(package, "A"))


def listings(*rows: tuple[int, int, int]) -> Frame:
    """Return listings: (document, spec, configuration) of each."""
    names = ("document", "spec", "configuration")
    return Frame(**{name: numbers(row[at] for row in rows) for at, name in enumerate(names)})


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_pages_that_contradict_each_other_are_told(order: tuple[int, ...]) -> None:
    """Whichever comes first, the first by path is kept, and the message names both."""
    pages = [page("a", sha256="1"), page("b", sha256="2"), page("c", sha256="1")]
    documents = [pages[at] for at in order]
    kept, refusals = consistent_documents(documents, listings(), HASHES)
    assert [documents[at - 1].path for at in kept] == ["a"]
    assert [str(each.fault) for each in refusals] == [
        "in/b: another page of zlib in develop than in/a, expected one page per package and release"
    ]


def test_a_spec_is_of_one_package_in_a_release() -> None:
    """The later package by name is refused; the message names the first such spec."""
    documents = [page("a", "zstd"), page("b", "zlib"), page("c", "zlib", "v0.20")]
    found = listings((1, 1, 5), (1, 2, 5), (2, 1, 6), (2, 2, 6), (3, 1, 5))
    kept, refusals = consistent_documents(documents, found, HASHES)
    assert kept == [2, 3]
    assert [str(each.fault) for each in refusals] == [
        "in/a: lists the spec a, which in/b lists in the same release; expected one package"
    ]


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


def test_the_same_bytes_again_are_one_index(tmp_path: Path) -> None:
    """A copy is passed over, as a copy of a page is, and the file holds both."""
    one = write(tmp_path / "one", "a", "b")
    shutil.copytree(tmp_path / "one", tmp_path / "two")

    report = build([tmp_path / "one", tmp_path / "two" / "index.json"], tmp_path / "x.db")

    assert (report.indexes, report.records, report.faults) == (1, 2, ())
    assert info(tmp_path / "x.db")["indexes"] == 1
    for path in (tmp_path / "one", tmp_path / "two", one):
        assert verify(tmp_path / "x.db", path).differences == ()


def test_indexes_of_one_mirror_belong_together(tmp_path: Path, layout3: Path) -> None:
    """A mirror's own index and its views may all be asked into one stack."""
    report = build(layout3, tmp_path / "x.db", release="v1", stack="mine")

    assert report.indexes == 3
    assert verify(tmp_path / "x.db", layout3, release="v1", stack="mine").differences == ()
