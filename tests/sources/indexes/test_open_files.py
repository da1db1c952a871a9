"""sources.indexes.files: every form of an index, a mirror and a spec file, known by its content."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from spack_cache_db.build import build
from spack_cache_db.build.verification import verify
from spack_cache_db.errors import InputError
from tests.commands import peak_memory
from tests.indexes import MIRRORS, REAL_FILE, index, node, real, record


def rows(database: Path, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a statement."""
    connection = sqlite3.connect(database)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


PLACES = """
SELECT releases.name, stacks.name, mirrors.format, mirrors.record_count, mirrors.spec_count
FROM mirrors JOIN releases ON releases.id = mirrors.release
JOIN stacks ON stacks.id = mirrors.stack ORDER BY releases.name, stacks.name
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["plain", "gz", "zst"])
def test_an_index_is_known_by_its_content(tmp_path: Path, form: str) -> None:
    """Compressed or not, whatever its name: 883 binaries, 22 other specs, 6,115 edges."""
    packed = {"plain": real(), "gz": REAL_FILE.read_bytes()}
    packed["zst"] = zstandard.ZstdCompressor().compress(real())
    (tmp_path / "some.txt").write_bytes(packed[form])
    output = tmp_path / "out" / "x.db"
    output.parent.mkdir()

    build(tmp_path / "some.txt", output)

    assert rows(output, PLACES) == [("root", "root", "8", 905, 883)]
    assert rows(output, "SELECT count(*) FROM builds") == [(883,)]
    assert rows(output, "SELECT count(*) FROM specs WHERE release_count = 0") == [(22,)]
    assert rows(output, "SELECT count(*) FROM dependency_edges") == [(6115,)]
    assert verify(output, tmp_path / "some.txt").differences == ()


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_little_that_unpacks_to_much_is_refused(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """Zeros that shrink to a thousandth are no index: they are not unpacked to their end."""
    (tmp_path / "index.json").write_bytes(pack(bytes(300_000_000)))

    status, megabytes, output = peak_memory("check", tmp_path, "--jobs", 1)

    assert status == 1
    assert "bytes when it is not compressed, expected less" in output
    assert megabytes < 280


def test_whole_mirrors_of_five_versions_of_spack(tmp_path: Path) -> None:
    """Layouts 2 and 3 without an index, clear-signed or not, JSON and YAML: nothing is lost."""
    build(MIRRORS, tmp_path / "x.db")

    found = verify(tmp_path / "x.db", MIRRORS)

    places = [(*place, count) for *place, _, count in rows(tmp_path / "x.db", PLACES)]
    assert places == [
        ("v2", "root", "spec files, layout 2", 4),
        ("v2-0.16", "root", "spec files, layout 2", 2),
        ("v2-0.17", "root", "spec files, layout 2", 2),
        ("v2-0.20", "root", "spec files, layout 2", 2),
        ("v3", "root", "spec files, layout 3", 5),
    ]  # fmt: skip
    assert (found.indexes, found.records, found.faults, found.differences) == (5, 108, (), ())


def test_stacks_of_a_release_meet_in_one_listing(tmp_path: Path) -> None:
    """A spec of two stacks is listed once in their release, with both; its records stay two."""
    for stack, names in (("e4s", ("a", "b")), ("hep", ("b",)), ("root", ("a", "b"))):
        folder = tmp_path / "in" / "develop" / stack
        folder.mkdir(parents=True)
        (folder / "index.json").write_bytes(index(*(record(node(name)) for name in names)))

    build(tmp_path / "in", tmp_path / "x.db", jobs=2)

    sql = "SELECT package, stacks FROM build_listings ORDER BY package"
    assert rows(tmp_path / "x.db", sql) == [
        ("a", '["e4s","root"]'),
        ("b", '["e4s","hep","root"]'),
    ]
    assert rows(tmp_path / "x.db", "SELECT count(*) FROM records") == [(5,)]
    assert verify(tmp_path / "x.db", tmp_path / "in").differences == ()


def faults(path: Path, tmp_path: Path) -> str:
    """Build what has faults; return them, and see that nothing was written."""
    with pytest.raises(InputError) as error:
        build(path, tmp_path / "x.db")
    assert not (tmp_path / "x.db").exists()
    return str(error.value)


def test_a_checksum_that_is_wrong_is_named(tmp_path: Path) -> None:
    """The sum beside an index of layout 2, and the blobs of layout 3, are held against the data."""
    folder = tmp_path / "v2" / "build_cache"
    folder.mkdir(parents=True)
    (folder / "index.json").write_bytes(index(record(node("a"))))
    (folder / "index.json.hash").write_text("0" * 64)
    shutil.copytree(MIRRORS / "v3", tmp_path / "v3")
    blob = next(each for each in (tmp_path / "v3" / "blobs").rglob("*") if is_spec_blob(each))
    blob.write_bytes(blob.read_bytes()[:-1] + b"x")

    assert "has the checksum" in faults(tmp_path / "v2", tmp_path)
    assert "as in its manifest" in faults(tmp_path / "v3", tmp_path)


def is_spec_blob(path: Path) -> bool:
    """Whether a file is a compressed spec file."""
    return path.is_file() and b'"spec"' in gzip.decompress(path.read_bytes())[:64]
