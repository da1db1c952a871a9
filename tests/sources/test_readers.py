"""sources.readers: who reads a file is decided by what it holds."""

from __future__ import annotations

import pytest

from spack_cache_db.sources import RawFile
from spack_cache_db.sources.readers import read_files
from tests.indexes import index, node, record
from tests.pagetexts import page, spec_hash


def file(name: str, data: bytes) -> RawFile:
    """Return a file of that name."""
    return RawFile(f"in/{name}", name, data)


@pytest.mark.parametrize(
    ("data", "line", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\nsize 1\n", 1, "is a Git LFS pointer"),
        (b"<html><body>404 Not Found</body></html>", 1, "is an HTML page"),
        (b"---\ntitle: x\n<<<<<<< HEAD\n=======\n>>>>>>> x\n---\n", 3, "has an unresolved merge"),
        (b'{"database":\n<<<<<<< HEAD\n=======\n>>>>>>> x\n}', 2, "has an unresolved merge"),
        (b'[{"name": "zlib", "arch": {}, "hash": "a"}]', 1, "is output of 'spack find --json'"),
        (b"# mine\nspack:\n  specs: [zlib]\n", 1, "is an environment"),
    ],
)
def test_files_given_by_mistake_are_named(data: bytes, line: int, said: str) -> None:
    """A file that cannot be read is named for what it is, not for what a page lacks."""
    (fault,) = read_files([file("index.json", data)]).faults
    assert (fault.path, fault.line) == ("in/index.json", line)
    assert fault.message.startswith(said)


def test_the_kind_of_a_file_is_known_by_its_content() -> None:
    """Kinds meet in one unit, whatever the files are called, and share their texts."""
    other = index(record(node("zlib", hash=spec_hash(1))))
    found = read_files([file("a.md", other), file("b.json", page()), file("c", other)])
    assert [bool(each.page) for each in found.documents] == [False, True, False]
    assert len(found.things["hashes"]) == 1
    assert [*found.tables["listings"]["document"]] == [1, 2, 3]
