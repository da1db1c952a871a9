"""Reads YAML within limits, as nodes with line numbers or as values.

Nodes are counted while PyYAML composes them, because a hostile text may be too much for
it: libyaml crashes on deep nesting, a node takes a thousand bytes, and a few aliases
can repeat each other a billion times. An alias (`*name`) repeats the node with an
anchor (`&name`); limits count it as often as it is repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from itertools import chain
from typing import Any, NamedTuple

import yaml

from spack_cache_db.errors import LineFault, one_line


class YamlBounds(NamedTuple):
    """Limits of a text, with all aliases written out.

    Attributes:
        size: characters of the text, and characters of all scalars.
        parts: scalars, lists and mappings.
        depth: levels of nested lists and mappings.
    """

    size: int = 2**20
    parts: int = 50_000
    depth: int = 32


CONFIGURATION_BOUNDS = YamlBounds()
"""Limits of Spack's configuration files; the largest have some fifty thousand
characters.
"""

METADATA_BOUNDS = YamlBounds(size=2**24, parts=500_000)
"""Limits of Datasette's metadata and settings, which contain queries of any length."""

NOTHING = ("", "~", "null", "Null", "NULL")
"""The spellings of null without quotes."""


def compose(
    text: str, bounds: YamlBounds = CONFIGURATION_BOUNDS, path: str = ""
) -> yaml.Node | None:
    """Return the node of a text with one YAML document; None for an empty text.

    Merge keys (`<<`) are resolved.

    Args:
        text: the text.
        bounds: its limits.
        path: the path for faults in the text; empty for the file that is being read.

    Raises:
        LineFault: the text is not YAML, or exceeds a limit.
    """
    with _line_faults(text, path):
        node: yaml.Node | None = _Loader(text, bounds, path).get_single_node()
        return node


def load(text: str, bounds: YamlBounds) -> Any:
    """Return the value of a text with one YAML document; None for an empty text.

    Scalars have the types of YAML 1.1. Raises `LineFault` as `compose`.
    """
    with _line_faults(text):
        loader = _Loader(text, bounds)
        node = loader.get_single_node()
        return None if node is None else loader.construct_document(node)


def _problem(text: str, error: Exception) -> str:
    """Return what is wrong with a text, in words for people who do not know PyYAML."""
    problem = getattr(error, "problem", None) or getattr(error, "context", None)
    mark = getattr(error, "problem_mark", None)
    if problem == "but found another document":
        return "a second document begins here"
    if problem == "found character that cannot start any token" and mark is not None:
        # A tab, or a sign that needs quotes: `- %gcc@13`, `[@1.2]`.
        lines = text.split("\n")
        line = lines[mark.line] if mark.line < len(lines) else ""
        character = line[mark.column : mark.column + 1]
        if character == "\t":
            return "a tab, expected blanks"
        if character:
            return f"a value cannot begin with {character}: put it in quotes"
    return str(problem or error)


@contextmanager
def _line_faults(text: str, path: str = "") -> Iterator[None]:
    """Turn all exceptions of a text that is not YAML into `LineFault`."""
    try:
        yield
    except LineFault as fault:
        raise LineFault(fault.line, fault.message, path) from None
    except (yaml.YAMLError, ValueError) as error:
        message = one_line(_problem(text, error))
        line = 0
        mark = getattr(error, "problem_mark", None)
        if mark is not None:
            # PyYAML counts from 0, and puts a fault at the end of the text into a line
            # after the last one.
            last_line = text.removesuffix("\n").count("\n") + 1
            line = min(mark.line + 1, last_line)
        raise LineFault(line, f"broken YAML: {message}", path) from None


def _children(node: Any) -> Iterable[yaml.Node]:
    """Return the keys and values of a mapping, or the items of a list."""
    if isinstance(node, yaml.MappingNode):
        return chain.from_iterable(node.value)
    if isinstance(node, yaml.SequenceNode):
        items: Iterable[yaml.Node] = node.value
        return items
    return ()


def part_count(node: yaml.Node) -> int:
    """Return the number of scalars, lists and mappings in a node, itself included.

    A node that aliases repeat counts each time.
    """
    return 1 + sum(part_count(child) for child in _children(node))


def text_value(node: yaml.Node) -> Any:
    """Return a node of `compose` as text, lists and dictionaries."""
    if isinstance(node, yaml.SequenceNode):
        return [text_value(item) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return {key.value: text_value(value) for key, value in node.value}
    return node.value


def line_of(node: yaml.Node) -> int:
    """Return the first line of a node, counted from 1."""
    return int(node.start_mark.line) + 1


def fault_at(node: yaml.Node, message: str) -> LineFault:
    """Return a fault at the first line of a node, with the path that `compose` was
    given.
    """
    return LineFault(line_of(node), message, node.start_mark.name)


def is_nothing(node: yaml.Node) -> bool:
    """Return whether a node is YAML's null, as after a key without a value."""
    is_plain = isinstance(node, yaml.ScalarNode) and not node.style
    return is_plain and node.value in NOTHING


def text_of(node: yaml.Node, expected: str) -> str:
    """Return the text of a scalar, without the colon of a key that replaces another.

    Args:
        node: the node.
        expected: what it is, for the fault of a node that is not a scalar.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise fault_at(node, quoting_advice(node) or f"expected {expected} as text")
    text = str(node.value)
    # In `hdf5@1.14:`, the colon belongs to a range of versions.
    if "@" in text:
        return text
    return text.removesuffix(":")


def quoting_advice(node: yaml.Node) -> str:
    """Return advice on a mapping that should be text, such as `- hdf5@1.14: +mpi`.

    The text is empty for other nodes.
    """
    if not isinstance(node, yaml.MappingNode) or len(node.value) != 1:
        return ""
    ((key, value),) = node.value
    are_texts = isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode)
    if not are_texts:
        return ""
    text = f"{key.value}: {value.value}".rstrip()
    return f"the colon makes a mapping of {text!r}: put the spec in quotes"


def key_of(node: yaml.Node) -> tuple[str, str]:
    """Return a key without its suffix, and the suffix: `:`, `+`, `-` or "".

    Spack merges configuration files. A suffix says how the value of a key is merged
    with that of a file with less precedence (`spack_yaml.py`): `specs::` replaces it,
    `specs+:` is put before it, and `specs-:` after it.
    """
    text = str(node.value)
    # In `hdf5@1.14:`, the colon belongs to a range of versions.
    if not text.endswith(":") or "@" in text:
        return text, ""
    name = text.removesuffix(":")
    for sign in ("+", "-"):
        if name.endswith(sign):
            return name.removesuffix(sign), sign
    return name.removesuffix(":"), ":"


def items_of(node: yaml.Node, expected: str) -> list[yaml.Node]:
    """Return the items of a list that are not null; none for null itself.

    Args:
        node: the list.
        expected: what its items are, for the fault of a node that is not a list.
    """
    if is_nothing(node):
        return []
    if not isinstance(node, yaml.SequenceNode):
        form = "lines that begin with '- '"
        raise fault_at(node, f"expected a list of {expected}: {form}")
    return [item for item in node.value if not is_nothing(item)]


def entries_of(node: yaml.Node, expected: str) -> dict[str, yaml.Node]:
    """Return the values of a mapping by its keys, without suffixes; none for null.

    A key that occurs twice is a fault.

    Args:
        node: the mapping.
        expected: what it is, for the fault of a node that is not a mapping.
    """
    if is_nothing(node):
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise fault_at(node, f"expected {expected}: lines of the form 'key: value'")
    entries: dict[str, yaml.Node] = {}
    for key_node, value in node.value:
        key, _ = key_of(key_node)
        if key in entries:
            raise fault_at(key_node, f"a second key {key}, expected one")
        entries[key] = value
    return entries


def text_at(
    entries: Mapping[str, yaml.Node], key: str, expected: str, default: str = ""
) -> str:
    """Return the text of a key, or `default` if it is missing."""
    if key not in entries:
        return default
    return text_of(entries[key], expected)


def items_at(
    entries: Mapping[str, yaml.Node], key: str, expected: str
) -> list[yaml.Node]:
    """Return the items of the list of a key, none if it is missing."""
    if key not in entries:
        return []
    return items_of(entries[key], expected)


def required_node(
    entries: Mapping[str, yaml.Node], key: str, mapping: yaml.Node
) -> yaml.Node:
    """Return the node of a key; `LineFault` at its mapping if it is missing."""
    if key not in entries:
        raise fault_at(mapping, f"expected the key {key}:")
    return entries[key]


# The loader: libyaml's parser with PyYAML's own composer, whose methods can count.
# Without libyaml, PyYAML's loader is such a composer itself.
_PARSER: Any = yaml.SafeLoader
_BASES: tuple[Any, ...] = (yaml.SafeLoader,)
if hasattr(yaml, "CSafeLoader"):
    _PARSER = yaml.CSafeLoader
    _BASES = (yaml.composer.Composer, yaml.CSafeLoader)


_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""The ends of lines for YAML 1.1."""

_OTHER_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
"""Those that no other reader takes for an end of a line."""


def _lines_by_yaml(text: str) -> list[int]:
    """Return the line of a text for each line of YAML, both counted from 0.

    For example `[0, 0, 1]` for a text with U+2028 in its first line.
    """
    line = 0
    lines = [line]
    for line_break in _BREAK.findall(text):
        if line_break.endswith("\n"):
            line += 1
        lines.append(line)
    return lines


def _mark_in_text(mark: yaml.Mark, lines: Sequence[int]) -> yaml.Mark:
    """Return a mark of YAML with its line in the text, given those of YAML."""
    line = lines[min(mark.line, len(lines) - 1)]
    return yaml.Mark(mark.name, mark.index, line, mark.column, None, 0)


def _nodes_below(node: yaml.Node | None) -> Iterator[Any]:
    """Yield a node and all nodes below it, each once although aliases repeat it."""
    found: set[int] = set()
    remaining = [] if node is None else [node]
    while remaining:
        part = remaining.pop()
        if id(part) not in found:
            found.add(id(part))
            yield part
            remaining += _children(part)


class _Loader(*_BASES):  # type: ignore[misc]
    """Composes and counts nodes, and makes their values.

    An alias is the last node with its anchor, as in YAML 1.2 (3.2.2.2) and Spack;
    PyYAML refuses a repeated anchor.
    """

    def __init__(self, text: str, bounds: YamlBounds, path: str = "") -> None:
        if len(text) > bounds.size:
            expected = f"expected at most {bounds.size:,}"
            raise LineFault(0, f"has {len(text):,} characters, {expected}")
        # For YAML 1.1, these characters end a line; elsewhere only a line feed does.
        self._text = text
        self._has_other_breaks = _OTHER_BREAK.search(text) is not None
        # Marks of nodes have the name of the stream.
        stream = StringIO(text)
        stream.name = path
        _PARSER.__init__(self, stream)
        yaml.composer.Composer.__init__(self)
        self._bounds = bounds
        # Parts and characters so far, with aliases written out.
        self._parts = 0
        self._size = 0
        # How deep the node is that is composed.
        self._level = 0
        # The anchors of the nodes around it, and its own.
        self._open_anchors: set[str] = set()

    def get_single_node(self) -> Any:
        """Return the node of the text; its lines are those that end in a line feed."""
        if not self._has_other_breaks:
            return super().get_single_node()
        lines = _lines_by_yaml(self._text)
        try:
            node = super().get_single_node()
        except LineFault as fault:
            # Line 0 is a fault of the whole text.
            line = lines[fault.line - 1] + 1 if fault.line else 0
            raise LineFault(line, fault.message, fault.path) from None
        except yaml.MarkedYAMLError as error:
            if error.problem_mark is not None:
                error.problem_mark = _mark_in_text(error.problem_mark, lines)
            raise
        for part in _nodes_below(node):
            part.start_mark = _mark_in_text(part.start_mark, lines)
        return node

    def compose_node(self, parent: yaml.Node | None, index: Any) -> Any:
        """Return the next node of the text, after counting it."""
        event = self.peek_event()
        line = event.start_mark.line + 1
        anchor = event.anchor
        if isinstance(event, yaml.AliasEvent):
            if anchor in self._open_anchors:
                raise LineFault(line, f"*{anchor} contains itself")
            repeated = super().compose_node(parent, index)
            self._add(repeated, self._level, line)
            return repeated
        self._add(event, self._level, line)
        # Forget an earlier node with this anchor.
        self.anchors.pop(anchor, None)
        self._open_anchors.add(anchor)
        self._level += 1
        node = super().compose_node(parent, index)
        self._level -= 1
        self._open_anchors.discard(anchor)
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Return a mapping with the pairs that it merges (`<<`)."""
        node = super().compose_mapping_node(anchor)
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise fault_at(key, "broken YAML: expected a key as text")
        own = [pair for pair in node.value if not pair[0].tag.endswith(":merge")]
        if len(own) == len(node.value):
            return node

        # Put the merged pairs before its own ones.
        self.flatten_mapping(node)
        # Of merged pairs with one key, the last one counts. A key of the mapping itself
        # replaces merged ones.
        own_names = {str(key.value) for key, _ in own}
        merged = {}
        for key, value in node.value:
            name = str(key.value)
            if name not in own_names:
                merged[name] = (key, value)
        node.value = own + list(merged.values())
        return node

    def _add(self, part: Any, level: int, line: int) -> None:
        """Count a part; raise a LineFault if there is too much.

        Args:
            part: the event at which a node begins; its children are counted when they
                begin. Or the node that an alias repeats, which is counted with all
                nodes in it.
            level: how deep it is.
            line: the line for a fault about the depth.
        """
        bounds = self._bounds
        self._parts += 1
        if isinstance(part, yaml.ScalarEvent | yaml.ScalarNode):
            self._size += len(part.value)
        else:
            level += 1
        if level > bounds.depth:
            limit = f"more than {bounds.depth} levels deep"
            raise LineFault(line, f"is nested {limit}: use fewer")
        if self._parts > bounds.parts:
            limit = f"more than {bounds.parts:,} parts"
            raise LineFault(0, f"has {limit}, aliases written out")
        if self._size > bounds.size:
            limit = f"more than {bounds.size:,} characters"
            raise LineFault(0, f"has {limit}, aliases written out")
        # An event has no children.
        for child in _children(part):
            self._add(child, level, line)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node; a text that is not of its type is a fault."""
        kind = node.tag.rpartition(":")[2]
        try:
            # Numbers of base 60, such as `1:30:00`, take quadratic time.
            is_other_scalar = kind != "str" and isinstance(node, yaml.ScalarNode)
            if is_other_scalar and len(node.value) > 1000:
                raise ValueError
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            message = f"broken YAML: this is not a value of type {kind}"
            raise fault_at(node, message) from None

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Return the value of a mapping; a key that occurs twice is a fault."""
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise fault_at(node, "a repeated key, expected each once")
        return mapping
