"""YAML as nodes that know their line, every scalar as text; nothing in it can grow without end.

Aliases are nodes that stand at several places, as YAML means them. Whoever follows them bounds what
comes of it: this module bounds the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any

import yaml

from spack_cache_db.environments.faults import Refused

MAX_LENGTH = 2**20
"""Characters of a `spack.yaml`; the largest known have some fifty thousand."""

MAX_PARTS = 50_000
"""Scalars, and beginnings and ends of lists and mappings."""

MAX_DEPTH = 32

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_ONLY_IN_YAML = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
"""What ends a line in YAML 1.1 (5.4), and in no editor."""

_NOTHING = ("", "~", "null", "Null", "NULL")


def compose(text: str) -> yaml.Node | None:
    """Return the node of a text with one YAML document, None for an empty one.

    Raises:
        Refused: it is no YAML, or too large.
    """
    if len(text) > MAX_LENGTH:
        raise Refused(0, f"has {len(text):,} characters, expected at most {MAX_LENGTH:,}")
    try:
        _require_small(text)
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = _line_at(error.problem_mark, text) if error.problem_mark else 0
        said = " ".join(str(error.problem or error.context).split())
        raise Refused(line, f"broken YAML: {said}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Refused(0, f"broken YAML: {' '.join(str(error).split())}") from None
    if node is not None and _ONLY_IN_YAML.search(text):
        _count_lines(node, text)
    return node


def _line_at(mark: Any, text: str) -> int:
    """Return the line of the file, from 1, in which a mark stands; behind the end, the last one."""
    return min(text.count("\n", 0, mark.index), text.removesuffix("\n").count("\n")) + 1


def _count_lines(root: yaml.Node, text: str) -> None:
    """Let all nodes say on which line of the file they begin, where YAML counts others."""
    ends = [end.start() for end in re.finditer("\n", text)]
    waiting, done = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in done:
            continue
        done.add(id(node))
        mark = node.start_mark
        line = bisect_left(ends, mark.index)
        node.start_mark = yaml.Mark(mark.name, mark.index, line, mark.column, None, 0)
        if isinstance(node, yaml.MappingNode):
            waiting += [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _require_small(text: str) -> None:
    """Refuse deep nesting, which would end the process in libyaml, one event at a time."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if number > MAX_PARTS:
            raise Refused(0, f"has more than {MAX_PARTS:,} parts")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise Refused(0, f"is nested more than {MAX_DEPTH} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def line_of(node: yaml.Node) -> int:
    """Return the line on which a node begins, counted from 1."""
    return int(node.start_mark.line) + 1


def is_nothing(node: yaml.Node) -> bool:
    """Return whether a node is YAML's null, as after a key without a value."""
    return isinstance(node, yaml.ScalarNode) and not node.style and node.value in _NOTHING


def text_of(node: yaml.Node, what: str) -> str:
    """Return the text of a scalar; `Refused` if it is none, for it should be `what`."""
    if not isinstance(node, yaml.ScalarNode):
        raise Refused(line_of(node), f"expected {what} as text here")
    return str(node.value)


def items_of(node: yaml.Node, what: str) -> list[yaml.Node]:
    """Return the items of a list, without those that are null; `Refused` if it is none."""
    if is_nothing(node):
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise Refused(line_of(node), f"expected a list of {what} here: lines that begin with '- '")
    return [each for each in node.value if not is_nothing(each)]


def entries_of(node: yaml.Node, what: str) -> dict[str, yaml.Node]:
    """Return the entries of a mapping; `Refused` if it is none, or a key stands twice."""
    if is_nothing(node):
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise Refused(line_of(node), f"expected {what} here: lines of the form 'key: value'")
    found: dict[str, yaml.Node] = {}
    for key_node, value in node.value:
        key = text_of(key_node, "a key").removesuffix(":")
        if key == "<<":
            raise Refused(line_of(key_node), "'<<' merges keys, which is not read: write them out")
        if key in found:
            raise Refused(line_of(key_node), f"the key {key} stands twice, expected once")
        found[key] = value
    return found
