"""The bounded reader of YAML: every YAML text from outside this package goes through it.

It returns nodes that know their line, or values. libyaml ends the process on deep nesting, PyYAML
takes a thousand bytes for each node, and a few aliases can repeat each other a billion times, so
the events of a text are counted before anything is made of them. Anything wrong with a text is a
`LineFault`, whatever PyYAML raises.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import yaml

from spack_cache_db.errors import LineFault


@dataclass(frozen=True, slots=True)
class YamlBounds:
    """How large a YAML text may be, as it is and with its aliases written out.

    Attributes:
        size: characters.
        parts: scalars, lists and mappings.
        depth: levels of lists and mappings.
        aliases: aliases (`*name`).
    """

    size: int = 2**20
    parts: int = 50_000
    depth: int = 32
    aliases: int = 0


CONFIGURATION_BOUNDS = YamlBounds(aliases=1_000)
"""How large a file of Spack's configuration may be; the largest known have some fifty thousand
characters."""

METADATA_BOUNDS = YamlBounds(size=2**24, parts=500_000, aliases=1_000)
"""How large Datasette's metadata and settings may be: queries in them may have any length."""

MAX_NUMBER = 1000
"""Characters of a scalar that is no text: numbers of base 60 take quadratic time."""

_BaseLoader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_ValueLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT = "tag:yaml.org,2002:str"
NOTHING = ("", "~", "null", "Null", "NULL")
"""How null is written, where it has no quotes."""

_BAD_SCALAR = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What PyYAML raises for `!!float x`, `!!timestamp x`, `!!bool x` and the like."""

_ONLY_IN_YAML = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
"""What ends a line in YAML 1.1 (5.4), and in no editor."""


def compose(text: str, bounds: YamlBounds, path: str = "") -> yaml.Node | None:
    """Return the node of a text with one YAML document, None for an empty one.

    Every scalar is text, and the lines of nodes are those that editors and `grep -n` count.
    Nodes know the path that is given.

    Raises:
        LineFault: it is no YAML, or too large.
    """
    try:
        return _compose(text, bounds, _TextLoader, path)
    except LineFault as fault:
        raise LineFault(fault.line, fault.message, path) from None


def load(text: str, bounds: YamlBounds) -> Any:
    """Return the value of a text with one YAML document, with the types of YAML 1.1.

    Raises:
        LineFault: it is no YAML, is too large, or has a scalar that is none of its tag.
    """
    node = _compose(text, bounds, _ValueLoader)
    return None if node is None else _value(_Constructor(), _merged(node, text))


def merge_keys(root: yaml.Node) -> None:
    """Give each mapping the keys of those that it merges (`<<: *name`), as YAML 1.1 does.

    Its own keys count first, then those of the mappings in their order.

    Args:
        root: a node of `compose`; it is changed.

    Raises:
        LineFault: what is merged is not a mapping.
    """
    # A merged mapping ends before the mapping that merges it.
    mappings = [node for node in _nodes(root) if isinstance(node, yaml.MappingNode)]
    mappings.sort(key=lambda node: (node.end_mark.index, -node.start_mark.index))
    for node in mappings:
        merged = [value for key, value in node.value if _is_merge(key)]
        if merged:
            node.value = _merged_pairs(node, merged)


def _is_merge(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value == "<<" and not key.style


def _merged_pairs(
    node: yaml.MappingNode, merged: list[yaml.Node]
) -> list[tuple[yaml.Node, yaml.Node]]:
    found = [pair for pair in node.value if not _is_merge(pair[0])]
    names = {str(key.value) for key, _ in found}
    several = (each.value if isinstance(each, yaml.SequenceNode) else [each] for each in merged)
    for other in chain.from_iterable(several):
        if not isinstance(other, yaml.MappingNode):
            raise fault_at(node, "'<<' merges something other than a mapping above it")
        new = [pair for pair in other.value if str(pair[0].value) not in names]
        names.update(str(key.value) for key, _ in new)
        found += new
    return found


def part_count(root: yaml.Node) -> int:
    """Return how many scalars, lists and mappings a node has, each once, itself included."""
    return sum(1 for _ in _nodes(root))


def text_value(node: yaml.Node) -> Any:
    """Return a node of `compose` as text, lists and dictionaries.

    Raises:
        LineFault: a list or a mapping is the key of a mapping.
    """
    return _value(yaml.constructor.BaseConstructor(), node)


def line_of(node: yaml.Node) -> int:
    """Return the line on which a node begins, counted from 1."""
    return int(node.start_mark.line) + 1


def fault_at(node: yaml.Node, message: str) -> LineFault:
    """Return a fault where a node begins, in the file whose path `compose` was given."""
    return LineFault(line_of(node), message, node.start_mark.name)


def composed(text: str, path: str) -> yaml.Node | None:
    """Return the node of a file with its merge keys (`<<`) resolved, None for an empty one.

    Raises:
        LineFault: it is no YAML, or too large.
    """
    node = compose(text, CONFIGURATION_BOUNDS, path)
    return None if node is None else _merged(node, text)


def _merged(node: yaml.Node, text: str) -> yaml.Node:
    if "<<" in text:
        merge_keys(node)
    return node


def is_nothing(node: yaml.Node) -> bool:
    """Return whether a node is YAML's null, as after a key without a value."""
    return isinstance(node, yaml.ScalarNode) and not node.style and node.value in NOTHING


def text_of(node: yaml.Node, what: str) -> str:
    """Return the text of a scalar, without a colon at its end if it has no `@`.

    Spack reads that colon of any text as that of a key which replaces another (`spack_yaml.py`).

    Raises:
        LineFault: the node is no scalar, for it should be `what`.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise fault_at(node, quoting_advice(node) or f"expected {what} as text here")
    text = str(node.value)
    return text[:-1] if text.endswith(":") and "@" not in text else text


def quoting_advice(node: yaml.Node) -> str:
    """Return what to do about a mapping that was meant as text, such as `- hdf5@1.14: +mpi`.

    The advice is empty if the node is not a mapping with one key and one text.
    """
    if not isinstance(node, yaml.MappingNode) or len(node.value) != 1:
        return ""
    ((key, value),) = node.value
    if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode):
        return ""
    text = f"{key.value}: {value.value}".rstrip()
    return f"the colon makes a mapping of {text!r}: put the spec in quotes"


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


# libyaml's loader composes in C. PyYAML's own, as in Pyodide, has the composer below already.
_COMPOSERS = [base for base in (yaml.composer.Composer,) if not issubclass(_BaseLoader, base)]


class _TextLoader(*_COMPOSERS, _BaseLoader):  # type: ignore[misc]
    """Reads every scalar as text; an anchor stands for the last node above that has it.

    YAML 1.2 says so (3.2.2.2), which Spack reads; PyYAML refuses an anchor that stands twice.
    """

    def __init__(self, stream: str) -> None:
        _BaseLoader.__init__(self, stream)
        yaml.composer.Composer.__init__(self)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        if not isinstance(event, yaml.AliasEvent):
            self.anchors.pop(event.anchor, None)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


class _Constructor(yaml.constructor.SafeConstructor):
    """Names the line of a scalar that is none of its tag, such as `!!int ""`."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except _BAD_SCALAR:
            kind = node.tag.rpartition(":")[2]
            raise LineFault(line_of(node), f"broken YAML: this is no {kind}") from None

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        found = super().construct_mapping(node, deep)
        if len(found) < len(node.value):
            raise LineFault(line_of(node), "a key stands twice here, expected once")
        return found

    def construct_scalar(self, node: Any) -> Any:
        if node.tag != _TEXT and len(node.value) > MAX_NUMBER:
            raise ValueError(f"{len(node.value):,} characters")
        return super().construct_scalar(node)


def _compose(text: str, bounds: YamlBounds, loader: Any, path: str = "") -> yaml.Node | None:
    if len(text) > bounds.size:
        raise LineFault(0, f"has {len(text):,} characters, expected at most {bounds.size:,}")
    try:
        _require_small(text, bounds, loader)
        node: yaml.Node | None = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        # What is missing at the end is told of the last line.
        last = text.removesuffix("\n").count("\n")
        mark = error.problem_mark
        line = min(text.count("\n", 0, mark.index), last) + 1 if mark else 0
        raise LineFault(line, _said(error)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise LineFault(0, _said(error)) from None
    if node is not None and (path or _ONLY_IN_YAML.search(text)):
        _place(node, text, path)
    return node


def _value(constructor: Any, node: yaml.Node) -> Any:
    try:
        return constructor.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise LineFault(mark.line + 1 if mark else 0, _said(error)) from None


def _said(error: Exception) -> str:
    text = (error.problem or error.context) if isinstance(error, yaml.MarkedYAMLError) else error
    return f"broken YAML: {' '.join(str(text).split())}"


def _require_small(text: str, bounds: YamlBounds, loader: Any) -> None:
    """Raise `LineFault` if a text is too large; events are read one at a time."""
    # Parts, characters and the deepest level so far, with aliases written out.
    parts = size = depth = aliases = 0
    # For each list and mapping that has not ended: its anchor, and what was before it.
    begun: list[tuple[str | None, int, int, int]] = []
    # By anchor, what an alias stands for; None within the list or mapping that has the anchor.
    anchors: dict[str | None, tuple[int, int, int] | None] = {}
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.ScalarEvent):
            more = anchors[event.anchor] = 1, len(event.value), 0
        elif isinstance(event, yaml.CollectionStartEvent):
            begun.append((event.anchor, parts, size, depth))
            anchors[event.anchor], more, depth = None, (1, 0, 0), 0
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, parts_before, size_before, depth_before = begun.pop()
            anchors[anchor] = parts - parts_before, size - size_before, depth - len(begun)
            depth = max(depth, depth_before)
            continue
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
            if aliases > bounds.aliases:
                most = f"at most {bounds.aliases:,}" if bounds.aliases else "none"
                raise LineFault(0, f"has YAML aliases (*{event.anchor}), expected {most}")
            # `compose` reports an anchor that is missing.
            known = anchors.get(event.anchor, (1, 0, 0))
            if known is None:
                raise LineFault(_line(event), f"*{event.anchor} stands within itself")
            more = known
        else:
            continue
        parts, size, depth = parts + more[0], size + more[1], max(depth, len(begun) + more[2])
        if depth > bounds.depth:
            words = f"is nested more than {bounds.depth} levels deep: use fewer"
            raise LineFault(_line(event), words)
        if parts > bounds.parts:
            raise LineFault(0, f"has more than {bounds.parts:,} parts, aliases written out")
        if size > bounds.size:
            raise LineFault(0, f"has more than {bounds.size:,} characters, aliases written out")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _place(root: yaml.Node, text: str, path: str) -> None:
    """Let all nodes know their file, and their line in it; YAML counts other lines."""
    ends = [end.start() for end in re.finditer("\n", text)]
    for node in _nodes(root):
        mark = node.start_mark
        line = bisect_left(ends, mark.index)
        node.start_mark = yaml.Mark(path, mark.index, line, mark.column, None, 0)


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    """Yield a node and all nodes in it, each once, wherever aliases put it."""
    waiting, done = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in done:
            continue
        done.add(id(node))
        yield node
        if isinstance(node, yaml.MappingNode):
            waiting += [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
