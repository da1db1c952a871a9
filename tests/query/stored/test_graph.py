"""What specs need, held against the index itself."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.open.lookups import read_lookups
from spack_cache_db.query.stored.graph import (
    Edge,
    read_needs,
    read_nodes,
)
from tests.conftest import Build
from tests.graphs import installs, used
from tests.indexes import edge, hash_of, index, node, record

HASHES = sorted(installs())[::20]


def ids(conn: sqlite3.Connection) -> dict[str, int]:
    """Return the ids of all specs by their hashes."""
    return dict(conn.execute("SELECT hash, id FROM specs"))


@pytest.mark.parametrize("dag_hash", HASHES)
def test_a_graph_has_what_a_spec_needs(
    dag_hash: str, real_index: sqlite3.Connection
) -> None:
    """Of the spec all edges, of what it needs those of run time, with types and
    virtuals.
    """
    ids_of_hashes = ids(real_index)
    hashes = {spec: other for other, spec in ids_of_hashes.items()}
    graph = read_needs(read_lookups(real_index), [ids_of_hashes[dag_hash]], 10_000)

    assert {hashes[spec] for spec in graph.edges} == used(dag_hash)
    assert graph.missing == frozenset()
    for spec, edges in graph.edges.items():
        spec_hash = hashes[spec]
        expected = set()
        for dependency in installs()[spec_hash]["spec"].get("dependencies", []):
            types = set(dependency["parameters"]["deptypes"])
            virtuals = set(dependency["parameters"]["virtuals"])
            if spec_hash == dag_hash or types & {"link", "run"}:
                expected.add(_edge_as_text(dependency["hash"], types, virtuals))
        found = {
            _edge_as_text(hashes[edge.dependency], edge.types, edge.virtuals)
            for edge in edges
        }
        assert found == expected


def _edge_as_text(dag_hash: str, types: Iterable[str], virtuals: Iterable[str]) -> str:
    return f"{dag_hash} {sorted(types)} {sorted(virtuals)}"


def test_what_is_too_much_is_not_read(real_index: sqlite3.Connection) -> None:
    """With little room the first has precedence, and no edge leads to what was not
    read.
    """
    by_size = sorted(installs(), key=lambda dag_hash: (len(used(dag_hash)), dag_hash))
    ids_of_hashes = ids(real_index)
    small = ids_of_hashes[by_size[0]]
    large = ids_of_hashes[by_size[-1]]
    graph = read_needs(read_lookups(real_index), [small, large], 5)

    assert graph.missing == {large}
    for edges in graph.edges.values():
        assert {edge.dependency for edge in edges} <= graph.edges.keys()
    assert read_needs(read_lookups(real_index), [large], 10_000).missing == frozenset()


def test_an_external_of_one_mirror_may_be_a_binary_of_another(tmp_path: Path) -> None:
    """A spec that some release lists is a binary, whatever another mirror calls it."""
    for name, external in (("e4s", None), ("hep", {"path": "/usr"})):
        gcc = node("gcc", external=external) if external else node("gcc")
        (tmp_path / "develop" / name).mkdir(parents=True)
        data = index(record(gcc, is_binary=not external), record(node(name)))
        (tmp_path / "develop" / name / "index.json").write_bytes(data)
    build(tmp_path, tmp_path / "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as conn:
        (gcc_node,) = read_nodes(conn, [ids(conn)[hash_of("gcc")]]).values()

    assert (gcc_node.kind, gcc_node.external) == ("binary", None)


def test_several_ways_to_need_one_thing_are_one_edge(built: Build) -> None:
    """Where an index has two edges between two specs, their types and virtuals are
    joined.
    """
    to_build = edge("lib", "build", virtuals=("x",))
    to_link = edge("lib", "link", virtuals=("y",))
    records = [record(node("main", to_build, to_link)), record(node("lib"))]
    conn = built(a=index(*records))
    main = ids(conn)[hash_of("main")]
    lib = ids(conn)[hash_of("lib")]
    (found,) = read_needs(read_lookups(conn), [main], 10).edges[main]

    assert found == Edge(lib, ("build", "link"), ("x", "y"))
    assert found.is_run_time
