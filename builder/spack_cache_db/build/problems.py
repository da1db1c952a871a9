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
    found = [
        (number, problem)
        for number, document in enumerate(merged.documents, start=1)
        for problem in document.problems
    ]
    between = [each for difference in merged.differences for each in _differing(merged, difference)]
    between += _other_dependencies(merged)
    between += _other_records(merged)
    return sorted([*found, *sorted(between)], key=itemgetter(0))


def _differing(merged: Merged, difference: Difference) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of documents that contradict what is stored, with what they say."""
    column, names = difference.column, ("document", "spec", difference.column)
    rows = zip(difference.said.rows(*names), difference.stored.rows(*names), strict=True)
    for (document, spec, number), (other, _, other_number) in rows:
        dag_hash = merged.texts.hashes.things[spec - 1]
        said, stored = (_value(merged, column, each) for each in (number, other_number))
        what = differing(said, stored) if column == "configuration" else f"{said}, not {stored}"
        path = merged.documents[other - 1].path
        message = f"the spec {dag_hash} has another {column} here than in {path}: {what}"
        yield document, Problem(f"two_{column}s", message, dag_hash, json.dumps(said))


def _value(merged: Merged, column: str, number: int) -> Any:
    """Return what the number of a column means: a text, or a configuration as an object."""
    texts = merged.texts
    if column == "configuration":
        return texts.configurations.things[number - 1]._asdict()
    return getattr(texts, str(TABLES["listings"][column].of)).things[number - 1]


def differing(said: dict[str, Any], stored: dict[str, Any]) -> str:
    """Return in words in what two configurations differ, with what each says."""
    return "; ".join(
        f"{column} {_words(said[column], stored[column])}, not {_words(stored[column], value)}"
        for column, value in said.items()
        if value != stored[column]
    )


def _words(value: Any, other: Any) -> str:
    """Return a value; of variants, those that the other does not have."""
    if not isinstance(value, tuple):
        return str(value)
    return " ".join(each for each in value if each not in other) or "without"


def _other_dependencies(merged: Merged) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of documents that say otherwise of a spec's dependencies than another.

    The value is a list of its edges: the hash of each, and how it is used.
    """
    texts, (records, edges) = merged.texts, merged.other_dependencies
    said: dict[tuple[int, int], list[list[Any]]] = defaultdict(list)
    for document, spec, dependency, use in edges.rows("document", "spec", "dependency", "use"):
        edge = [texts.hashes.things[dependency - 1], *texts.uses.things[use - 1]]
        said[document, spec].append(edge)
    for document, spec in records.rows("document", "spec"):
        dag_hash = texts.hashes.things[spec - 1]
        message = f"the spec {dag_hash} has other dependencies here"
        value = json.dumps(sorted(said[document, spec]))
        yield document, Problem("two_dependencies", message, dag_hash, value)


def _other_records(merged: Merged) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of indexes whose record of a spec says otherwise than the first one.

    The table `records` has what each of them says. What an index does not say contradicts nothing.
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
    for (document, spec, *here), (other, _, *there) in rows:
        if differences := "; ".join(_contradictions(values(*here), values(*there))):
            dag_hash, path = texts.hashes.things[spec - 1], merged.documents[other - 1].path
            message = f"the spec {dag_hash} has another record here than in {path}: {differences}"
            yield document, Problem("two_records", message, dag_hash)


def _node_values(node: NodeFacts) -> dict[str, Any]:
    """Return what a node says beside its configuration, in words; None where it does not say."""
    parameters = json.loads(node.parameters)
    return {
        "namespace": node.namespace,
        "package hash": node.package_hash,
        "external": node.external or "none",
        **{name: parameters.get(name, []) for name in sorted(FLAG_NAMES)},
        # Their first characters stand in the configuration, which is compared by itself.
        "patches of the variant": parameters.get("patches"),
    }


def _contradictions(said: dict[str, Any], stored: dict[str, Any]) -> Iterator[str]:
    for name, value in said.items():
        if None not in (value, stored[name]) and value != stored[name]:
            words = (
                " ".join(each) if isinstance(each, list) else each for each in (value, stored[name])
            )
            yield "{} {}, not {}".format(name, *(each or "none" for each in words))
