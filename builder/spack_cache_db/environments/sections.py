"""Sections of a `spack.yaml` as YAML nodes: what should be a text, a list or a mapping."""

from __future__ import annotations

import yaml

from spack_cache_db.bounded_yaml import YamlBounds, compose, fault_at, merge_keys

BOUNDS = YamlBounds(aliases=1_000)
"""How large a `spack.yaml` may be; the largest known have some fifty thousand characters."""

_NOTHING = ("", "~", "null", "Null", "NULL")


def composed(text: str, path: str) -> yaml.Node | None:
    """Return the node of a file with its merge keys (`<<`) resolved, None for an empty one.

    Raises:
        LineFault: it is no YAML, or too large.
    """
    node = compose(text, BOUNDS, path)
    if node is not None and "<<" in text:
        merge_keys(node, BOUNDS.parts)
    return node


def is_nothing(node: yaml.Node) -> bool:
    """Return whether a node is YAML's null, as after a key without a value."""
    return isinstance(node, yaml.ScalarNode) and not node.style and node.value in _NOTHING


def text_of(node: yaml.Node, what: str) -> str:
    """Return the text of a scalar, without a colon at its end if it has no `@`.

    Spack reads that colon of any text as that of a key which replaces another (`spack_yaml.py`).

    Raises:
        LineFault: the node is no scalar, for it should be `what`.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise fault_at(node, f"expected {what} as text here")
    text = str(node.value)
    return text[:-1] if text.endswith(":") and "@" not in text else text


def key_of(node: yaml.Node) -> tuple[str, str]:
    """Return a key, and how it is merged with a lower one: `:` (instead), `+`, `-`, or nothing.

    Raises:
        LineFault: the key is no text, or the merge key of YAML.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise fault_at(node, "expected a key as text here")
    text = str(node.value)
    if text == "<<":
        raise fault_at(node, "'<<' merges keys here, which is not read: write them out")
    if not text.endswith(":") or "@" in text:
        return text, ""
    how = text[-2:-1] if text[-2:-1] in ("+", "-") else ":"
    return text.removesuffix(":").removesuffix(how), how


def items_of(node: yaml.Node, what: str) -> list[yaml.Node]:
    """Return the items of a list, without those that are null; `LineFault` if it is none."""
    if is_nothing(node):
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise fault_at(node, f"expected a list of {what} here: lines that begin with '- '")
    return [each for each in node.value if not is_nothing(each)]


def entries_of(node: yaml.Node, what: str) -> dict[str, yaml.Node]:
    """Return the entries of a mapping; `LineFault` if it is none, or a key stands twice."""
    if is_nothing(node):
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise fault_at(node, f"expected {what} here: lines of the form 'key: value'")
    found: dict[str, yaml.Node] = {}
    for key_node, value in node.value:
        key, _ = key_of(key_node)
        if key in found:
            raise fault_at(key_node, f"the key {key} stands twice, expected once")
        found[key] = value
    return found
