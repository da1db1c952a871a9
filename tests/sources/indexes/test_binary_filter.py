"""Filters of mirrors: which records of an index satisfy a spec, as Spack 1.2 says."""

import gzip
import json
from typing import Any

import pytest

from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.filters import BinaryFilter, Graph, parse_filter
from spack_cache_db.sources.indexes.index_json import Installs
from tests.indexes import edge, hash_of, index, node, old_node, record
from tests.paths import DATA

OLD = old_node("old", "7", "lib")
"""A node from before Spack 1.0, which names one compiler."""

NODES: dict[str, dict[str, Any]] = {
    "app": node("app", edge("mid", "link"), edge("tool", "build"), version="2.1"),
    "mid": node("mid", edge("lib", "run", virtuals=("mpi",)), edge("tool", "build")),
    "lib": node("lib", edge("gcc", "build", virtuals=("c",)), version="1.4.2"),
    "tool": node("tool", edge("gcc", "build", virtuals=("c", "cxx"))),
    "gcc": node("gcc", version="13.2.0"),
    "gone": node("gone", {"name": "absent", "hash": "z" * 32, "parameters": {
        "deptypes": ["link"], "virtuals": ["blas"]}}),
    "old": OLD,
}  # fmt: skip


RECORDS = Installs(index(*map(record, NODES.values())))


@pytest.mark.parametrize(
    ("include", "exclude", "left"),
    [
        ((), (), ()),
        (("app", "lib"), (), ("mid", "tool", "gcc", "gone", "old")),
        ((), ("%gcc", "gone"), ("lib", "tool", "gone", "old")),
        (("%gcc",), ("^lib",), ("app", "mid", "gcc", "gone", "old")),
    ],
)
def test_what_is_left_out(
    include: tuple[str, ...], exclude: tuple[str, ...], left: tuple[str, ...]
) -> None:
    """A binary stays if some spec of `include_binary` fits, or none is there, and none
    excludes.
    """
    given = BinaryFilter(parse_filter(include), parse_filter(exclude))

    assert given.left_out(RECORDS) == {*map(hash_of, left)}


def test_a_version_of_a_virtual_package() -> None:
    """No index knows which version of a virtual package something provides."""
    for spec in ("^mpi@3", "mpi@3"):
        given = BinaryFilter(parse_filter([spec]))
        with pytest.raises(
            IndexFault, match="mpi@3 has a version of a virtual package"
        ):
            given.left_out(RECORDS)


ANSWERS: dict[str, list[tuple[str, list[int]]]] = json.loads(
    gzip.decompress((DATA / "satisfies_1.2.json.gz").read_bytes())
)["answers"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_answers_are_those_of_spack(name: str) -> None:
    """Of two real indexes, one from before Spack 1.0, the binaries that Spack 1.2
    finds.
    """
    records = Installs(gzip.decompress((DATA / "indexes" / name).read_bytes()))
    known = Graph(records)
    binaries = sorted(each for each in records if records.entry(each).is_binary)
    wrong = []
    for text, places in ANSWERS[name]:
        (query,) = parse_filter([text])
        nodes = ((each, known.node(each)) for each in binaries)
        found = [each for each, node in nodes if node and known.satisfies(node, query)]
        if found != [binaries[place] for place in places]:
            wrong.append(text)

    assert wrong == []
