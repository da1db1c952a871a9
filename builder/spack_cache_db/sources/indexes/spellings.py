"""What nodes say, each spelling looked at once: its configuration, and what else there is.

Architecture and parameters are long, and few of them differ: numbers stand for their texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET

from spack_cache_db.records import Configuration
from spack_cache_db.sources.bounds import require_bounded
from spack_cache_db.sources.columns import Interned, NodeFacts, Texts
from spack_cache_db.sources.indexes.normal import parse_arch, target_name, variants_of
from spack_cache_db.sources.indexes.records import Node, Record
from spack_cache_db.sources.indexes.unknown_keys import read_strictly

NODE_REST = ("compiler", "patches", "annotations")
"""The keys of a node that are kept as they are, beside those that have columns."""

_node_rest = attrgetter(*NODE_REST)


class Spellings:
    """Numbers of configurations and of `NodeFacts` by what nodes of an index say."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._said = Interned[bytes]()
        self._configurations: dict[object, int] = {}
        self._nodes: dict[object, int] = {}

    def numbers(self, node: Node, compiler: str) -> tuple[int, int]:
        """Return the number of a node's configuration, and that of the node.

        Raises:
            msgspec.DecodeError: a part of it is none of Spack's.
            ValueError: a text of it is too long.
        """
        arch, parameters = self._said[bytes(node.arch)], self._said[bytes(node.parameters)]
        key = (node.name, node.version, compiler, arch, parameters)
        configuration = self._configurations.get(key)
        if configuration is None:
            configuration = self._configuration(node, compiler)
            self._configurations[key] = configuration
        external = None if node.external is UNSET else bytes(node.external)
        rest = (node.namespace, node.package_hash, arch, parameters, _node_rest(node), external)
        facts = self._nodes.get(rest)
        if facts is None:
            facts = self._nodes[rest] = self._texts.nodes[_facts(node)]
        return configuration, facts

    def _configuration(self, node: Node, compiler: str) -> int:
        arch = parse_arch(bytes(node.arch))
        configuration = Configuration(
            node.name,
            node.version,
            compiler,
            arch.platform_os,
            arch.platform,
            target_name(arch),
            variants_of(bytes(node.parameters)),
        )
        require_bounded(configuration)
        return self._texts.configurations[configuration]


def _facts(node: Node) -> NodeFacts:
    target = parse_arch(bytes(node.arch)).target
    external = None if node.external is UNSET else read_strictly(bytes(node.external))
    if node.external is not UNSET and not isinstance(external, dict):
        raise ValueError("external is no object")
    return NodeFacts(
        namespace=node.namespace,
        package_hash=None if node.package_hash is UNSET else node.package_hash,
        parameters=as_json(json.loads(bytes(node.parameters))),
        target=None if isinstance(target, str) else as_json(msgspec.to_builtins(target)),
        external=None if external is None else as_json(external),
        rest=as_json(said_of(node, NODE_REST)),
    )


def said_of(record: Record | Node, keys: Iterable[str]) -> dict[str, Any]:
    """Return the keys that a record says something of, as plain values."""
    values = {key: getattr(record, key) for key in keys}
    said = {key: value for key, value in values.items() if value is not UNSET}
    plain: dict[str, Any] = msgspec.to_builtins(said)
    return plain


def as_json(value: Any) -> str:
    """Return values as JSON, the same text for the same values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
