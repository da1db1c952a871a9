"""environments.requirements: what `packages:` asks of a spec beside what it says itself."""

from __future__ import annotations

import json

import pytest

from spack_cache_db.environments import Limits, PackageRules, required_query, ways
from spack_cache_db.environments.manifest import read_manifest
from spack_cache_db.spack.constraints import SpecQuery, spec_text

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
        ("a", "{a: {require: [{spec: '@1'}]}}", "a@1"),
        ("a", "{a: {require: a@1}}", "a@1"),
        ("a", "{all: {require: 'target=zen3'}}", "a target=zen3"),
        ("a", "{all: {require: '%gcc'}, a: {require: '%llvm'}}", "a %llvm"),
        ("a", "{all: {require: '%gcc'}, a: {conflict: ['%llvm']}}", "a %gcc"),
        ("a", "{all: {require: '%gcc'}, a: {require: []}}", "a %gcc"),
        ("a", "{all: {require: '+x'}}", "a"),
        ("a", "{a: {require: [{any_of: ['+x', '+y']}]}}", "a"),
        ("a", "{a: {require: [{any_of: ['+x']}, {one_of: ['@1', '@2']}]}}", "a +x"),
        ("a", "{a: {require: [{spec: '+x', when: '@2'}]}}", "a"),
        ("a+x", "{a: {require: '~x'}}", "a +x"),
        ("a", "{a: {conflict: ['+x']}}", "a"),
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
        ("a@1", "{a: {require: [{spec: '+x', when: '@2'}]}}", ["a@1"]),
    ],
)
def test_the_ways_to_satisfy_a_requirement(spec: str, packages: str, expected: list[str]) -> None:
    """Each way has one option of each group; what provides a virtual package replaces its name."""
    assert [spec_text(query) for query in ways(*read(spec, packages))] == expected


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
