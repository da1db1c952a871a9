"""Answers about dependencies: a second answer is made from the index itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from tests.graphs import dependencies, edges, installs, kind, run_time
from tests.indexes import edge, hash_of, index, node, record
from tests.queries.asking import DEPENDENCY_QUERIES, opened, rows, run


def named(hashes: Iterable[str]) -> set[tuple[str, str, str, str]]:
    """Return hash, package, version and kind of specs."""
    return {
        (each, installs()[each]["spec"]["name"], installs()[each]["spec"]["version"], kind(each))
        for each in hashes
    }


def shown(found: list[dict[str, Any]]) -> set[tuple[str, str, str, str]]:
    """Return the same of rows."""
    return {(row["hash"], row["package"], row["version"], row["kind"]) for row in found}


HASHES = sorted(installs())[::30]


def test_dependencies_of_hash(real_index: sqlite3.Connection) -> None:
    """All that a spec links to or runs or uses directly, each once, and how it uses it itself."""
    for dag_hash in HASHES:
        found = rows(real_index, "dependencies_of_hash", hash=dag_hash)

        assert len(found) == len(dependencies(dag_hash))
        assert shown(found) == named(dependencies(dag_hash))
        for row in found:
            how = edges()[dag_hash].get(row["hash"], set())
            assert set((row["types"] or "").split(",")) - {""} == how


def test_dependents_of_hash(real_index: sqlite3.Connection) -> None:
    """All that uses a spec directly in any way, or links to it or runs it through others."""
    for dag_hash in HASHES:
        found = rows(real_index, "dependents_of_hash", hash=dag_hash)
        through = {each for each in installs() if dag_hash in run_time(each)} - {dag_hash}
        directly = {each: to[dag_hash] for each, to in edges().items() if dag_hash in to}

        assert len(found) == len(through | directly.keys())
        assert shown(found) == named(through | directly.keys())
        for row in found:
            assert set((row["types"] or "").split(",")) - {""} == directly.get(row["hash"], set())


def test_dependencies_without_binary(real_index: sqlite3.Connection) -> None:
    """Of what a spec needs to run, and of itself, what is no binary: the externals."""
    for dag_hash in HASHES:
        found = rows(real_index, "dependencies_without_binary", hash=dag_hash)
        lacking = {each for each in run_time(dag_hash) if kind(each) != "binary"}

        assert shown(found) == named(lacking)
        assert {(row["release"], row["releases"]) for row in found} <= {("develop", 0)}


@pytest.fixture(scope="module")
def invented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Two releases; a spec that links to an external, and to what one release did not push."""
    folder = tmp_path_factory.mktemp("invented")
    system = record(node("system", external={"path": "/usr"}), is_binary=False)
    tool = node("tool", edge("system", "link"))
    needs = edge("system", "link"), edge("tool", "run"), edge("maker", "build")
    maker = record(node("maker", edge("helper", "link")))
    main = record(node("main", *needs))
    flags = node("main")["parameters"] | {"cflags": ["-O3", "-g"]}
    other = record({**node("main", *needs, parameters=flags), "hash": hash_of("again")})
    unpushed = record({**node("main"), "hash": hash_of("unpushed")}, is_binary=False)
    rest = maker, record(node("helper")), system, unpushed
    for name, is_binary in (("develop", True), ("v1.0", False)):
        data = index(main, other, *rest, record(tool, is_binary=is_binary))
        (folder / name / "root").mkdir(parents=True)
        (folder / name / "root" / "index.json").write_bytes(data)
    build([str(folder)], folder / "x.db")
    connection = opened(folder / "x.db")
    yield connection
    connection.close()


def test_hashes_stand_in_their_order_whatever_the_release(tmp_path: Path) -> None:
    """The newest release has the last of two hashes that need the same."""
    first, last = sorted((hash_of("one"), hash_of("other")))
    with_lib = node("main", edge("lib", "link"))
    for name, dag_hash in (("develop", last), ("v1.0", first)):
        records = (
            record({**with_lib, "hash": dag_hash}),
            record(node("lib")),
            record(node("main")),
        )
        (tmp_path / name / "root").mkdir(parents=True)
        (tmp_path / name / "root" / "index.json").write_bytes(index(*records))
    build([str(tmp_path)], tmp_path / "x.db")
    (row,) = rows(opened(tmp_path / "x.db"), "differences_of_look_alikes", hash=first)

    assert (row["package"], row["hashes"]) == ("lib", f"{first[:7]} {last[:7]}")


def test_another_release_may_have_it(invented: sqlite3.Connection) -> None:
    """What a release lacks is an external, or a binary that another release has."""
    lacking = {
        release: {
            (row["package"], row["kind"], row["releases"])
            for row in rows(
                invented, "dependencies_without_binary", hash=hash_of("main"), release=release
            )
        }
        for release in ("", "develop", "v1.0")
    }

    assert lacking["develop"] == lacking[""] == {("system", "external", 0)}
    assert lacking["v1.0"] == {("system", "external", 0), ("tool", "binary", 1)}


def test_flags_tell_look_alikes_apart(invented: sqlite3.Connection) -> None:
    """Where only flags differ the rows are those of the specs themselves; all are binaries."""
    found = rows(invented, "differences_of_look_alikes", hash=hash_of("main"))

    assert {(row["package"], row["flags"], row["hashes"]) for row in found} == {
        ("main", None, hash_of("main")[:7]),
        ("main", 'cflags="-O3 -g"', hash_of("again")[:7]),
    }
    assert [row["look_alikes"] for row in found] == [2, 2]


@pytest.mark.parametrize("query", DEPENDENCY_QUERIES)
def test_pages_show_no_dependencies(
    query: str, samples: sqlite3.Connection, all_sources: sqlite3.Connection
) -> None:
    """A file of pages, and a spec that only pages tell of, are answered with that sentence."""
    (nothing,) = run(samples, query)
    (from_page,) = run(all_sources, query, hash="aqp7dic")

    assert nothing.pop("error") == "this file has no dependency data: it was built from pages alone"
    assert from_page.pop("error").startswith("the file has no dependency data for 'aqp7dic")
    assert {*nothing.values(), *from_page.values()} == {None}
