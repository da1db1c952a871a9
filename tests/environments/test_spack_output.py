"""What commands of Spack print, as lists of specs: 0.17 to 1.2."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spack_cache_db.environments import Environment, Limits, UnreadableEnvironment
from spack_cache_db.environments.formats import read_environment
from tests.indexes import edge, hash_of, node, old_node


def test_typed_lines_are_no_output() -> None:
    """A list may have commands among its specs; what stands around them is told once."""
    text = "# mine\n$ spack install -j 8 hdf5\n- 'zlib +pic'\n`spack load bzip2`\n"
    text += "spack install -j 8 x y@1 %gcc\n"
    found = read_environment(text.encode(), "-")

    assert [(each.text, each.line) for each in found.specs] == [
        *(("hdf5", 2), ("zlib +pic", 3), ("bzip2", 4), ("x", 5), ("y@1 %gcc", 5)),
    ]
    assert found.notes == ("skipped: install -j 8; load",)


def test_headings_without_end_are_too_much() -> None:
    """Lines that are no specs are bounded as well."""
    with pytest.raises(UnreadableEnvironment, match="has more than 50 lines that are not"):
        read_environment(b"[+]  ^zlib\n" * 100, "x", Limits(specs=10, nodes=50))


def found_json(data: Any) -> Environment:
    """Return what is read from JSON."""
    return read_environment(json.dumps(data).encode(), "-")


def test_nodes_in_json() -> None:
    """`spack find --json` and `spack spec --json` give nodes, which are known by their hashes."""
    hdf5 = node("hdf5", edge("zlib", "link"), edge("gcc", "build", virtuals=("c",)))
    nodes = [hdf5, node("zlib"), old_node("bzip2", "7")]
    found = found_json(nodes)

    assert [(each.hash, each.is_root) for each in found.locked] == [
        (hash_of(name), True) for name in ("hdf5", "zlib", "bzip2")
    ]
    assert found.locked[0].needs == (hash_of("zlib"),)
    assert [each.configuration.compiler for each in found.locked] == ["gcc", "none", "gcc@12.2.0"]
    assert found_json({"spec": {"_meta": {"version": 5}, "nodes": nodes}}) == found
    with pytest.raises(UnreadableEnvironment, match="has 3 specs, expected at most 2"):
        read_environment(json.dumps(nodes).encode(), "-", Limits(nodes=2))
    with pytest.raises(UnreadableEnvironment, match="spec is not an object"):
        found_json([{"hash": "x"}])


PACKAGES = """
packages:
  all: {require: target=zen3}
  hdf5: {require: [{one_of: [+mpi, ~mpi]}, '@1.14:']}
  zlib: {require: '@1:', conflict: ['@2']}
  bad: {require: ['@1', '@2']}
  cray-mpich: {externals: [{spec: cray-mpich@8.1%gcc@12, prefix: /opt}, {spec: '@9', prefix: /x}]}
"""


def test_a_configuration_of_packages() -> None:
    """Of a `packages.yaml`, the specs are the ways to do what it requires, and its externals."""
    found = read_environment(PACKAGES.encode(), "packages.yaml")

    assert [(each.text, each.group, each.line) for each in found.specs] == [
        ("hdf5@1.14: +mpi", "require", 4),
        ("hdf5@1.14: ~mpi", "require", 4),
        ("zlib@1:", "require", 5),
        ("bad", "require", 6),
        ("cray-mpich@8.1%gcc@12", "externals", 0),
        ("@9", "externals", 0),
    ]
    assert found.specs[3].error
    assert [each.query and each.query.name for each in found.specs[4:]] == ["cray-mpich"] * 2
