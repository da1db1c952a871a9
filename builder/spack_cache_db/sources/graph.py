"""What indexes say beyond pages, as columns: each record of an index, and its edges.

The same form as that of listings (`columns.py`): whatever repeats is interned, the rest are
parallel arrays of numbers. A source that knows no dependencies leaves it empty.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple


class Node(NamedTuple):
    """What a node says of a spec beyond its configuration and its edges; many specs share one.

    `parameters` (variants and compiler flags), `target` (its description, where the node has more
    than a name), `external` and `rest` (all other keys but hashes) are JSON with sorted keys.
    """

    namespace: str
    package_hash: str | None
    parameters: str
    target: str | None
    external: str | None
    rest: str


class Use(NamedTuple):
    """How a dependency is used: sorted types and virtuals; `direct` where the edge says so."""

    types: tuple[str, ...]
    virtuals: tuple[str, ...]
    direct: bool | None


class RecordColumns(NamedTuple):
    """Parallel arrays, one number in each for a record of an index.

    `document` and `spec` are as in `ListingColumns`; `node` is an index into `Graph.nodes`.
    `ref_count`, `rest`, `full_hash`, `build_hash` and `build_spec` count from 1 (0: not said); the
    last of them is a number of a spec, the two before it are indices into `Graph.old_hashes`.
    `in_buildcache` is 0 where the record does not say, 1 for no, 2 for yes.
    """

    document: array[int]
    spec: array[int]
    node: array[int]
    ref_count: array[int]
    in_buildcache: array[int]
    rest: array[int]
    full_hash: array[int]
    build_hash: array[int]
    build_spec: array[int]


class EdgeColumns(NamedTuple):
    """Parallel arrays, one number in each for an edge: both ends are specs, `use` a `Use`."""

    document: array[int]
    spec: array[int]
    dependency: array[int]
    use: array[int]


def _records() -> RecordColumns:
    return RecordColumns(*(array("I") for _ in RecordColumns._fields))


def _edges() -> EdgeColumns:
    return EdgeColumns(*(array("I") for _ in EdgeColumns._fields))


@dataclass(slots=True)
class Graph:
    """The graph of a unit of the input; `rests` are the other keys of records, as JSON."""

    nodes: list[Node] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    rests: list[str] = field(default_factory=list)
    old_hashes: list[str] = field(default_factory=list)
    records: RecordColumns = field(default_factory=_records)
    edges: EdgeColumns = field(default_factory=_edges)
