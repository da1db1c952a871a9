"""Contradictions within and between documents, with the values that no other table stores."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from spack_cache_db.build.frames import group_starts
from spack_cache_db.build.merge import Difference, Merged
from spack_cache_db.records import Problem
from spack_cache_db.sources.columns import TABLES, NodeFacts
from spack_cache_db.spack.normal_forms import FLAG_NAMES


def problems(merged: Merged) -> list[tuple[int, Problem]]:
    """Return (number of the document, problem), in the order of the documents."""
    within = [
        (number, problem)
        for number, document in enumerate(merged.documents, start=1)
        for problem in document.problems
    ]
    between = [
        problem for difference in merged.differences for problem in _differing(merged, difference)
    ]
    between += _other_dependencies(merged)
    between += _other_records(merged)
    return sorted([*within, *sorted(between)], key=itemgetter(0))


def _differing(merged: Merged, difference: Difference) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of documents that contradict the stored values, with their values."""
    column, names = difference.column, ("document", "spec", difference.column)
    rows = zip(difference.stated.rows(*names), difference.stored.rows(*names), strict=True)
    for (document, spec, number), (other, _, other_number) in rows:
        dag_hash = merged.texts.hashes.things[spec - 1]
        stated, stored = (_value(merged, column, key) for key in (number, other_number))
        what = differing(stated, stored) if column == "configuration" else f"{stated}, not {stored}"
        path = merged.documents[other - 1].path
        message = f"the spec {dag_hash} has another {column} here than in {path}: {what}"
        yield document, Problem(f"two_{column}s", message, dag_hash, json.dumps(stated))


def _value(merged: Merged, column: str, number: int) -> Any:
    """Return the value behind a number of a column: a text, or a configuration as an object."""
    texts = merged.texts
    if column == "configuration":
        return texts.configurations.things[number - 1]._asdict()
    return getattr(texts, str(TABLES["listings"][column].of)).things[number - 1]


def differing(stated: dict[str, Any], stored: dict[str, Any]) -> str:
    """Return the differences between two configurations in words, with both values."""
    return "; ".join(
        f"{column} {_words(stated[column], stored[column])}, not {_words(stored[column], value)}"
        for column, value in stated.items()
        if value != stored[column]
    )


def _words(value: Any, other: Any) -> str:
    """Return a value as text; variants without those that are in `other`."""
    if not isinstance(value, tuple):
        return str(value)
    return " ".join(variant for variant in value if variant not in other) or "without"


def _other_dependencies(merged: Merged) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of documents whose dependencies of a spec differ from the stored ones.

    The value is a list of edges: the hash, the types and the virtual packages of each.
    """
    texts, (records, edges) = merged.texts, merged.other_dependencies
    edges_stated: dict[tuple[int, int], list[list[Any]]] = defaultdict(list)
    for document, spec, dependency, use in edges.rows("document", "spec", "dependency", "use"):
        edge = [texts.hashes.things[dependency - 1], *texts.uses.things[use - 1]]
        edges_stated[document, spec].append(edge)
    for document, spec in records.rows("document", "spec"):
        dag_hash = texts.hashes.things[spec - 1]
        message = f"the spec {dag_hash} has other dependencies here"
        value = json.dumps(sorted(edges_stated[document, spec]))
        yield document, Problem("two_dependencies", message, dag_hash, value)


def _other_records(merged: Merged) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of indexes whose record of a spec contradicts the first record.

    The table `records` has all records. A missing value contradicts nothing.
    """
    records, texts = merged.records, merged.texts
    records = records.where(np.lexsort((records["document"], records["spec"])))
    starts = group_starts(records["spec"])
    first = records.where(np.repeat(starts, np.diff(np.append(starts, len(records)))))
    odd = (records["node"] != first["node"]) | (records["build_spec"] != first["build_spec"])
    nodes = lru_cache(maxsize=4096)(lambda number: _node_values(texts.nodes.things[number - 1]))

    def values(node: int, build_spec: int) -> dict[str, Any]:
        spliced = texts.hashes.things[build_spec - 1] if build_spec else None
        return nodes(node) | {"build_spec": spliced}

    names = ("document", "spec", "node", "build_spec")
    rows = zip(records.where(odd).rows(*names), first.where(odd).rows(*names), strict=True)
    for (document, spec, *values_here), (other, _, *values_there) in rows:
        if differences := "; ".join(_contradictions(values(*values_here), values(*values_there))):
            dag_hash, path = texts.hashes.things[spec - 1], merged.documents[other - 1].path
            message = f"the spec {dag_hash} has another record here than in {path}: {differences}"
            yield document, Problem("two_records", message, dag_hash)


def _node_values(node: NodeFacts) -> dict[str, Any]:
    """Return a node's values that are not in its configuration, by name; None if missing."""
    parameters = json.loads(node.parameters)
    return {
        "namespace": node.namespace,
        "package hash": node.package_hash,
        "external": node.external or "none",
        **{name: parameters.get(name, []) for name in sorted(FLAG_NAMES)},
        # Their first characters are in the configuration, which `_differing` compares.
        "patches of the variant": parameters.get("patches"),
    }


def _contradictions(stated: dict[str, Any], stored: dict[str, Any]) -> Iterator[str]:
    for name, value in stated.items():
        if None not in (value, stored[name]) and value != stored[name]:
            words = (
                " ".join(item) if isinstance(item, list) else item for item in (value, stored[name])
            )
            yield "{} {}, not {}".format(name, *(text or "none" for text in words))
