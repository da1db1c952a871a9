"""Answers about dependencies: a second answer is made from the index itself."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spack_cache_db.build import build
from tests.graphs import dependencies, edges, installs, kind, run_time, used
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


def look_alikes() -> list[list[str]]:
    """Return the hashes of each configuration of the real index that has several."""
    groups: dict[str, list[str]] = {}
    for dag_hash, each in installs().items():
        spec = {
            name: value
            for name, value in each["spec"].items()
            if name not in ("hash", "dependencies", "package_hash", "annotations", "namespace")
        }
        compilers = sorted(
            (dependency["name"], installs()[dependency["hash"]]["spec"]["version"])
            for dependency in each["spec"].get("dependencies", [])
            if {"c", "cxx", "fortran"} & set(dependency["parameters"]["virtuals"])
        )
        if each["in_buildcache"]:
            groups.setdefault(json.dumps([spec, compilers], sort_keys=True), []).append(dag_hash)
    return [group for group in groups.values() if len(group) > 1]


@pytest.mark.slow
def test_differences_of_look_alikes(real_index: sqlite3.Connection) -> None:
    """What some look-alikes need and others do not, with how many of them, and which.

    What one needs to run and another only to be built tells them apart as well.
    """
    groups = look_alikes()
    assert max(map(len, groups)) == 6
    for group in groups:
        _differences_are_told(real_index, group)


def _differences_are_told(real_index: sqlite3.Connection, group: list[str]) -> None:
    count = Counter(key for each in group for key in {own(found) for found in used(each)})
    to_run = Counter(key for each in group for key in {own(found) for found in run_time(each)})
    count = Counter({**count, **to_run})
    found = run(real_index, "differences_of_look_alikes", hash=group[0])

    if not (different := {key: number for key, number in count.items() if number < len(group)}):
        (row,) = found
        assert row["error"] == "they need the same specs, which were built with different ones"
        return
    assert [row["error"] for row in found] == [None] * len(found)
    assert Counter((row["package"], row["version"], row["specs"]) for row in found) == Counter(
        (key[0], key[1], number) for key, number in different.items()
    )
    assert {row["look_alikes"] for row in found} == {len(group)}
    for row in found:
        hashes = row["hashes"].split()
        assert hashes == sorted(hashes)
        assert len(hashes) == row["specs"]
        assert set(hashes) < {each[:7] for each in group}


def own(dag_hash: str) -> tuple[str, str, str]:
    """Return package, version, and all else of a spec but its dependencies and hash."""
    spec = installs()[dag_hash]["spec"]
    compilers = sorted(
        (each["name"], installs()[each["hash"]]["spec"]["version"])
        for each in spec.get("dependencies", [])
        if {"c", "cxx", "fortran"} & set(each["parameters"]["virtuals"])
    )
    names = ("arch", "namespace", "package_hash", "parameters", "external")
    rest = [spec.get(name) for name in names]
    return spec["name"], spec["version"], json.dumps([rest, compilers], sort_keys=True)


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
