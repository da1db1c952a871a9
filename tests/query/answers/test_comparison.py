"""In what specs of one configuration differ."""

import sqlite3
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.answers.differences import (
    Differences,
    Facts,
    differences,
    distinctions,
    read_facts,
)
from spack_cache_db.query.answers.find import find
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.stored.graph import read_needs
from tests.graphs import run_time, used
from tests.indexes import edge, hash_of, index, node, record

Dependency = dict[str, Any]


def named(key: str, package: str, *edges: Dependency, **more: Any) -> Dependency:
    """Return a node of a package, with the hash that stands for `key`."""
    return {**node(package, *edges, **more), "hash": hash_of(key)}


def to(
    key: str, package: str, *types: str, virtuals: tuple[str, ...] = ()
) -> Dependency:
    """Return an edge to the node that stands for `key`."""
    return {**edge(package, *types, virtuals=virtuals), "hash": hash_of(key)}


PARAMETERS = node("x")["parameters"]
SYSTEM = (
    named("libc", "glibc", version="2.36", external={"path": "/usr"}),
    named("cc", "gcc", version="12.2.0", external={"path": "/usr"}),
)
BASE = (to("libc", "glibc", "link"), to("cc", "gcc", "build", virtuals=("c",)))
NODES = (
    named("ompi4", "openmpi", *BASE, version="4.1.6"),
    named("ompi5", "openmpi", *BASE, version="5.0.3"),
    named("mpich", "mpich", *BASE, version="4.2.1"),
    named("hwloc", "hwloc", *BASE),
    named("hdf4", "hdf5", to("ompi4", "openmpi", "link", virtuals=("mpi",)), *BASE),
    named("hdf5", "hdf5", to("ompi5", "openmpi", "link", virtuals=("mpi",)), *BASE),
    named("hdfm", "hdf5", to("mpich", "mpich", "link", virtuals=("mpi",)), *BASE),
    named(
        "hdff",
        "hdf5",
        to("ompi4", "openmpi", "link", virtuals=("mpi",)),
        *BASE,
        package_hash="new-recipe-of-it",
        parameters=PARAMETERS | {"cflags": ["-O3"], "shared": False},
    ),
    named("cmake", "cmake", *BASE, version="3.27.9"),
    named("cmake2", "cmake", *BASE, version="3.31.0"),
    named("cmake3", "cmake", to("hwloc", "hwloc", "build"), *BASE, version="3.27.9"),
)
TOPS = {
    "this": (to("hdf4", "hdf5", "link"), to("cmake", "cmake", "build")),
    "version": (to("hdf5", "hdf5", "link"), to("cmake", "cmake", "build")),
    "provider": (to("hdfm", "hdf5", "link"), to("cmake", "cmake", "build")),
    "made of": (to("hdff", "hdf5", "link"), to("cmake", "cmake", "build")),
    "more": (
        to("hdf4", "hdf5", "link"),
        to("cmake", "cmake", "build"),
        to("hwloc", "hwloc", "run"),
    ),
    "less": (to("cmake", "cmake", "build"),),
    "built": (to("hdf4", "hdf5", "link"), to("cmake2", "cmake", "build")),
    "deeper": (to("hdf4", "hdf5", "link"), to("cmake3", "cmake", "build")),
}


def compared(
    tmp_path: Path, tops: dict[str, Dependency], most: int = 1_000
) -> dict[str, Differences]:
    """Return in what specs differ from the one called `this`."""
    nodes = [
        record(each, is_binary="external" not in each) for each in (*SYSTEM, *NODES)
    ]
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "index.json").write_bytes(index(*nodes, *map(record, tops.values())))
    build(tmp_path / "index.json", tmp_path / "x.db")
    conn = sqlite3.connect(tmp_path / "x.db")
    found = dict(conn.execute("SELECT hash, id FROM specs"))
    ids = {name: found[each["hash"]] for name, each in tops.items()}
    this = ids.pop("this")
    graph = read_needs(read_lookups(conn), [this, *ids.values()], most)
    told = differences(read_lookups(conn), graph, this, list(ids.values()))
    conn.close()
    return {name: told[key] for name, key in ids.items() if key in told}


def texts_of(found: dict[str, Differences]) -> dict[str, tuple[str, ...]]:
    """Return the changes of each spec as they are printed."""
    texts = {}
    for name, difference in found.items():
        texts[name] = tuple(map(str, difference.changes))
    return texts


def test_what_they_need_is_compared(tmp_path: Path) -> None:
    """The package that differs is named, wherever it is, and not what differs because
    of it.
    """
    tops = {name: named(name, "top", *edges, *BASE) for name, edges in TOPS.items()}
    found = compared(tmp_path, tops)

    assert texts_of(found) == {
        "version": ("openmpi 4.1.6 → 5.0.3",),
        "provider": ("mpi provider openmpi 4.1.6 → mpich 4.2.1",),
        "made of": (
            "hdf5 variants none → ~shared",
            'hdf5 flags none → cflags="-O3"',
            "hdf5 recipe recipe- → new-rec",
        ),
        "more": ("hwloc 1.0 only there",),
        "less": ("hdf5 1.0 only here", "openmpi 4.1.6 only here"),
        "built": ("cmake 3.27.9 → 3.31.0",),
        "deeper": (),
    }
    assert {name for name, difference in found.items() if difference.is_build_only} == {
        "built",
        "deeper",
    }


def test_its_own_recipe_and_flags_are_compared(tmp_path: Path) -> None:
    """Two specs that need the same differ in themselves."""
    this = named("this", "top", *BASE)
    tops = {
        "this": this,
        "flags": named(
            "flags", "top", *BASE, parameters=PARAMETERS | {"ldflags": ["-s", "-l"]}
        ),
        "recipe": named("recipe", "top", *BASE, package_hash="another-one"),
        "space": named("space", "top", *BASE, namespace="mine"),
    }
    found = compared(tmp_path, tops)

    assert texts_of(found) == {
        "flags": ('top flags none → ldflags="-s -l"',),
        "recipe": ("top recipe recipe- → another",),
        "space": ("top namespace builtin → mine",),
    }


def groups_of(conn: sqlite3.Connection) -> dict[int, list[int]]:
    """Return the binaries of each configuration that has several."""
    found: dict[int, list[int]] = {}
    for key, spec in conn.execute(
        "SELECT configuration_id, id FROM specs WHERE release_count > 0 ORDER BY id"
    ):
        found.setdefault(key, []).append(spec)
    return {key: specs for key, specs in found.items() if len(specs) > 1}


def test_mpi_is_told_first(tmp_path: Path) -> None:
    """Each look-alike has what others lack: MPI before all else, then what the fewest
    have.
    """
    edges = {
        name: TOPS[name] for name in ("this", "version", "provider", "built", "less")
    }
    both = to("hwloc", "hwloc", "run")
    tops = [named(name, "top", *each, both, *BASE) for name, each in edges.items()]
    nodes = [
        record(each, is_binary="external" not in each) for each in (*SYSTEM, *NODES)
    ]
    (tmp_path / "index.json").write_bytes(index(*nodes, *map(record, tops)))
    build(tmp_path / "index.json", tmp_path / "x.db")

    (top,) = find(tmp_path / "x.db", "top", with_hashes=True)
    told = {spec.hash: spec.differences for spec in top.specs or ()}

    assert {name: told[hash_of(name)] for name in edges} == {
        "this": ("openmpi@4.1.6", "built with cmake@3.27.9", "hdf5@1.0"),
        "built": ("openmpi@4.1.6", "built with cmake@3.31.0", "hdf5@1.0"),
        "version": ("openmpi@5.0.3", "hdf5@1.0"),
        "provider": ("mpich@4.2.1", "hdf5@1.0"),
        "less": ("no mpich",),
    }


def test_what_differs_is_said_differently(real_index: sqlite3.Connection) -> None:
    """Of two look-alikes the same is said exactly where they need and use the same."""
    groups = groups_of(real_index)
    told = distinctions(read_lookups(real_index), groups.values())
    hashes = dict(real_index.execute("SELECT id, hash FROM specs"))
    facts = read_facts(read_lookups(real_index), hashes)
    facts_by_hash = {dag_hash: facts[spec] for spec, dag_hash in hashes.items()}

    def facts_of(dag_hashes: Iterable[str]) -> set[Facts]:
        return {facts_by_hash[dag_hash] for dag_hash in dag_hashes}

    assert set(told) == {spec for group in groups.values() for spec in group}
    for group in groups.values():
        for one, other in combinations(group, 2):
            needs_one = facts_of(run_time(hashes[one]))
            needs_other = facts_of(run_time(hashes[other]))
            uses_one = facts_of(used(hashes[one]))
            uses_other = facts_of(used(hashes[other]))
            is_alike = needs_one == needs_other and uses_one == uses_other
            assert (told[one] == told[other]) == is_alike
