"""spack.nodes: nodes of every version, in the words that Spack prints."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from spack_cache_db.spack.nodes import Node, compiler_of, configuration_of, read_node
from tests.indexes import edge, hash_of, node, old_node

FULL = node(
    "a",
    edge("b", "link", "build", virtuals=("c",), direct=True),
    arch={
        "platform": "linux",
        "platform_os": "debian12",
        "target": {"name": "zen3", "vendor": "AMD", "features": ["avx"], "generation": 0,
                   "parents": ["zen2"], "cpupart": "0x61"},
    },
    patches=["a" * 64],
    build_spec={"name": "b", "hash": hash_of("b")},
    external={"path": "/usr", "module": None, "extra_attributes": {"c": "cc"}},
    annotations={"original_specfile_version": 4, "compiler": "gcc@=12"},
)  # fmt: skip


def read(data: Any) -> Node:
    """Return a node in which all keys are known."""
    unknown: set[str] = set()
    read_back = read_node(data, unknown)
    assert unknown == set()
    return read_back


@pytest.mark.parametrize("version", ["5", "6", "7"])
def test_older_nodes_say_the_same(version: str) -> None:
    """Keyed by names or not, with types in either place, and a compiler of their
    own.
    """
    newest = node("a", edge("b", "link"), annotations={"compiler": "gcc@=12.2.0"})
    expected = read(newest)
    # The first form has no hash of the recipe.
    if version == "5":
        expected = expected._replace(package_hash=None)

    assert read(old_node("a", version, "b")) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "+x"),
        (False, "~x"),
        ("17", "x=17"),
        ("", "x=''"),
        ("a b", "x='a b'"),
        (["b", "a"], "x=a,b"),
        (["one"], "x=one"),
        ([], "x='*'"),
        (["c", "c++"], "x='c,c++'"),
    ],
)
def test_a_value_is_printed_as_pages_print_it(value: object, text: str) -> None:
    """Without compiler flags, and with seven characters of each patch."""
    parameters = {"x": value, "cflags": ["-O2"], "patches": ["b" * 64, "a" * 64]}
    concrete = read(node("a", parameters=parameters))
    variants = configuration_of(concrete, compiler="none").variants
    assert sorted(variants) == sorted((text, "patches=aaaaaaa,bbbbbbb"))
    assert list(variants) == sorted(variants)


def test_the_compiler_provides_c() -> None:
    """C comes before C++ and Fortran, whatever the order of the edges; without any it
    is none.
    """
    fortran = edge("fort", "build", virtuals=("fortran",))
    cxx = edge("clang", "build", virtuals=("cxx",))
    c = edge("gcc", "build", virtuals=("c",))
    # The record of gcc is missing, so its version is unknown.
    nodes = {hash_of(name): read(node(name)) for name in ("fort", "clang")}

    def compiler(*edges: dict[str, Any]) -> str:
        return compiler_of(read(node("a", *edges)), nodes.get)

    assert compiler(fortran, cxx, c) == "gcc"
    assert compiler(fortran, cxx) == "clang@1.0"
    assert compiler(fortran) == "fort@1.0"
    assert compiler() == "none"


Steps = tuple[str | int, ...]
"""The keys and the places in lists that lead to a value: `("dependencies", 0)`."""


def objects(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    """Yield the steps to each object within a value, without those that may have any
    key.
    """
    if isinstance(value, dict):
        yield steps
        for key, member in value.items():
            if (*steps, key) not in {("parameters",), ("external",)}:
                yield from objects(member, (*steps, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from objects(member, (*steps, index))


@pytest.mark.parametrize("steps", list(objects(FULL)), ids=str)
def test_unknown_keys_are_reported_at_every_depth(steps: Steps) -> None:
    """With their place, and the rest of the node is read."""
    data = copy.deepcopy(FULL)
    place: Any = data
    for step in steps:
        place = place[step]
    place["odd"] = 1

    unknown: set[str] = set()
    assert read_node(data, unknown) == read(FULL)

    path = "spec"
    for step in steps:
        path += "[]" if isinstance(step, int) else f".{step}"
    assert unknown == {f"{path}.odd"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (1, "spec is not an object"),
        ({}, "has 0 names"),
        ({"a": {}, "b": {}}, "has 2 names, expected one"),
        ({"name": "a"}, "spec.arch is not an object"),
        (node("a", version=1), "has no version"),
        (node("a", arch={"platform": "linux", "target": "x"}), "has no platform_os"),
        (node("a", hash=None), "has no hash"),
        (node("a", namespace=[]), r"has the namespace \[\]"),
        (node("a", parameters=[]), "spec.parameters is not an object"),
        (
            node("a", parameters={"x": 1}),
            "has the parameter 'x' 1, expected a text, true",
        ),
        (node("a", parameters={"x": [1]}), "has the parameter"),
        (node("a", dependencies=1), "dependencies is not a list"),
        (node("a", {"name": "b", "hash": "c", "type": 1}), "types that are not a list"),
        (
            node("a", {"name": "b", "hash": "c", "parameters": {"virtuals": "mpi"}}),
            "has virtuals 'mpi', expected a list of words",
        ),
        (node("a", edge("b", "a,b")), "not a type or a virtual"),
        (node("a", edge("b", "link", virtuals=("",))), "not a type or a virtual"),
        (node("a", {"name": "b", "parameters": {}}), "has no hash"),
        (node("a", external=1), "external is not an object"),
        (node("a", build_spec={"name": "b"}), "has no hash"),
        (node("a", compiler={"name": "gcc"}), "has no version"),
    ],
)
def test_a_value_that_is_not_a_node_is_refused(data: Any, message: str) -> None:
    """In words, with the key."""
    with pytest.raises(ValueError, match=message):
        read_node(data, set())
