"""sources.indexes.spellings: nodes that say different things are never taken for one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from spack_cache_db.sources.columns import Texts
from spack_cache_db.sources.indexes.spack_json import SpecNode
from spack_cache_db.sources.indexes.spellings import Spellings
from tests.indexes import edge, hash_of, node

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
