"""Mirrors in every layout that Spack has written, and single indexes, known by their
content.
"""

import gzip
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from spack_cache_db.assembly.builds import build
from spack_cache_db.errors import InputError
from spack_cache_db.sources.indexes.addresses import Address, write_address
from tests.commands import peak_memory
from tests.indexes import (
    MIRRORS,
    REAL_FILE,
    VIEWS,
    hash_of,
    index,
    node,
    real,
    record,
    signed,
    write_blob,
    write_layout3,
)

PLACES = """
SELECT releases.name, stacks.name, mirrors.format, mirrors.record_count, mirrors.spec_count
FROM mirrors JOIN releases ON releases.id = mirrors.release_id
JOIN stacks ON stacks.id = mirrors.stack_id ORDER BY releases.name, stacks.name
"""


def rows(folder: Path, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    """Build a folder, see that its database is a source, and return rows of it."""
    output = folder.parent / "x.db"
    again = folder.parent / "y.db"
    build(folder, output, **options)
    build(output, again)
    assert again.read_bytes() == output.read_bytes()
    with closing(sqlite3.connect(output)) as connection:
        return connection.execute(sql).fetchall()


def fault(folder: Path) -> str:
    """Return what is wrong with a folder, in one line."""
    with pytest.raises(InputError) as error:
        build(folder, folder.parent / "x.db")
    (found,) = error.value.faults
    return str(found)


@pytest.mark.slow
@pytest.mark.parametrize("is_signed", [False, True])
def test_views_are_stacks(tmp_path: Path, is_signed: bool) -> None:
    """Named views with or without an index of the mirror's own; `--stack` unites
    them.
    """
    views: dict[str | None, bytes] = {
        "e4s": index(record(node("a"))),
        "hep": index(record(node("a")), record(node("b"))),
    }
    folder = write_layout3(tmp_path / "mirror", views, is_signed=is_signed)

    assert rows(folder, PLACES) == [
        ("root", "e4s", "8", 1, 1),
        ("root", "hep", "8", 2, 2),
    ]
    assert rows(folder, "SELECT package, stacks FROM builds", stack="mine") == [
        ("a", '["mine"]'),
        ("b", '["mine"]'),
    ]
    write_layout3(folder, {None: index(record(node("c")))})
    assert [row[1] for row in rows(folder, PLACES)] == ["e4s", "hep", "root"]


@pytest.mark.slow
def test_views_with_slashes_in_their_names(tmp_path: Path) -> None:
    """Views lie at any depth below the manifests, as Spack 1.2 writes them, alone or
    several.
    """
    folder = shutil.copytree(VIEWS, tmp_path / "mirror")

    assert rows(folder, PLACES) == [
        ("root", "myview", "8", 2, 2),
        ("root", "root", "8", 5, 5),
        ("root", "sub/view2", "8", 1, 1),
    ]
    (folder / "v3/manifests/index/index.manifest.json").unlink()
    shutil.rmtree(folder / "v3/manifests/index/myview")
    assert rows(folder, PLACES) == [("root", "sub/view2", "8", 1, 1)]
    assert rows(folder, "SELECT package FROM builds") == [("tool",)]


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["index", "spec files"])
def test_binaries_that_a_mirror_leaves_out(tmp_path: Path, layout: str) -> None:
    """The filters of a mirror's address leave out binaries, which stay known, and are
    counted.
    """
    folder = shutil.copytree(VIEWS, tmp_path / "mirror")
    shutil.rmtree(folder / "v3/manifests/index/sub")
    shutil.rmtree(folder / "v3/manifests/index/myview")
    if layout == "spec files":
        shutil.rmtree(folder / "v3/manifests/index")
    address = Address(
        url="file:///mirror",
        include_binary=("tlib", "tapp", "tool"),
        exclude_binary=("tlib langs=c",),
    )
    (folder / "mirror.json").write_bytes(write_address(address))

    report = build(folder, tmp_path / "x.db")

    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        found = connection.execute("SELECT package, version FROM builds").fetchall()
        problems = connection.execute("SELECT code, message FROM problems").fetchall()
        specs = connection.execute("SELECT count(*) FROM specs").fetchone()
    message = "2 binaries left out by include_binary or exclude_binary in mirror.json"
    assert sorted(found) == [("tapp", "1.1"), ("tlib", "2.0"), ("tool", "0.5")]
    assert problems == [("filtered", message)]
    assert specs == (5,)
    (note,) = report.notes
    assert note.endswith(f": {message}")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ('{"url": "https://a", "exclude_binary": ["@@"]}', "'@@' is not a spec: "),
        ('{"url": "https://a", "exclude_binary": ["%[when=@@] b"]}', "is not a spec: "),
        (
            '{"url": "https://a", "exclude_binary": "gcc"}',
            "broken address of a mirror: ",
        ),
        ('{"url": "https://a", "include": []}', "broken address of a mirror: "),
    ],
)
def test_a_filter_that_cannot_be_read(
    tmp_path: Path, address: str, message: str
) -> None:
    """A mirror whose filter cannot be read is a fault, so that it does not take too
    much.
    """
    folder = write_layout3(tmp_path / "mirror", {None: index(record(node("a")))})
    (folder / "mirror.json").write_text(address)

    assert message in fault(folder)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["5", "6", "7", "8"])
def test_the_index_of_an_empty_mirror(tmp_path: Path, version: str) -> None:
    """A mirror from which all was removed is no fault: it has its row, and nothing
    else.
    """
    (tmp_path / "mirror" / "build_cache").mkdir(parents=True)
    (tmp_path / "mirror" / "build_cache" / "index.json").write_bytes(
        index(version=version)
    )

    assert rows(tmp_path / "mirror", PLACES) == [("root", "root", version, 0, 0)]
    assert rows(tmp_path / "mirror", "SELECT * FROM builds") == []


def test_manifests_say_how_large_a_binary_is_and_where(tmp_path: Path) -> None:
    """The index does not; the address of the mirror is that of the file beside it."""
    folder = write_layout3(tmp_path / "mirror", {None: index(record(node("a")))})
    (folder / "mirror.json").write_bytes(
        write_address(Address(url="https://cache.example.org/v1"))
    )
    blob = write_blob(folder, b"a binary", "application/vnd.spack.install.v2.tar+gzip")
    manifests = folder / "v3" / "manifests" / "spec" / "a"
    manifests.mkdir(parents=True)
    path = manifests / f"a-1.0-{hash_of('a')}.spec.manifest.json"
    path.write_text(signed(json.dumps({"version": 3, "data": [blob]})))

    sql = "SELECT size, tarball FROM build_listings"
    place = f"blobs/sha256/{blob['checksum'][:2]}/{blob['checksum']}"
    assert rows(folder, sql) == [("8", f"https://cache.example.org/v1/{place}")]

    path.write_text("{")
    assert f"spec/a/a-1.0-{hash_of('a')}.spec.manifest.json: broken manifest" in fault(
        folder
    )


def test_what_a_manifest_names_must_be_there(tmp_path: Path) -> None:
    """A blob that is gone, cut or changed is named, and so is a manifest without an
    index.
    """
    folder = write_layout3(tmp_path / "mirror", {None: index(record(node("a")))})
    (blob,) = (path for path in (folder / "blobs").rglob("*") if path.is_file())
    data = blob.read_bytes()

    blob.write_bytes(data[:-1])
    assert "as in its manifest" in fault(folder)
    blob.write_bytes(data[:-1] + b" ")
    assert "has the checksum" in fault(folder)
    blob.unlink()
    assert fault(folder) == f"{blob}: cannot be read: No such file or directory"
    manifest = folder / "v3" / "manifests" / "index" / "index.manifest.json"
    manifest.write_text('{"version": 3, "data": []}')
    assert "names no index, expected one" in fault(folder)
    manifest.write_text('{"version": 4, "data": []}')
    assert "is of layout 4, expected 3" in fault(folder)


def test_what_manifests_say_beside_is_told_once(tmp_path: Path) -> None:
    """Keys of manifests that are not known: once for each index and key, with how many
    have it.
    """
    folder = write_layout3(
        tmp_path / "mirror", {None: index(*map(record, map(node, "abc")))}
    )
    own = folder / "v3" / "manifests" / "index" / "index.manifest.json"
    own.write_text(json.dumps(json.loads(own.read_text()) | {"signedBy": "spack"}))
    for name in "ab":
        blob = write_blob(
            folder, name.encode(), "application/vnd.spack.install.v2.tar+gzip"
        )
        place = folder / "v3" / "manifests" / "spec" / name
        place.mkdir(parents=True)
        said = {"version": 3, "data": [blob | {"annotations": {}}, blob | {"odd": 1}]}
        (place / f"{name}-1-{hash_of(name)}.spec.manifest.json").write_text(
            json.dumps(said)
        )

    assert rows(folder, "SELECT code, message FROM problems ORDER BY message") == [
        ("unknown_key", f"the key {key} is not known and left out: {many} it")
        for key, many in (
            ("data[].annotations", "2 manifests have"),
            ("data[].odd", "2 manifests have"),
            ("signedBy", "1 manifest has"),
        )
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["plain", "gz", "zst"])
def test_an_index_is_known_by_its_content(tmp_path: Path, form: str) -> None:
    """Compressed or not, whatever its name: 883 binaries of 905 specs, 6,115 edges."""
    packed = {"plain": real(), "gz": REAL_FILE.read_bytes()}
    packed["zst"] = zstandard.ZstdCompressor().compress(real())
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "some.txt").write_bytes(packed[form])

    assert rows(tmp_path / "in", PLACES) == [("root", "root", "8", 905, 883)]
    assert rows(tmp_path / "in", "SELECT count(*) FROM dependency_edges") == [(6115,)]


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_little_that_unpacks_to_much_is_refused(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """Zeros that shrink to a thousandth are no index: they are not unpacked to their
    end.
    """
    (tmp_path / "index.json").write_bytes(pack(bytes(300_000_000)))

    status, megabytes, output = peak_memory("check", tmp_path, "--jobs", 1)

    assert status == 1
    assert "bytes when it is not compressed, expected less" in output
    assert megabytes < 280


def test_whole_mirrors_of_five_versions_of_spack(tmp_path: Path) -> None:
    """Layouts 2 and 3 without an index, clear-signed or not, JSON and YAML: nothing is
    lost.
    """
    folder = shutil.copytree(MIRRORS, tmp_path / "in")

    assert rows(folder, PLACES.replace("mirrors.record_count, ", "")) == [
        ("v2", "root", "spec files, layout 2", 4),
        ("v2-0.16", "root", "spec files, layout 2", 2),
        ("v2-0.17", "root", "spec files, layout 2", 2),
        ("v2-0.20", "root", "spec files, layout 2", 2),
        ("v3", "root", "spec files, layout 3", 5),
    ]
    assert rows(folder, "SELECT count(*) FROM records") == [(108,)]


def test_stacks_of_a_release_meet_in_one_listing(tmp_path: Path) -> None:
    """A spec of two stacks is listed once in their release, with both; its records stay
    two.
    """
    for stack, names in (("e4s", "ab"), ("hep", "b"), ("root", "ab")):
        folder = tmp_path / "in" / "develop" / stack
        folder.mkdir(parents=True)
        (folder / "index.json").write_bytes(index(*map(record, map(node, names))))

    sql = "SELECT package, stacks FROM build_listings ORDER BY package"
    assert rows(tmp_path / "in", sql) == [
        ("a", '["e4s","root"]'),
        ("b", '["e4s","hep","root"]'),
    ]
    assert rows(tmp_path / "in", "SELECT count(*) FROM records") == [(5,)]


def test_a_checksum_that_is_wrong_is_named(tmp_path: Path) -> None:
    """The sum beside an index of layout 2 is held against the data."""
    folder = tmp_path / "v2" / "build_cache"
    folder.mkdir(parents=True)
    (folder / "index.json").write_bytes(index(record(node("a"))))
    (folder / "index.json.hash").write_text("0" * 64)
    assert "has the checksum" in fault(tmp_path / "v2")
