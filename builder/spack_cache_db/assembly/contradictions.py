"""The problems that sources report of each other."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from spack_cache_db.assembly.frames import groups
from spack_cache_db.assembly.merge import Difference, Merged
from spack_cache_db.model import Problem
from spack_cache_db.sources.facts import NodeFacts
from spack_cache_db.sources.writer import DICTIONARIES
from spack_cache_db.spack.facts import FLAG_NAMES


def problems(merged: Merged) -> list[tuple[int, Problem]]:
    """Return (number of the document, problem), in the order of the documents."""
    within = [
        (number, problem)
        for number, document in enumerate(merged.documents, start=1)
        for problem in document.problems
    ]
    between = [
        problem
        for difference in merged.differences
        for problem in _differing(merged, difference)
    ]
    between += [*_other_dependencies(merged), *_other_records(merged)]
    return sorted([*within, *sorted(between)], key=itemgetter(0))


def _differing(merged: Merged, difference: Difference) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of documents that contradict the stored values."""
    column, texts = difference.column, merged.texts
    values = texts.things()[DICTIONARIES[column]]
    names = ("document", "spec", column)
    rows = zip(
        difference.stated.rows(*names), difference.stored.rows(*names), strict=True
    )
    for (document, spec, number), (other, _, other_number) in rows:
        dag_hash, path = texts.hashes.things[spec - 1], merged.documents[other - 1].path
        value, stored = values[number - 1], values[other_number - 1]
        words = f"{value}, not {stored}"
        if column == "configuration":
            value, stored = value._asdict(), stored._asdict()
            words = "; ".join(
                f"{key} {_words(part, stored[key])}, not {_words(stored[key], part)}"
                for key, part in value.items()
                if part != stored[key]
            )
        message = (
            f"the spec {dag_hash} has another {column} here than in {path}: {words}"
        )
        yield document, Problem(f"two_{column}s", message, dag_hash, json.dumps(value))


def _words(value: Any, other: Any) -> str:
    """Return a value as text; variants without those that are in `other`."""
    if not isinstance(value, tuple):
        return str(value)
    return " ".join(variant for variant in value if variant not in other) or "without"


def _other_dependencies(merged: Merged) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of documents whose dependencies of a spec differ from the
    stored ones.

    The value is a list of edges: the hash, the types and the virtual packages of each.
    """
    texts, (records, edges) = merged.texts, merged.other_dependencies
    edges_stated: dict[tuple[int, int], list[list[Any]]] = defaultdict(list)
    for document, spec, dependency, use in edges.rows(
        "document", "spec", "dependency", "use"
    ):
        edge = [texts.hashes.things[dependency - 1], *texts.uses.things[use - 1]]
        edges_stated[document, spec].append(edge)
    for document, spec in records.rows("document", "spec"):
        dag_hash = texts.hashes.things[spec - 1]
        message = f"the spec {dag_hash} has other dependencies here"
        value = json.dumps(sorted(edges_stated[document, spec]))
        yield document, Problem("two_dependencies", message, dag_hash, value)


def _other_records(merged: Merged) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of indexes whose record of a spec contradicts the first
    record.

    The table `records` has all records. A missing value contradicts nothing.
    """
    records, texts = merged.records, merged.texts
    records = records.where(np.lexsort((records["document"], records["spec"])))
    starts, group = groups(records["spec"])
    first = records.where(starts[group])
    odd = (records["node"] != first["node"]) | (
        records["build_spec"] != first["build_spec"]
    )
    nodes = lru_cache(maxsize=4096)(
        lambda number: _node_values(texts.nodes.things[number - 1])
    )

    def values(node: int, build_spec: int) -> dict[str, Any]:
        spliced = texts.hashes.things[build_spec - 1] if build_spec else None
        return nodes(node) | {"build_spec": spliced}

    names = ("document", "spec", "node", "build_spec")
    rows = zip(
        records.where(odd).rows(*names), first.where(odd).rows(*names), strict=True
    )
    for (document, spec, *stated), (other, _, *stored) in rows:
        if differences := "; ".join(_contradictions(values(*stated), values(*stored))):
            dag_hash, path = (
                texts.hashes.things[spec - 1],
                merged.documents[other - 1].path,
            )
            message = f"the spec {dag_hash} has another record here than in {path}: {differences}"
            yield document, Problem("two_records", message, dag_hash)


def _node_values(node: NodeFacts) -> dict[str, Any]:
    """Return a node's values that are not in its configuration, by name; None if
    missing.
    """
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
            values = (value, stored[name])
            words = (
                " ".join(item) if isinstance(item, list) else item for item in values
            )
            yield "{} {}, not {}".format(name, *(text or "none" for text in words))
