"""query.stored.reach: sets of bits have what a search finds."""

from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.query.stored.graph import Edge, Needs
from spack_cache_db.query.stored.reach import Reach

SPECS = 9
EDGES = st.lists(
    st.tuples(st.integers(0, SPECS - 1), st.sampled_from(["build", "link", "run"])),
    max_size=4,
)
GRAPHS = st.lists(EDGES, min_size=SPECS, max_size=SPECS)
"""The edges of each spec: the number of another spec, and the type."""


def graph_of(edges_of_specs: list[list[tuple[int, str]]]) -> Needs:
    """Return drawn edges as a graph."""
    edges = {}
    for spec, pairs in enumerate(edges_of_specs):
        edges[spec] = [Edge(other, (kind,), ()) for other, kind in pairs]
    return Needs(edges, frozenset())


def without_cycles(graph: Needs) -> Needs:
    """Return a graph with only the edges that lead to a spec of a larger number."""
    edges = {}
    for spec, edges_of_spec in graph.edges.items():
        edges[spec] = [edge for edge in edges_of_spec if edge.dependency > spec]
    return Needs(edges, frozenset())


def searched(graph: Needs, root: int) -> set[int]:
    """Return a spec and its run-time dependencies, one step after the other."""
    found = {root}
    ahead = [root]
    while ahead:
        for edge in graph.edges[ahead.pop()]:
            if edge.is_run_time and edge.dependency not in found:
                found.add(edge.dependency)
                ahead.append(edge.dependency)
    return found


@given(GRAPHS)
def test_reach_is_what_a_search_finds(
    edges_of_specs: list[list[tuple[int, str]]],
) -> None:
    """Without cycles, a spec reaches what a search over its edges finds."""
    graph = without_cycles(graph_of(edges_of_specs))
    reach = Reach(graph)

    for root in graph.edges:
        expected = searched(graph, root)
        assert set(reach.members(reach.run_time(root))) == expected
        for edge in graph.edges[root]:
            expected |= searched(graph, edge.dependency)
        assert set(reach.members(reach.used(root))) == expected


@given(GRAPHS)
def test_a_cycle_ends(edges_of_specs: list[list[tuple[int, str]]]) -> None:
    """In any graph, a spec reaches itself, and uses all that it reaches."""
    graph = graph_of(edges_of_specs)
    reach = Reach(graph)

    for root in graph.edges:
        run_time = set(reach.members(reach.run_time(root)))
        assert root in run_time
        assert run_time <= set(reach.members(reach.used(root)))


def test_specs_that_not_all_sets_have() -> None:
    """Of each set, the specs are returned that another set does not have."""
    graph = graph_of([[(2, "link")], [(2, "link"), (3, "run")], [], []])
    reach = Reach(graph)
    sets = [reach.run_time(0), reach.run_time(1)]
    assert reach.not_in_all(sets) == [(0,), (1, 3)]
