"""Puts records of an index together from parts that have occurred before.

The records of an index differ in names and hashes. Their other parts repeat themselves:
an index of 150,000 records has a few dozen architectures, a few dozen ways to use a
dependency, and a few thousand sets of parameters. So a part is looked up by its bytes:

    {"name": "zlib", "arch": <bytes>, "parameters": <bytes>, "hash": "…", ...}

A record is decoded and checked whole if a part of it is new, or if it has another form
than Spack has written since specfile 4 (`spack.nodes`). Otherwise it has the values
that these parts had in other records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct

from spack_cache_db.sources.indexes.entries import Entry
from spack_cache_db.sources.texts import as_json
from spack_cache_db.spack.nodes import Edge, Node, Use
from spack_cache_db.spack.normal_forms import VariantValue

MOST_PARTS = 2**14
"""Parts of a kind that are known at a time; sets of parameters take 2 kB each."""

_Text = Annotated[str, Meta(min_length=1)]
_MISSING = Raw()


class CutDependency(Struct, forbid_unknown_fields=True):
    """A dependency; its use is bytes."""

    name: _Text
    hash: _Text
    parameters: Raw


class CutSpec(Struct, forbid_unknown_fields=True):
    """A concrete spec; the parts that repeat themselves are bytes."""

    name: _Text
    version: _Text
    hash: _Text
    arch: Raw
    parameters: Raw
    dependencies: list[CutDependency] = []
    namespace: str | None = None
    package_hash: str | None = None
    compiler: Raw = _MISSING
    annotations: Raw = _MISSING
    # Not used: the parameters have the patches as well.
    patches: Raw = _MISSING


class CutRecord(Struct, forbid_unknown_fields=True):
    """A record of a mirror's index."""

    spec: CutSpec
    in_buildcache: bool
    # Not used.
    ref_count: Raw = _MISSING


class _Arch(NamedTuple):
    platform: str
    os: str
    target: str


class _Parameters(NamedTuple):
    values: Mapping[str, VariantValue]
    json: str


class _Origin(NamedTuple):
    """What a node records about the Spack that concretized it."""

    compiler: str | None
    spec_format_of_node: int | None
    spec_format: int


_RECORD = msgspec.json.Decoder(CutRecord)


def cut_record(data: Raw) -> CutRecord | None:
    """Return a record with some parts as bytes; None if it has another form."""
    try:
        return _RECORD.decode(data)
    except (RecursionError, ValueError):
        # Reading the whole record finds its first fault.
        return None


class KnownParts:
    """The values of the parts of one index, by their bytes."""

    def __init__(self) -> None:
        self._archs: dict[bytes, _Arch] = {}
        self._parameters: dict[bytes, _Parameters] = {}
        self._origins: dict[tuple[bytes, bytes], _Origin] = {}
        self._uses: dict[bytes, Use] = {}

    def entry(self, cut: CutRecord) -> Entry | None:
        """Return a record from its parts; None if one of them is new."""
        spec = cut.spec
        uses = self._uses
        edges = []
        try:
            arch = self._archs[bytes(spec.arch)]
            parameters = self._parameters[bytes(spec.parameters)]
            origin = self._origins[bytes(spec.compiler), bytes(spec.annotations)]
            for dependency in spec.dependencies:
                use = uses[bytes(dependency.parameters)]
                edges.append(Edge(dependency.name, dependency.hash, use))
        except KeyError:
            return None
        node = Node(
            name=spec.name,
            version=spec.version,
            hash=spec.hash,
            platform=arch.platform,
            os=arch.os,
            target=arch.target,
            parameters=parameters.values,
            edges=tuple(edges),
            compiler=origin.compiler,
            namespace=spec.namespace,
            package_hash=spec.package_hash,
            spec_format=origin.spec_format_of_node,
        )
        return Entry(
            node,
            cut.in_buildcache,
            spec_format=origin.spec_format,
            parameters=parameters.json,
        )

    def add(self, cut: CutRecord, entry: Entry) -> None:
        """Add the parts of a record that has been decoded whole.

        Raises:
            ValueError: a parameter cannot be stored.
        """
        # Keys that are not known, and numbers in place of texts, have to be reported
        # for each record.
        if entry.unknown or entry.numbers:
            return
        for parts in (self._archs, self._parameters, self._origins, self._uses):
            if len(parts) >= MOST_PARTS:
                parts.clear()
        spec = cut.spec
        node = entry.node
        self._archs[bytes(spec.arch)] = _Arch(node.platform, node.os, node.target)
        self._parameters[bytes(spec.parameters)] = _Parameters(
            node.parameters, as_json(node.parameters)
        )
        self._origins[bytes(spec.compiler), bytes(spec.annotations)] = _Origin(
            node.compiler, node.spec_format, entry.spec_format
        )
        for dependency, edge in zip(spec.dependencies, node.edges, strict=True):
            self._uses[bytes(dependency.parameters)] = edge.use
