"""environments.lockfile: every node of every version of a lockfile, in the words of
caches.
"""

from typing import Any

import pytest

from spack_cache_db.environments.lockfile import read_lock
from spack_cache_db.environments.model import LockedSpec
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.errors import LineFault
from tests.configurations import configuration
from tests.indexes import edge, hash_of, node, old_node
from tests.paths import DATA

HDF5 = configuration(
    package="hdf5",
    version="1.0",
    compiler="gcc@12.2.0",
    os="debian12",
    platform="linux",
    target="x86_64_v3",
    variants=("build_system=generic",),
)


def lock(
    version: int, nodes: dict[str, Any], *roots: str, **more: Any
) -> dict[str, Any]:
    """Return a decoded lockfile."""
    return {
        "_meta": {"file-type": "spack-lockfile", "lockfile-version": version},
        "roots": [{"hash": root, "spec": "x"} for root in roots],
        "concrete_specs": nodes,
        **more,
    }


def by_hash(*nodes: dict[str, Any]) -> dict[str, Any]:
    """Return nodes keyed by their hashes."""
    return {spec_node["hash"]: spec_node for spec_node in nodes}


def first_versions(version: int) -> dict[str, Any]:
    """Return a lockfile of version 1, 2 or 3: hdf5 needs zlib."""
    named = {1: "5", 2: "5", 3: "6"}[version]
    nodes = {"zlib": old_node("zlib", named), "hdf5": old_node("hdf5", named, "zlib")}
    if version == 1:
        # The keys are the hashes of the binaries, which stand nowhere else.
        keys = {name: hash_of(name) for name in nodes}
        for name, spec_node in nodes.items():
            del spec_node[name]["hash"]
    else:
        keys = {name: hash_of(f"build of {name}") for name in nodes}
    specs = {keys[name]: spec_node for name, spec_node in nodes.items()}
    return lock(version, specs, keys["hdf5"])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_locks_before_spack_0_18(version: int) -> None:
    """Whatever the nodes are keyed by, each is known by the hash of its binary."""
    hdf5, zlib = read_lock(first_versions(version), 10).locked

    assert hdf5 == LockedSpec(
        hash_of("hdf5"), HDF5, is_root=True, needs=(hash_of("zlib"),)
    )
    assert zlib.hash == hash_of("zlib")
    assert zlib.configuration.package == "zlib"
    assert zlib.is_root is False


def test_roots_come_first() -> None:
    """Roots stand in their order, then all else by name; what is both stands once."""
    nodes = by_hash(*(node(name) for name in "dbca"))
    found = read_lock(lock(6, nodes, hash_of("c"), hash_of("a"), hash_of("c")), 10)

    assert [locked_spec.configuration.package for locked_spec in found.locked] == [
        "c",
        "a",
        "b",
        "d",
    ]
    assert [each.is_root for each in found.locked] == [True, True, False, False]


def test_externals_are_left_out() -> None:
    """What stands on the machine needs no binary, and is counted in a note."""
    nodes = by_hash(node("a", edge("b", "link")), node("b", external={"path": "/usr"}))
    found = read_lock(lock(6, nodes, hash_of("a"), hash_of("b")), 10)

    assert [locked_spec.configuration.package for locked_spec in found.locked] == ["a"]
    assert (found.locked[0].needs, found.locked[0].externals) == ((), (("b", "1.0"),))
    assert found.notes == ("one external needs no binary; left out",)


def test_included_environments_are_part_of_the_lock() -> None:
    """Since version 5 a lockfile holds the nodes of those it includes."""
    inner = lock(5, by_hash(node("b")), hash_of("b"))
    found = read_lock(
        lock(5, by_hash(node("a")), hash_of("a"), include_concrete={"/env": inner}), 10
    )

    assert [
        (locked_spec.configuration.package, locked_spec.is_root)
        for locked_spec in found.locked
    ] == [
        ("a", True),
        ("b", True),
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "_meta is not an object"),
        (lock(8, {}), "lockfile version 8, expected one of 1 to 7"),
        (lock(6, {"x": []}), "the spec x: spec is not an object"),
        (lock(6, {"x": node("a", hash="x")}), "the spec x: 'x' is not a hash"),
        (lock(6, by_hash(node("a", parameters={"=": "x"}))), "a: .* is not a variant"),
        (
            lock(6, by_hash(node("a", edge("gcc", virtuals=("c",))))),
            "a needs gcc /.* is not among",
        ),
        (
            lock(6, by_hash(node("a", build_spec={"name": "b", "hash": hash_of("b")}))),
            "a needs b /.* is not among",
        ),
        (
            lock(
                6, by_hash(node("a", edge("b", "link")), node("b", edge("a", "build")))
            ),
            "needs itself",
        ),
        (
            lock(6, by_hash(node("a") | {"dependencies": 1})),
            "dependencies is not a list",
        ),
        (lock(6, {}, hash_of("a")), "has the root .* is not among"),
        (lock(6, {}) | {"roots": 1}, "roots is not a list"),
        (
            lock(6, by_hash(*(node(name) for name in "abc"))),
            "has 3 specs, expected at most 2",
        ),
    ],
)
def test_what_is_no_lockfile(data: dict[str, Any], said: str) -> None:
    """What Spack does not write is refused with what is wrong with it."""
    with pytest.raises(LineFault, match=said):
        read_lock(data, 2)


@pytest.mark.parametrize("name", ["spack_1.2.lock", "spack_1.2_find.json"])
def test_files_of_spack_1_2(name: str) -> None:
    """A lockfile with groups, and what `find --json` prints, have the specs that Spack
    has.
    """
    found = read_environment((DATA / name).read_bytes(), name)

    packages = {spec.configuration.package: spec for spec in found.locked}
    roots = {package for package, spec in packages.items() if spec.is_root}
    assert {"zlib", "libelf", "mpileaks"} <= roots
    assert {"callpath", "compiler-wrapper", "dyninst", "gcc-runtime", "mpich"} <= set(
        packages
    )
    assert packages["mpileaks"].configuration.compiler == "gcc@12.2.0"
    assert packages["callpath"].hash in packages["mpileaks"].needs
    assert "3 externals need no binary" in found.notes[0]
