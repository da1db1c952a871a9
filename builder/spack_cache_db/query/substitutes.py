"""What configurations have in place of what a condition asks of them, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spack_cache_db.query.candidates import Candidate, Candidates
from spack_cache_db.query.catalogue import specs_in_scope
from spack_cache_db.query.conditions import (
    COLUMNS,
    PLACES,
    Condition,
    Conditions,
    readable_variants,
)
from spack_cache_db.query.dependency_graph import Edge, read_needs, read_nodes, told_of
from spack_cache_db.query.questions import parts_of
from spack_cache_db.spack.constraints import SpecQuery, spec_text
from spack_cache_db.spack.targets import runs_on
from spack_cache_db.spack.versions import version_key

_MOST_COMPARED = 100
_MOST_NODES = 2_000
_MOST_TOLD = 3


def instead_of(candidates: Candidates, condition: Condition, rows: Iterable[Candidate]) -> str:
    """Return what configurations have in place of what a condition asks, in words."""
    if condition.kind in PLACES:
        return ""
    column, asks = COLUMNS[condition.kind], condition.asked
    keys = dict.fromkeys(row.key(column) for row in rows)
    words = [candidates.lookups.words[column][key] for key in keys]
    if condition.kind == "variant":
        found = (each.text for texts in words for each in readable_variants(texts, asks.name))
        return _there_are(found) or f"none has a variant {asks.name}"
    if condition.kind == "version":
        return f"newest {words[0]}"
    if column == "target":
        running = [each for each in words if condition.kind == "target" and runs_on(each, asks)]
        if running:
            verb = "runs" if len(running) == 1 else "run"
            return f"{_listed(running)} {verb} on {asks}"
    return _there_are(words)


def part_of(query: SpecQuery, condition: Condition) -> SpecQuery:
    """Return the part of a query that a condition of the kind `specs` stands for."""
    parts = (each for each in parts_of(query) if spec_text(each) == condition.text)
    return next(parts, SpecQuery())


def needed_instead(
    candidates: Candidates, part: SpecQuery, rows: Sequence[Candidate], places: Conditions
) -> str:
    """Return which versions configurations need of the package that a query asks for.

    Args:
        candidates: the configurations of the file.
        part: one of `parts_of`.
        rows: the configurations.
        places: which of their specs count.
    """
    conn, edges = candidates.conn, part.dependencies
    if len(edges) != 1 or edges[0].node.name is None:
        return ""
    name, wanted = edges[0].node.name, {*(edges[0].virtuals or (edges[0].node.name,))}
    specs = specs_in_scope(conn, [row.id for row in rows[:_MOST_COMPARED]], places).values()
    roots = told_of(conn, [spec.id for some in specs for spec in some][:_MOST_COMPARED])
    graph = read_needs(conn, candidates.lookups, roots, _MOST_NODES)
    nodes = read_nodes(conn, graph.edges)
    used: Iterable[list[Edge]] = graph.edges.values()
    if edges[0].direct:
        used = (graph.edges[root] for root in roots if root in graph.edges)
    found = {
        node.version if node.package == name else f"{node.package} {node.version}"
        for some in used
        for edge in some
        for node in (nodes[edge.dependency],)
        if not wanted.isdisjoint((node.package, *edge.virtuals))
    }
    newest_first = sorted(found, key=lambda each: version_key(each.split()[-1]), reverse=True)
    return _there_are(newest_first) or (f"none needs {', '.join(sorted(wanted))}" if roots else "")


def _there_are(words: Iterable[str]) -> str:
    found = [*dict.fromkeys(words)]
    if not found:
        return ""
    return f"there {'is' if len(found) == 1 else 'are'} {_listed(found)}"


def _listed(words: Sequence[str]) -> str:
    if len(words) > _MOST_TOLD + 1:
        return f"{', '.join(words[:_MOST_TOLD])} and {len(words) - _MOST_TOLD} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
