"""Sections of a `spack.yaml` as YAML nodes: what should be a text, a list or a mapping."""

from __future__ import annotations

import yaml

from spack_cache_db.bounded_yaml import YamlBounds, line_of
from spack_cache_db.errors import LineFault

BOUNDS = YamlBounds(aliases=1_000)
"""How large a `spack.yaml` may be; the largest known have some fifty thousand characters."""

_NOTHING = ("", "~", "null", "Null", "NULL")


def is_nothing(node: yaml.Node) -> bool:
    """Return whether a node is YAML's null, as after a key without a value."""
    return isinstance(node, yaml.ScalarNode) and not node.style and node.value in _NOTHING


def text_of(node: yaml.Node, what: str) -> str:
    """Return the text of a scalar; `LineFault` if it is none, for it should be `what`."""
    if not isinstance(node, yaml.ScalarNode):
        raise LineFault(line_of(node), f"expected {what} as text here")
    return str(node.value)


def items_of(node: yaml.Node, what: str) -> list[yaml.Node]:
    """Return the items of a list, without those that are null; `LineFault` if it is none."""
    if is_nothing(node):
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise LineFault(
            line_of(node), f"expected a list of {what} here: lines that begin with '- '"
        )
    return [each for each in node.value if not is_nothing(each)]


def entries_of(node: yaml.Node, what: str) -> dict[str, yaml.Node]:
    """Return the entries of a mapping; `LineFault` if it is none, or a key stands twice."""
    if is_nothing(node):
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise LineFault(line_of(node), f"expected {what} here: lines of the form 'key: value'")
    found: dict[str, yaml.Node] = {}
    for key_node, value in node.value:
        key = text_of(key_node, "a key").removesuffix(":")
        if key == "<<":
            raise LineFault(
                line_of(key_node), "'<<' merges keys, which is not read: write them out"
            )
        if key in found:
            raise LineFault(line_of(key_node), f"the key {key} stands twice, expected once")
        found[key] = value
    return found
