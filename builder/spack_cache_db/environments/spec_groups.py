"""Reads the groups of specs in a `spack.yaml`, which Spack 1.2 introduced.

    specs: [zlib, {group: tools, specs: [cmake]}, bzip2]

has three: `zlib` without a name, `tools`, and `bzip2` without a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import yaml

from spack_cache_db.bounded_yaml import (
    entries_of,
    fault_at,
    items_of,
    key_of,
    text_at,
)
from spack_cache_db.environments.includes import SpackConfiguration
from spack_cache_db.environments.key_check import refuse_unknown_keys, unknown_keys
from spack_cache_db.environments.known_keys import KEYS_OF_A_GROUP, KEYS_OF_A_MATRIX

DEFAULT_GROUP = "default"
"""Spack's name for the specs without a group. Several groups may have this name."""

_KEYS_OF_A_GROUP_ALONE = KEYS_OF_A_GROUP - KEYS_OF_A_MATRIX
"""The keys by which a group differs from a matrix in a list of specs."""


class SpecGroup(NamedTuple):
    """A group of specs.

    Attributes:
        node: the list of its specs.
        name: its name; empty for specs without a group.
        override: its own sections, which have precedence over the environment's.
    """

    node: yaml.Node
    name: str = ""
    override: Mapping[str, yaml.Node] = MappingProxyType({})


def spec_groups(
    node: yaml.Node, configuration: SpackConfiguration
) -> Iterator[SpecGroup]:
    """Yield the groups of `specs:` in order; specs without a group are one, too.

    Args:
        node: the list `specs:`.
        configuration: the record to which unknown keys in the sections of a group are
            added.

    Raises:
        LineFault: a group is not valid, or has the name of another one.
    """
    # The specs since the last group.
    ungrouped: list[yaml.Node] = []
    names: set[str] = set()
    for item in items_of(node, "specs"):
        entries: dict[str, yaml.Node] = {}
        if isinstance(item, yaml.MappingNode):
            entries = entries_of(item, "a spec")
        # A mapping without these keys is a matrix, which is an item like a spec.
        is_group = bool(entries.keys() & _KEYS_OF_A_GROUP_ALONE)
        if not is_group:
            ungrouped.append(item)
            continue

        # Specs before the group are a group of their own, which may be empty.
        yield SpecGroup(_list_node(ungrouped, node))
        ungrouped = []
        refuse_unknown_keys(item, KEYS_OF_A_GROUP)
        group = _group(entries, item, configuration)
        # Spack 1.2 `environment/environment.py` refuses a second group of one name.
        if group.name in names:
            raise fault_at(item, f"a second group {group.name}, expected one")
        if group.name not in ("", DEFAULT_GROUP):
            names.add(group.name)
        yield group
    yield SpecGroup(_list_node(ungrouped, node))


def _group(
    entries: Mapping[str, yaml.Node], node: yaml.Node, configuration: SpackConfiguration
) -> SpecGroup:
    """Return the group of a mapping, which has `specs:` or `matrix:`.

    Args:
        entries: the keys of the mapping.
        node: the mapping.
        configuration: the record to which unknown keys are added.
    """
    name = text_at(entries, "group", "a name")
    override: Mapping[str, yaml.Node] = {}
    if "override" in entries:
        override = entries_of(entries["override"], "packages")
        unknown = unknown_keys(entries["override"])
        configuration.faults += unknown.faults
        configuration.notes += unknown.notes

    if "specs" in entries and "matrix" in entries:
        raise fault_at(node, "this group has specs: and matrix:, expected one of them")
    if "specs" in entries:
        return SpecGroup(entries["specs"], name, override)
    if "matrix" not in entries:
        raise fault_at(node, "this is not a group, expected specs:")
    # The matrix with its `exclude:` is the only item of the list.
    pairs = []
    for key_node, value in node.value:
        key, _ = key_of(key_node)
        if key in KEYS_OF_A_MATRIX:
            pairs.append((key_node, value))
    matrix = yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark)
    return SpecGroup(_list_node([matrix], node), name, override)


def _list_node(items: list[yaml.Node], node: yaml.Node) -> yaml.SequenceNode:
    """Return a list of nodes at the position of another node."""
    return yaml.SequenceNode(
        "tag:yaml.org,2002:seq", items, node.start_mark, node.end_mark
    )
