"""What is no binary is not counted and not shown, but as what a binary needs."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from spack_cache_db.build import build
from tests.indexes import edge, hash_of, index, node, real, record
from tests.queries.asking import QUERIES, opened, rows, run


def of_binaries() -> Iterator[tuple[str, str, str]]:
    """Yield package, version and hash of each binary of the real index, as its JSON has them."""
    for dag_hash, each in json.loads(real())["database"]["installs"].items():
        if each["in_buildcache"]:
            yield each["spec"]["name"], each["spec"]["version"], dag_hash


@pytest.mark.slow
@pytest.mark.parametrize("query", sorted(QUERIES))
def test_what_is_no_binary_is_in_no_answer(query: str, real_index: sqlite3.Connection) -> None:
    """Externals are not what an empty parameter asks for, nor what a list of all has."""
    known = {(package, version) for package, version, _ in of_binaries()}
    # Nothing comes before the one release, which queries of two releases say.
    found = run(real_index, query) if "old" in QUERIES[query]["params"] else rows(real_index, query)
    packages = {row["package"] for row in found if row.get("package")}

    assert packages <= {package for package, _ in known}
    for row in found:
        version = row.get("version") or row.get("newest_version")
        assert version is None or not row.get("package") or (row["package"], version) in known


def test_externals_are_no_specs_of_a_package(real_index: sqlite3.Connection) -> None:
    """Llvm has a binary and an external: the queries count and show the one."""
    versions = Counter(version for package, version, _ in of_binaries() if package == "llvm")
    found = rows(real_index, "specs_of_package", package="llvm")

    assert Counter(row["version"] for row in found) == versions
    assert "17.0.6" not in versions
    (row,) = run(real_index, "releases_of_version", package="llvm", version="17.0.6")
    assert row["error"].startswith("llvm has no version '17.0.6'; versions: ")
    (row,) = run(real_index, "specs_of_package", package="gcc")
    assert row["error"].startswith("no release has a package 'gcc'; near it: ")
    (row,) = run(real_index, "most_hashes", package="glibc")
    assert row["error"].startswith("no release has a package 'glibc'; near it: ")


def test_an_external_of_a_family_is_no_binary_of_it(tmp_path: Path) -> None:
    """A package of which a family has an external only is one that the family lacks."""
    arm = {"platform": "linux", "platform_os": "debian12", "target": "aarch64"}
    (tmp_path / "index.json").write_bytes(
        index(
            record(node("both", edge("gcc", "build"))),
            record(node("gcc", arch=arm, external={"path": "/usr"}), is_binary=False),
            record(node("arm", arch=arm)),
            record({**node("both", arch=arm, external={}), "hash": hash_of("2")}, is_binary=False),
        )
    )
    build([str(tmp_path / "index.json")], tmp_path / "x.db")
    connection = opened(tmp_path / "x.db")

    lacking = rows(connection, "missing_for_family")
    swapped = rows(connection, "missing_for_family", has="aarch64", lacks="x86_64")

    assert [row["package"] for row in lacking] == ["both"]
    assert [row["package"] for row in swapped] == ["arm"]
    connection.close()


@pytest.mark.slow
def test_counts_are_those_of_binaries(real_index: sqlite3.Connection) -> None:
    """Numbers of packages, hashes and versions are those of the index's binaries."""
    binaries = Counter(package for package, _, _ in of_binaries())
    packages = rows(real_index, "newest_versions")
    most = rows(real_index, "most_hashes")

    assert {row["package"]: row["spec_count"] for row in packages} == binaries
    assert min(row["spec_count"] for row in most) > 1


def test_a_hash_that_no_release_lists(real_index: sqlite3.Connection) -> None:
    """It is known as a dependency, which is what the answer says."""
    (external,) = real_index.execute(
        "SELECT min(hash) FROM specs WHERE release_count = 0"
    ).fetchone()
    (row,) = run(real_index, "releases_of_hash", hash=external)
    assert row["error"] == f"no release lists '{external}': it is known as a dependency"
