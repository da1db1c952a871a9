"""sources.indexes.normal: a node's words are those that pages print of it."""

from __future__ import annotations

import json

import pytest

from spack_cache_db.sources.columns import Interned
from spack_cache_db.sources.indexes.installs import Installs
from spack_cache_db.sources.indexes.spack_json import SpecNode
from spack_cache_db.sources.indexes.spellings import (
    Uses,
    compiler_name,
    compiler_of,
    parse_arch,
    provider_of,
    target_name,
    variants_of,
)
from spack_cache_db.spack.compilers import normal_compiler
from spack_cache_db.spack.variants import normal_variant
from tests.indexes import edge, hash_of, index, node, real, record
from tests.paths import DATA


def printed_compiler(installs: Installs, node: SpecNode) -> str:
    """Return the compiler of a node in its index."""
    uses = Uses(Interned())
    provider = provider_of(node, [uses.language[use] for use in uses.of(node.edges)])
    if provider is None:
        return compiler_of(node)
    return compiler_name(provider, installs.version(provider.hash))


def test_words_are_those_that_spack_prints() -> None:
    """For each of 905 real records, configuration for configuration, as Spack 1.1 prints it."""
    printed = json.loads((DATA / "satisfies.json").read_text())
    installs = Installs(real())
    wrong = []
    for dag_hash, _, version, compiler, os, platform, target, variants in printed["specs"]:
        node = installs.entry(dag_hash).node
        arch = parse_arch(bytes(node.arch))
        found = (
            node.version,
            printed_compiler(installs, node),
            (arch.platform_os, arch.platform, target_name(arch)),
            variants_of(bytes(node.parameters)),
        )
        texts = tuple(sorted(map(normal_variant, printed["variants"][variants])))
        if found != (version, normal_compiler(compiler), (os, platform, target), texts):
            wrong.append((dag_hash, found, texts))

    assert wrong == []


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
    """Bools, single values, lists and what needs quotes."""
    assert variants_of(json.dumps({"x": value}).encode()) == (text,)


def test_flags_are_no_variants() -> None:
    """Pages print no compiler flags."""
    assert variants_of(b'{"cflags": ["-O2"], "ldlibs": [], "pic": true}') == ("+pic",)


def test_patches_are_shortened() -> None:
    """Pages print seven characters of each patch, an index all sixty-four."""
    sums = ["b" * 64, "a" * 64]

    assert variants_of(json.dumps({"patches": sums}).encode()) == ("patches=aaaaaaa,bbbbbbb",)


def test_the_compiler_is_what_provides_c() -> None:
    """C comes before C++ and Fortran, whatever the order of the edges; without any it is none."""
    edges = (
        edge("fort", "build", virtuals=("fortran",)),
        edge("clang", "build", virtuals=("cxx",)),
        edge("gcc", "build", virtuals=("c",)),
    )
    records = [record(node(name)) for name in ("fort", "clang", "gcc")]
    for count, expected in ((3, "gcc@1.0"), (2, "clang@1.0"), (1, "fort@1.0"), (0, "none")):
        installs = Installs(index(record(node("a", *edges[:count])), *records))
        found = installs.entry(hash_of("a")).node
        assert printed_compiler(installs, found) == expected


def test_the_compiler_of_an_older_node_is_in_its_annotations() -> None:
    """Spack 1.0 keeps what a node of before said of its compiler."""
    said = {"original_specfile_version": 4, "compiler": "gcc@=12.2.0"}
    installs = Installs(index(record(node("a", annotations=said))))

    assert printed_compiler(installs, installs.entry(hash_of("a")).node) == "gcc@12.2.0"
