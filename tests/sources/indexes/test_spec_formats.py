"""sources.indexes: which specs Spack before 1.0 concretized, and which have a
`dev_path`.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.errors import InputError
from spack_cache_db.query.answers.find import find
from tests.indexes import MIRRORS, hash_of, index, node, old_node, real, record
from tests.test_databases_as_sources import same

OLD = """
SELECT specs.hash, nodes.is_before_1_0 FROM specs
JOIN records ON records.spec_id = specs.id JOIN nodes ON nodes.id = records.node_id
"""


def before_1_0(source: Path, tmp_path: Path) -> dict[str, int]:
    """Return which specs of a source are from before Spack 1.0, by hash.

    A build from the database has the same bytes.
    """
    output = tmp_path / "x.db"
    again = tmp_path / "again.db"
    build(source, output)
    build(output, again)
    assert same(output, again)
    with closing(sqlite3.connect(output)) as conn:
        return dict(conn.execute(OLD))


def write(tmp_path: Path, *nodes: dict[str, Any], version: str) -> Path:
    """Write an index of a version."""
    path = tmp_path / "index.json"
    path.write_bytes(index(*map(record, nodes), version=version))
    return path


@pytest.mark.parametrize("version", ["5", "6", "7"])
def test_indexes_before_8_have_only_old_specs(version: str, tmp_path: Path) -> None:
    """Also a node that names no compiler, which Spack reads as the format of its
    index.
    """
    bare = old_node("bare", version)
    del (bare["bare"] if version == "5" else bare)["compiler"]
    source = write(tmp_path, old_node("a", version), bare, version=version)
    assert before_1_0(source, tmp_path) == {hash_of("a"): 1, hash_of("bare"): 1}


def test_index_8_has_the_original_format_of_each_spec(tmp_path: Path) -> None:
    """Spack 1.0 writes the format, and the word None for a compiler that a spec never
    had.
    """

    def of(name: str, **annotations: Any) -> dict[str, Any]:
        return node(name, annotations=annotations)

    plain = node("plain")
    del plain["annotations"]
    source = write(
        tmp_path,
        of("new", original_specfile_version=5),
        of("old", original_specfile_version=4, compiler="gcc@=12.2.0"),
        of("none", original_specfile_version=3, compiler="None"),
        of("bare", original_specfile_version=4),
        plain,
        version="8",
    )
    old = {"new": 0, "old": 1, "none": 1, "bare": 1, "plain": 0}
    expected = {hash_of(name): is_old for name, is_old in old.items()}
    assert before_1_0(source, tmp_path) == expected
    compilers = {
        found.package: found.compiler for found in find(tmp_path / "x.db", "*")
    }
    assert (compilers["old"], compilers["none"]) == ("gcc@12.2.0", "none")


@pytest.mark.parametrize(
    ("folder", "expected"),
    [("v2", {1}), ("v2-0.16", {1}), ("v2-0.17", {1}), ("v2-0.20", {1}), ("v3", {0, 1})],
)
def test_spec_files_have_the_format_of_the_file(
    folder: str, expected: set[int], tmp_path: Path
) -> None:
    """Of each era; a mirror of layout 3 may have specs of both."""
    assert set(before_1_0(MIRRORS / folder, tmp_path).values()) <= expected


def test_a_real_index_of_spack_1_1(tmp_path: Path) -> None:
    """Spack 1.1 concretized all of its specs."""
    path = tmp_path / "index.json"
    path.write_bytes(real())
    assert set(before_1_0(path, tmp_path).values()) == {0}


@pytest.mark.parametrize("version", [True, "4", 4.5])
def test_a_format_that_is_no_number_is_a_fault(version: Any, tmp_path: Path) -> None:
    """With the hash of the spec."""
    source = write(
        tmp_path,
        node("a", annotations={"original_specfile_version": version}),
        version="8",
    )

    with pytest.raises(
        InputError, match=f"{hash_of('a')}: has original_specfile_version"
    ):
        build(source, tmp_path / "x.db")


def test_a_dev_path_is_a_variant(tmp_path: Path) -> None:
    """Specs that were built from a folder of sources can be found by it."""
    parameters = node("a")["parameters"] | {"dev_path": "/home/me/zlib"}
    source = write(tmp_path, node("a", parameters=parameters), node("b"), version="8")
    build(source, tmp_path / "x.db")
    (found,) = find(tmp_path / "x.db", "a dev_path=/home/me/zlib")

    assert found.package == "a"
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        rows = conn.execute(
            "SELECT specs.hash, parameters ->> '$.dev_path' FROM specs "
            "JOIN records ON records.spec_id = specs.id JOIN nodes ON nodes.id = records.node_id "
            "WHERE parameters ->> '$.dev_path' IS NOT NULL"
        ).fetchall()
        assert rows == [(hash_of("a"), "/home/me/zlib")]
        by_variant = "SELECT hash, value FROM spec_variants WHERE name = 'dev_path'"
        assert conn.execute(by_variant).fetchall() == rows
