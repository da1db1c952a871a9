"""The problems of the input: contradictions within a document, and between two."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from spack_cache_db.assembly.merge import Merged
from spack_cache_db.assembly.merged_listings import Difference
from spack_cache_db.model import Problem
from spack_cache_db.sources.facts import NodeFacts
from spack_cache_db.sources.frames import groups
from spack_cache_db.sources.writer import DICTIONARIES, Texts
from spack_cache_db.spack.facts import FLAG_NAMES


def problems(merged: Merged) -> list[tuple[int, Problem]]:
    """Return (number of the document, problem), in the order of the documents.

    The problems within a document come first, in its own order.
    """
    within: list[tuple[int, Problem]] = []
    for number, document in enumerate(merged.documents, start=1):
        for problem in document.problems:
            within.append((number, problem))

    between: list[tuple[int, Problem]] = []
    for difference in merged.differences:
        between += _other_values(merged, difference)
    between += _other_dependencies(merged)
    between += _other_records(merged)
    # The sort by document is stable: it keeps the order of its own problems.
    return sorted(within + sorted(between), key=itemgetter(0))


def _other_values(
    merged: Merged, difference: Difference
) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of documents that contradict the stored values of a column."""
    texts = merged.texts
    column = difference.column
    values = texts.things()[DICTIONARIES[column]]
    names = ("document", "spec", column)
    stated_rows = difference.stated.rows(*names)
    stored_rows = difference.stored.rows(*names)
    for stated_row, stored_row in zip(stated_rows, stored_rows, strict=True):
        # Numbers count from 1.
        document, spec, stated_number = stated_row
        stored_document, _, stored_number = stored_row
        dag_hash = texts.hashes.things[spec - 1]
        path = merged.documents[stored_document - 1].path

        # What the document states, and how it differs from what is stored.
        stated = values[stated_number - 1]
        stored = values[stored_number - 1]
        if column == "configuration":
            stated = stated._asdict()
            words = _other_parts(stated, stored._asdict())
        else:
            words = f"{stated}, not {stored}"
        message = (
            f"the spec {dag_hash} has another {column} here than in {path}: {words}"
        )
        yield document, Problem(f"two_{column}s", message, dag_hash, json.dumps(stated))


def _other_parts(stated: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
    """Return the differing parts of two configurations in words.

    Example: `version 1.3, not 1.2; variants +pic, not ~pic`.
    """
    parts = []
    for name, value in stated.items():
        other = stored[name]
        if value != other:
            stated_text = _part_text(value, other)
            stored_text = _part_text(other, value)
            parts.append(f"{name} {stated_text}, not {stored_text}")
    return "; ".join(parts)


def _part_text(value: Any, other: Any) -> str:
    """Return a value as text; of variants, those that `other` does not have."""
    if not isinstance(value, tuple):
        return str(value)
    different = [variant for variant in value if variant not in other]
    return " ".join(different) or "without"


def _other_dependencies(merged: Merged) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of documents whose dependencies of a spec differ from the
    stored ones.

    The value is a list of edges: the hash, the types and the virtual packages of each.
    """
    texts = merged.texts
    records, edges = merged.other_dependencies

    # The edges of each record.
    edges_of: dict[tuple[int, int], list[list[Any]]] = defaultdict(list)
    rows = edges.rows("document", "spec", "dependency", "use")
    for document, spec, dependency, use in rows:
        edge = [texts.hashes.things[dependency - 1], *texts.uses.things[use - 1]]
        edges_of[document, spec].append(edge)

    # A record that lists no dependency has no edges, and is a problem too.
    for document, spec in records.rows("document", "spec"):
        dag_hash = texts.hashes.things[spec - 1]
        message = f"the spec {dag_hash} has other dependencies here"
        value = json.dumps(sorted(edges_of[document, spec]))
        yield document, Problem("two_dependencies", message, dag_hash, value)


def _other_records(merged: Merged) -> Iterator[tuple[int, Problem]]:
    """Yield the problems of indexes whose record of a spec contradicts the first
    record.

    The table `records` has all records. A missing value contradicts nothing.
    """
    texts = merged.texts

    # Pair each record with the first record of its spec.
    records = merged.records.sorted_by("spec", "document")
    starts, group = groups(records["spec"])
    first = records.where(starts[group])

    # Most records of a spec have the same values, and so the same numbers.
    has_other_node = records["node"] != first["node"]
    has_other_build_spec = records["build_spec"] != first["build_spec"]
    is_different = has_other_node | has_other_build_spec

    # Compare what the other numbers stand for.
    values_of = _RecordValues(texts)
    names = ("document", "spec", "node", "build_spec")
    stated_rows = records.where(is_different).rows(*names)
    stored_rows = first.where(is_different).rows(*names)
    for stated_row, stored_row in zip(stated_rows, stored_rows, strict=True):
        document, spec, node, build_spec = stated_row
        stored_document, _, stored_node, stored_build_spec = stored_row
        stated = values_of.record(node, build_spec)
        stored = values_of.record(stored_node, stored_build_spec)
        differences = "; ".join(_contradictions(stated, stored))
        if differences:
            dag_hash = texts.hashes.things[spec - 1]
            path = merged.documents[stored_document - 1].path
            message = (
                f"the spec {dag_hash} has another record here than in {path}: "
                f"{differences}"
            )
            yield document, Problem("two_records", message, dag_hash)


class _RecordValues:
    """The values of records by name, from the numbers of their nodes and build
    specs.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        # Many records have the same node, whose text is decoded once.
        self._node = lru_cache(maxsize=4096)(self._read_node)

    def record(self, node: int, build_spec: int) -> dict[str, Any]:
        """Return the values of a record; `build_spec` is 0 if it is not spliced."""
        spliced = None
        if build_spec:
            spliced = self._texts.hashes.things[build_spec - 1]
        return {**self._node(node), "build_spec": spliced}

    def _read_node(self, node: int) -> dict[str, Any]:
        return _node_values(self._texts.nodes.things[node - 1])


def _node_values(node: NodeFacts) -> dict[str, Any]:
    """Return a node's values that are not in its configuration, by name; None if
    missing.
    """
    parameters = json.loads(node.parameters)
    values = {
        "namespace": node.namespace,
        "package hash": node.package_hash,
        "external": node.external or "none",
    }
    for name in sorted(FLAG_NAMES):
        values[name] = parameters.get(name, [])
    # The first characters of a patch are in the configuration, which `_other_values`
    # compares.
    values["patches of the variant"] = parameters.get("patches")
    return values


def _contradictions(
    stated: Mapping[str, Any], stored: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the values that differ in words, such as `cflags -O2 -g, not none`."""
    for name, value in stated.items():
        other = stored[name]
        # A missing value contradicts nothing.
        if value is None or other is None or value == other:
            continue
        yield f"{name} {_value_text(value)}, not {_value_text(other)}"


def _value_text(value: Any) -> str:
    text = " ".join(value) if isinstance(value, list) else value
    return text or "none"
