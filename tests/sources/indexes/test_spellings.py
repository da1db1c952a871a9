"""The words of nodes and edges are those of pages, and different ones are never taken for one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from spack_cache_db.records import Configuration
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import Interned, Texts, Use
from spack_cache_db.sources.indexes import SpecNode
from spack_cache_db.sources.indexes.index_reader import (
    NO_LANGUAGE,
    Spellings,
    Uses,
    use_of,
    variants_of,
)
from spack_cache_db.sources.readers import read_files
from spack_cache_db.spack.normal_forms import normal_compiler, normal_variant
from tests.indexes import edge, hash_of, index, node, real, record
from tests.paths import DATA

OF_A_SPEC = {"hash", "dependencies", "full_hash", "build_hash", "build_spec"}
"""What a node says of one spec, and not of all that look alike: it has columns of its own."""

OTHER: dict[str, Any] = {
    "arch": {"platform": "linux", "platform_os": "debian12", "target": "zen3"},
    "parameters": {"build_system": "generic", "cflags": ["-O2"]},
    "compiler": {"name": "gcc", "version": "12.2.0"},
    "patches": ["a" * 64],
    "dependencies": [edge("b", "link")],
    "external": {"path": "/usr"},
    "build_spec": {"name": "b", "hash": hash_of("b")},
    "annotations": {"original_specfile_version": 4},
}


def decoded(said: dict[str, Any]) -> SpecNode:
    """Return a node as an index that says so has it."""
    return msgspec.json.decode(msgspec.json.encode(said), type=SpecNode)


def numbers(spellings: Spellings, read: SpecNode) -> tuple[int, int]:
    """Return the numbers of a node, as the reader asks for them."""
    compiler = "none" if read.compiler is msgspec.UNSET else f"gcc@{read.compiler.version}"
    return spellings.numbers(read, compiler)


@pytest.mark.parametrize("field", sorted({*SpecNode.__struct_fields__} - OF_A_SPEC))
def test_every_field_of_a_node_reaches_the_columns(field: str) -> None:
    """Two nodes that differ in one field differ in the configuration, or in what else is kept."""
    spellings = Spellings(Texts())
    one = decoded(node("a"))
    other = decoded(node("a") | {field: OTHER.get(field, "other")})
    assert numbers(spellings, one) != numbers(spellings, other)
    assert numbers(spellings, one) == numbers(spellings, decoded(node("a")))


@pytest.mark.parametrize("field", sorted(OF_A_SPEC))
def test_what_is_of_one_spec_makes_no_other_node(field: str) -> None:
    """Else there were as many nodes as specs."""
    spellings = Spellings(Texts())
    other = decoded(node("a") | {field: OTHER.get(field, hash_of("other"))})
    assert numbers(spellings, decoded(node("a"))) == numbers(spellings, other)


def configurations(data: bytes) -> dict[str, Configuration]:
    """Return the configuration of each spec of an index, by its hash."""
    found = read_files([RawFile("index.json", "index.json", data)])
    assert found.faults == []
    hashes, things = found.things["hashes"], found.things["configurations"]
    return {
        hashes[spec - 1]: things[configuration - 1]
        for table in map(found.tables.__getitem__, ("listings", "unlisted"))
        for spec, configuration in zip(table["spec"], table["configuration"], strict=True)
    }


def test_words_are_those_that_spack_prints() -> None:
    """For each of 905 real records, configuration for configuration, as Spack 1.1 prints it."""
    printed = json.loads((DATA / "satisfies.json").read_text())
    expected = {
        dag_hash: Configuration(
            package,
            version,
            normal_compiler(compiler),
            os,
            platform,
            target,
            tuple(sorted(map(normal_variant, printed["variants"][variants]))),
        )
        for dag_hash, package, version, compiler, os, platform, target, variants in printed["specs"]
    }
    assert len(expected) == 905
    assert configurations(real()) == expected


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
        found = configurations(index(record(node("a", *edges[:count])), *records))
        assert found[hash_of("a")].compiler == expected


def test_the_compiler_of_an_older_node_is_in_its_annotations() -> None:
    """Spack 1.0 keeps what a node of before said of its compiler."""
    said = {"original_specfile_version": 4, "compiler": "gcc@=12.2.0"}
    found = configurations(index(record(node("a", annotations=said))))
    assert found[hash_of("a")].compiler == "gcc@12.2.0"


def said(**parameters: Any) -> bytes:
    """Return the text of an edge's `parameters`."""
    return json.dumps(parameters).encode()


def test_every_version_says_the_same() -> None:
    """Types are sorted; old edges have no virtuals, and need not have types."""
    assert use_of(said(deptypes=["run", "build"], virtuals=["mpi"], direct=True)) == Use(
        ("build", "run"), ("mpi",), True
    )
    assert use_of(("run", "build")) == Use(("build", "run"), (), None)
    assert use_of(UNSET) == Use((), (), None)


def test_what_says_the_same_has_one_number() -> None:
    """However it is spelled; the language is the first that Spack asks for."""
    interned = Interned[Use]()
    uses = Uses(interned)

    one = uses[said(deptypes=["build"], virtuals=["fortran", "cxx"])]
    two = uses[b'{"virtuals":["cxx", "fortran"],"deptypes":["build"]}']
    other = uses["build",]

    assert (one, two, other) == (1, 1, 2)
    assert (uses.language[one], uses.language[other]) == (1, NO_LANGUAGE)
    assert interned.things == [Use(("build",), ("cxx", "fortran"), None), Use(("build",), (), None)]


@pytest.mark.parametrize(
    "text",
    [b"1", b"{}", said(deptypes="build"), said(deptypes=[1]), said(deptypes=[], when="@2")],
)
def test_what_is_no_use_is_refused(text: bytes) -> None:
    """Other types, and keys that are not known."""
    with pytest.raises(msgspec.ValidationError):
        use_of(text)


@pytest.mark.parametrize("word", ["", "a,b", "x" * 201])
def test_words_must_fit_into_a_list(word: str) -> None:
    """The file writes types and virtuals with commas between them."""
    with pytest.raises(ValueError, match="type or virtual"):
        use_of((word,))
    with pytest.raises(ValueError, match="type or virtual"):
        use_of(said(deptypes=["link"], virtuals=[word]))


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "--help"},
        {"name": "a/b"},
        {"version": "1\u202e"},
        {"namespace": "a\nb"},
        {"arch": {**OTHER["arch"], "platform_os": "-rf"}},
        {"arch": {**OTHER["arch"], "target": "zen\u200b3"}},
        {"parameters": {"x": "a\u202eb"}},
    ],
)
def test_names_of_nodes_are_names(changes: dict[str, Any]) -> None:
    """What looks like an option, or turns the text around it, is refused as in pages."""
    with pytest.raises(ValueError, match="expected"):
        numbers(Spellings(Texts()), decoded({**node("a"), **changes}))
