"""environments.requirements: what `packages:` asks of a spec beside what it says itself."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.environments import Limits
from spack_cache_db.environments.manifest import read_manifest
from spack_cache_db.spack.constraints import spec_text
from spack_cache_db.spack.parser import parse_query
from tests.configurations import configuration
from tests.matching import matches


def alternatives(spec: str, packages: str) -> list[tuple[str, ...]]:
    """Return each alternative of a spec: what is asked, and what it must not be."""
    text = f"spack: {{specs: ['{spec}'], packages: {packages}}}"
    (found,) = read_manifest(text, "-", Limits(10)).specs
    return [
        (spec_text(each.query), *(spec_text(out) for out in each.without))
        for each in found.alternatives
    ]


@pytest.mark.parametrize(
    ("spec", "packages", "expected"),
    [
        ("a", "{a: {require: '+x'}}", [("a +x",)]),
        ("a", "{a: {require: ['+x', '%gcc@13']}}", [("a +x %gcc@13",)]),
        ("a", "{a: {require: [{spec: '@1'}]}}", [("a@1",)]),
        ("a", "{all: {require: 'target=zen3'}}", [("a target=zen3",)]),
        ("a", "{all: {require: '%gcc'}, a: {require: '%llvm'}}", [("a %llvm",)]),
        ("a", "{all: {require: '+x'}}", [("a +x",), ("a", "x=*")]),
        ("a~x", "{all: {require: '~x'}}", [("a ~x",)]),
        ("a", "{a: {require: [{any_of: ['+x', '+y']}]}}", [("a +x",), ("a +y",)]),
        ("a", "{a: {require: [{one_of: ['+x', '+y']}]}}", [("a +x", "+y"), ("a +y", "+x")]),
        ("a", "{a: {require: [{one_of: ['@1', '@2']}]}}", [("a@1",), ("a@2",)]),
        ("a@2", "{a: {require: [{one_of: ['@1', '@2']}]}}", [("a@2",)]),
        ("a", "{a: {require: [{spec: '+x', when: '@2'}]}}", [("a", "@2"), ("a@2 +x",)]),
        ("a@2", "{a: {require: [{spec: '+x', when: '@2'}]}}", [("a@2 +x",)]),
        ("a@1", "{a: {require: [{spec: '+x', when: '@2'}]}}", [("a@1", "@2")]),
        ("a", "{a: {conflict: ['+x']}}", [("a", "+x")]),
        ("a", "{all: {conflict: [{spec: '+x', when: '@2'}]}}", [("a", "@2 +x")]),
        ("a~x", "{all: {conflict: ['+x']}}", [("a ~x", "+x")]),
        ("a", "{b: {require: '+x'}, a: {target: [zen3]}}", [("a",)]),
        ("a", "{a: {require: , conflict: ~, externals: , buildable: null}}", [("a",)]),
        ("mpi", "{mpi: {require: [b@4, '+x']}}", [("b@4 +x",)]),
        ("mpi", "{mpi: {require: [{one_of: [b, c+x]}]}}", [("b",), ("c +x",)]),
        ("mpi", "{mpi: {require: [{spec: b, when: '@2'}]}}", [("mpi", "@2"), ("b@2",)]),
    ],
)
def test_the_ways_to_satisfy_a_requirement(
    spec: str, packages: str, expected: list[tuple[str, ...]]
) -> None:
    """A package's own requirements take the place of those under `all`; groups are alternatives."""
    assert alternatives(spec, packages) == expected


GROUPS = ", ".join(f"{{any_of: ['+x{n}', '+y{n}']}}" for n in range(9))
MANY = f"{{a: {{require: [{GROUPS}]}}}}"


@pytest.mark.parametrize(
    ("spec", "packages", "said"),
    [
        ("a+x", "{a: {require: '~x'}}", "the requirement on line 1 excludes it"),
        ("a+x", "{a: {conflict: ['+x']}}", "the requirement on line 1 excludes it"),
        (
            "a",
            MANY,
            "more than 64 cases",
        ),
    ],
)
def test_what_cannot_be_satisfied(spec: str, packages: str, said: str) -> None:
    """A spec against its own requirement, and one with very many cases, say why."""
    text = f"spack: {{specs: ['{spec}'], packages: {packages}}}"
    (found,) = read_manifest(text, "-", Limits(10)).specs

    assert said in str(found.error)


OPTIONS = st.sampled_from(["+x", "~x", "+y", "@1", "@2", "+x +y"])
CONCRETE = [
    configuration(package="a", version=version, variants=variants)
    for version, variants in itertools.product(
        ("1", "2"), (("+x", "+y"), ("+x", "~y"), ("~x", "+y"), ("~x", "~y"))
    )
]


@given(st.lists(OPTIONS, min_size=1, max_size=3), st.sampled_from(["one_of", "any_of"]), OPTIONS)
def test_groups_hold_as_spack_says(options: list[str], group: str, when: str) -> None:
    """A binary is among the alternatives if and only if it satisfies the requirement."""
    listed = ", ".join(f"'{each}'" for each in options)
    required = f"{{{group}: [{listed}], when: '{when}'}}"
    text = f"spack: {{specs: [a], packages: {{a: {{require: [{required}]}}}}}}"
    (found,) = read_manifest(text, "-", Limits(10)).specs
    queries = [parse_query(f"a {each}") for each in options]
    condition = parse_query(f"a {when}")

    for each in CONCRETE:
        count = sum(matches(query, each, "x") for query in queries)
        holds = count == 1 if group == "one_of" else count >= 1
        expected = holds or not matches(condition, each, "x")
        assert expected == any(
            matches(way.query, each, "x")
            and not any(matches(out, each, "x") for out in way.without)
            for way in found.alternatives
        )


NOT, YES = {"buildable": False}, {"buildable": True}


@pytest.mark.parametrize(
    ("packages", "is_buildable"),
    [
        ({}, True),
        ({"cray-mpich": NOT}, False),
        ({"all": NOT}, False),
        ({"mpi": NOT}, False),
        ({"blas": NOT}, True),
        ({"mpi": NOT, "cray-mpich": YES}, True),
        ({"all": NOT, "mpi": YES}, True),
        ({"own-api": NOT}, True),
        ({"own-api": NOT, "all": {"providers": {"own-api": ["cray-mpich@8", "x"]}}}, False),
    ],
)
def test_a_virtual_package_that_is_not_built(
    packages: dict[str, dict[str, object]], is_buildable: bool
) -> None:
    """What provides a virtual package that is not buildable is not, unless it says so itself."""
    external = {"externals": [{"spec": "cray-mpich@8.1", "prefix": "/opt"}]}
    own = packages | {"cray-mpich": packages.get("cray-mpich", {}) | external}
    text = json.dumps({"spack": {"specs": ["cray-mpich"], "packages": own}})
    (found,) = read_manifest(text, "-", Limits(10)).specs

    assert (found.external, found.is_buildable) == ("cray-mpich@8.1", is_buildable)
