"""Numbered graph → rows of the tables that only indexes fill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from spack_cache_db.build.arrays import numbers, rows_of
from spack_cache_db.build.graph import Records
from spack_cache_db.build.ids import Numbered

Rows = Iterable[tuple[Any, ...]]


def graph_rows(numbered: Numbered) -> Iterator[tuple[str, Rows]]:
    """Yield (table name, rows) of everything that is known from indexes alone."""
    graph = numbered.graph
    ids = mirror_ids(numbered)
    places = numbers(ids.get(at, 0) for at in range(len(numbered.documents)))
    records = graph.records._replace(document=places[graph.records.document])
    yield "mirrors", _mirror_rows(numbered, ids)
    descriptions = {text: at for at, text in enumerate(_distinct(n.target for n in graph.nodes), 1)}
    yield "target_descriptions", [(at, text) for text, at in descriptions.items()]
    yield (
        "nodes",
        [
            (at, *node._replace(target=descriptions.get(node.target)))  # type: ignore[arg-type]
            for at, node in enumerate(graph.nodes, start=1)
        ],
    )
    yield from _record_rows(records, graph.rests, graph.old_hashes)
    yield from _dependency_rows(numbered)


def mirror_ids(numbered: Numbered) -> dict[int, int]:
    """Return the id of each document that is an index, by its place."""
    indexes = (at for at, document in enumerate(numbered.documents) if document.index_facts)
    return {at: mirror for mirror, at in enumerate(indexes, start=1)}


def _mirror_rows(numbered: Numbered, ids: dict[int, int]) -> Rows:
    names, size = numbered.names, len(numbered.documents)
    recorded = np.bincount(numbered.graph.records.document, minlength=size).tolist()
    for at, mirror in ids.items():
        document = numbered.documents[at]
        facts = document.index_facts
        if facts is not None:
            yield (
                mirror,
                names.releases[document.release],
                names.stacks[facts.stack],
                document.path,
                document.sha256,
                facts.format,
                facts.url,
                recorded[at],
                facts.binaries,
            )


def _record_rows(
    records: Records, rests: list[str], old_hashes: list[str]
) -> Iterator[tuple[str, Rows]]:
    said = [None, *range(int(records.ref_count.max(initial=0)))]
    others = [None, *rests]
    yield (
        "records",
        (
            (spec, mirror, node, said[ref_count], (None, 0, 1)[is_listed], others[rest])
            for spec, mirror, node, ref_count, is_listed, rest in rows_of(
                records.spec,
                records.document,
                records.node,
                records.ref_count,
                records.in_buildcache,
                records.rest,
            )
        ),
    )
    old = records.where((records.full_hash > 0) | (records.build_hash > 0))
    texts = [None, *old_hashes]
    columns = (old.spec, old.document, old.full_hash, old.build_hash)
    yield (
        "old_hashes",
        ((*key, texts[full], texts[build]) for *key, full, build in rows_of(*columns)),
    )
    spliced = records.where(records.build_spec > 0)
    yield "splices", rows_of(spliced.spec, spliced.document, spliced.build_spec)


def _dependency_rows(numbered: Numbered) -> Iterator[tuple[str, Rows]]:
    uses, edges = numbered.graph.uses, numbered.graph.edges
    types = {text: at for at, text in enumerate(_distinct(",".join(u.types) for u in uses), 1)}
    virtuals = {
        text: at for at, text in enumerate(_distinct(",".join(u.virtuals) for u in uses), 1)
    }
    yield "dependency_types", [(at, text) for text, at in types.items()]
    yield "dependency_virtuals", [(at, text) for text, at in virtuals.items()]
    use = edges.use - 1
    columns = (
        edges.spec,
        edges.dependency,
        numbers(types[",".join(each.types)] for each in uses)[use],
        numbers(virtuals[",".join(each.virtuals)] for each in uses)[use],
        np.array([each.direct for each in uses], dtype=object)[use],
    )
    yield "dependencies", rows_of(*columns)


def _distinct(texts: Iterable[str | None]) -> list[str]:
    return sorted({text for text in texts if text is not None})
