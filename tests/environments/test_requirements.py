"""environments.packages, toolchains: the requirements on a spec besides its own
constraints.
"""

import json
from typing import Any

import pytest

from spack_cache_db.environments.manifest import read_manifest
from spack_cache_db.environments.model import (
    Limits,
    Surroundings,
    UnreadableEnvironment,
)
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.environments.rules import PackageRules, combinations, required_query
from spack_cache_db.spack.legacy import parser_of
from spack_cache_db.spack.printing import spec_text
from spack_cache_db.spack.queries import SpecQuery
from tests.environments.required import required_text

BOTH = ["b@1", "b@2", "c@1 +x", "c@2 +x"]


def read(spec: str, packages: str) -> tuple[SpecQuery, PackageRules]:
    """Return what a spec asks, and what `packages:` requires."""
    text = f"spack: {{specs: ['{spec}'], packages: {packages}}}"
    (found,) = read_manifest(text, "-", Limits(10)).specs
    assert found.query is not None
    return found.query, found.rules


@pytest.mark.parametrize(
    ("spec", "packages", "expected"),
    [
        ("a", "{a: {require: '+x'}}", "a +x"),
        ("a", "{a: {require: ['+x', '%gcc@13']}}", "a +x %gcc@13"),
        ("a", "{a: {require: a@1}}", "a@1"),
        ("a", "{all: {require: 'target=zen3'}}", "a target=zen3"),
        ("a", "{all: {require: '%gcc'}, a: {require: '%llvm'}}", "a %llvm"),
        ("a", "{all: {require: '%gcc'}, a: {conflict: ['%llvm']}}", "a %gcc"),
        ("a", "{all: {require: '+x'}}", "a"),
        ("a", "{a: {require: [{any_of: ['+x', '+y']}]}}", "a"),
        ("a", "{a: {require: [{any_of: ['+x']}, {one_of: ['@1', '@2']}]}}", "a +x"),
        ("a", "{a: {require: [{spec: '+x', when: '@2'}]}}", "a"),
        ("a", "{b: {require: '+x'}, a: {target: [zen3]}}", "a"),
        ("a", "{a: {require: , conflict: ~, externals: , buildable: null}}", "a"),
    ],
)
def test_a_query_with_its_requirements(spec: str, packages: str, expected: str) -> None:
    """A query shows what is required of its package, as far as one query can say it."""
    assert spec_text(required_query(*read(spec, packages))) == expected


@pytest.mark.parametrize(
    ("spec", "packages", "expected"),
    [
        ("a", "{all: {require: '+x'}}", ["a"]),
        ("a@2", "{a: {require: [{one_of: ['@1', '@2', '+x']}]}}", ["a@2", "a@2 +x"]),
        ("a+x", "{a: {require: '~x'}}", []),
        ("mpi", "{mpi: {require: [b@4, '+x']}}", ["b@4 +x"]),
        ("mpi", "{mpi: {require: [{one_of: [b, c+x]}, {any_of: ['@1', '@2']}]}}", BOTH),
        ("mpi", "{mpi: {require: [{spec: b, when: '@2'}]}}", ["mpi", "b@2"]),
        ("a@2.1", "{a: {require: [{spec: '+x', when: '@2'}]}}", ["a@2.1 +x"]),
    ],
)
def test_the_ways_to_satisfy_a_requirement(
    spec: str, packages: str, expected: list[str]
) -> None:
    """Each way has one option of each group; what provides a virtual package replaces
    its name.
    """
    assert [
        spec_text(query) for query in combinations(*read(spec, packages))
    ] == expected


NOT = {"buildable": False}
YES = {"buildable": True}


@pytest.mark.parametrize(
    ("packages", "is_buildable"),
    [
        ({}, True),
        ({"cray-mpich": NOT}, False),
        ({"all": NOT}, False),
        ({"blas": NOT}, True),
        ({"mpi": NOT, "cray-mpich": YES}, True),
        ({"all": NOT, "mpi": YES}, True),
        ({"own-api": NOT}, True),
        (
            {"own-api": NOT, "all": {"providers": {"own-api": ["cray-mpich@8", "x"]}}},
            False,
        ),
    ],
)
def test_a_virtual_package_that_is_not_built(
    packages: dict[str, dict[str, object]], is_buildable: bool
) -> None:
    """What provides a virtual package that is not buildable is not, unless it says so
    itself.
    """
    external = {"externals": [{"spec": "cray-mpich@8.1", "prefix": "/opt"}]}
    own = packages | {"cray-mpich": packages.get("cray-mpich", {}) | external}
    text = json.dumps({"spack": {"specs": ["cray-mpich"], "packages": own}})
    (found,) = read_manifest(text, "-", Limits(10)).specs

    assert (found.external, found.is_buildable) == ("cray-mpich@8.1", is_buildable)


GNU = "%c,cxx=gcc@13"
EDGES = "%[virtuals=c when='%c'] llvm %[virtuals=fortran when='+f %fortran'] gcc"


def required_texts(specs: list[Any], toolchains: Any, **more: Any) -> list[str]:
    """Return the specs of an environment with what is required of them."""
    text = json.dumps({"spack": {"specs": specs, "toolchains": toolchains, **more}})
    found = read_environment(text.encode(), "-")
    return [required_text(spec) for spec in found.specs]


def test_wherever_specs_stand() -> None:
    """Matrices, definitions and requirements name toolchains too; includes may define
    them.
    """
    matrix = {"matrix": [["$mine"], ["%gnu"]]}
    more = {
        "definitions": [{"mine": ["a", "b"]}],
        "packages": {"c": {"require": "%gnu"}},
    }
    assert required_texts([matrix, "c"], {"gnu": GNU}, **more) == [
        f"{name} {GNU}" for name in "abc"
    ]

    files = {"/t": {"toolchains.yaml": b"toolchains: {gnu: '%gcc@12~x'}"}}
    around = Surroundings(open=files.get, parse=parser_of("0.23"))
    text = b"spack: {specs: [a %gnu +y], include: [/t]}"
    found = read_environment(text, "/e/spack.yaml", surroundings=around)
    (spec,) = found.specs
    assert required_text(spec) == "a +y ~x %gcc@12"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("toolchain", "said"),
    [
        ("%gcc ^mpi", "expected '%' alone in a toolchain"),
        ([{"when": "%c"}], "expected the key spec:"),
        ([{"spec": "+a"}, {"spec": "~a"}], "exclude each other"),
        (
            [{"spec": f"%p{number}"} for number in range(400)],
            "more than 1,000 characters",
        ),
    ],
)
def test_what_is_not_a_toolchain(toolchain: Any, said: str) -> None:
    """A toolchain that cannot be read is left out with a note; only specs that name it
    fail.
    """
    text = json.dumps(
        {"spack": {"specs": ["b", "a %x"], "toolchains": {"x": toolchain}}}
    )
    found = read_environment(text.encode(), "-")

    assert [user_spec.error is None for user_spec in found.specs] == [True, False]
    assert str(found.specs[1].error).startswith("the toolchain x cannot be read: ")
    assert said in str(found.specs[1].error)
    assert found.notes[0].startswith("toolchains: x is left out, line 1: ")
    with pytest.raises(UnreadableEnvironment, match="expected toolchains: "):
        required_texts(["a"], [])


def test_a_toolchain_that_does_not_fit() -> None:
    """A spec that contradicts its toolchain is told, and the others are read."""
    found = required_texts(["a +x %no", "b"], {"no": "~x"})
    assert "exclude each other" in found[0]
    assert found[1] == "b"
