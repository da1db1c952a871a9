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


def read(said: Any) -> Node:
    """Return a node in which all keys are known."""
    unknown: set[str] = set()
    found = read_node(said, unknown)
    assert unknown == set()
    return found


@pytest.mark.parametrize("version", ["5", "6", "7"])
def test_older_nodes_say_the_same(version: str) -> None:
    """Keyed by names or not, with types in either place, and a compiler of their
    own.
    """
    newest = node("a", edge("b", "link"), annotations={"compiler": "gcc@=12.2.0"})
    expected = read(newest)
    found = read(old_node("a", version, "b"))
    if version == "5":
        expected = expected._replace(package_hash=None)
    assert found == expected


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
    found = configuration_of(read(node("a", parameters=parameters)), "none")
    assert found.variants == tuple(sorted((text, "patches=aaaaaaa,bbbbbbb")))


def test_the_compiler_provides_c() -> None:
    """C comes before C++ and Fortran, whatever the order of the edges; without any it
    is none.
    """
    edges = (
        edge("fort", "build", virtuals=("fortran",)),
        edge("clang", "build", virtuals=("cxx",)),
        edge("gcc", "build", virtuals=("c",)),
    )
    known = {hash_of(name): read(node(name)) for name in ("fort", "clang")}
    for count, expected in ((3, "gcc"), (2, "clang@1.0"), (1, "fort@1.0"), (0, "none")):
        assert compiler_of(read(node("a", *edges[:count])), known.get) == expected


def objects(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each object within a value, without those that may have any
    key.
    """
    if isinstance(value, dict):
        yield way
        for key, each in value.items():
            if (*way, key) not in {("parameters",), ("external",)}:
                yield from objects(each, (*way, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from objects(each, (*way, at))


@pytest.mark.parametrize("way", [*objects(FULL)], ids=str)
def test_unknown_keys_are_reported_at_every_depth(way: tuple[Any, ...]) -> None:
    """With their place, and the rest of the node is read."""
    said = copy.deepcopy(FULL)
    place = said
    for step in way:
        place = place[step]
    place["odd"] = 1
    unknown: set[str] = set()
    assert read_node(said, unknown) == read(FULL)
    where = "".join(
        "[]" if isinstance(step, int) else f".{step}" for step in (*way, "odd")
    )
    assert unknown == {f"spec{where}"}


@pytest.mark.parametrize(
    ("said", "words"),
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
def test_a_value_that_is_not_a_node_is_refused(said: Any, words: str) -> None:
    """In words, with the key."""
    with pytest.raises(ValueError, match=words):
        read_node(said, set())
