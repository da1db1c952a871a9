"""Reads YAML within limits, as nodes with line numbers or as values.

All YAML from outside the package is read here. Nodes are counted while they are composed: libyaml
crashes on deep nesting, PyYAML uses a thousand bytes for each node, and a few aliases can repeat
each other a billion times. All faults are `LineFault`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import chain
from typing import Any

import yaml

from spack_cache_db.errors import LineFault


@dataclass(frozen=True, slots=True)
class YamlBounds:
    """Limits of a YAML text, as it is and with its aliases written out.

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
"""Limits of Spack's configuration files; the largest have some fifty thousand characters."""

METADATA_BOUNDS = YamlBounds(size=2**24, parts=500_000, aliases=1_000)
"""Limits of Datasette's metadata and settings, which contain queries of any length."""

MAX_NUMBER = 1000
"""Maximum length of a scalar that is not text: numbers of base 60 take quadratic time."""

_TEXT = "tag:yaml.org,2002:str"
NOTHING = ("", "~", "null", "Null", "NULL")
"""The spellings of null without quotes."""

_BAD_SCALAR = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions of PyYAML for `!!float x`, `!!timestamp x`, `!!bool x` and similar scalars."""


def compose(
    text: str, bounds: YamlBounds = CONFIGURATION_BOUNDS, path: str = ""
) -> yaml.Node | None:
    """Return the node of a text with one YAML document, None for an empty one.

    Every scalar is text, merge keys (`<<`) are resolved, and line numbers are those of editors and
    `grep -n`. Raises `LineFault` with the path if the text is not YAML, or too large.
    """
    try:
        return _compose(text, bounds, _TextLoader, path)
    except LineFault as fault:
        raise LineFault(fault.line, fault.message, path) from None


def load(text: str, bounds: YamlBounds) -> Any:
    """Return the value of a text with one YAML document, with the types of YAML 1.1.

    Raises:
        LineFault: it is not YAML, is too large, or has a scalar that does not fit its tag.
    """
    node = _compose(text, bounds, _ValueLoader)
    return None if node is None else _value(_Constructor(), node)


def part_count(node: yaml.Node) -> int:
    """Return the number of scalars, lists and mappings in a node, with aliases written out."""
    if isinstance(node, yaml.MappingNode):
        return 1 + sum(part_count(child) for pair in node.value for child in pair)
    return 1 + (sum(map(part_count, node.value)) if isinstance(node, yaml.SequenceNode) else 0)


def text_value(node: yaml.Node) -> Any:
    """Return a node of `compose` as text, lists and dictionaries; `LineFault` for other keys."""
    return _value(yaml.constructor.BaseConstructor(), node)


def line_of(node: yaml.Node) -> int:
    """Return the first line of a node, counted from 1."""
    return int(node.start_mark.line) + 1


def fault_at(node: yaml.Node, message: str) -> LineFault:
    """Return a fault at the first line of a node, with the path that `compose` was given."""
    return LineFault(line_of(node), message, node.start_mark.name)


def is_nothing(node: yaml.Node) -> bool:
    """Return whether a node is YAML's null, as after a key without a value."""
    return isinstance(node, yaml.ScalarNode) and not node.style and node.value in NOTHING


def text_of(node: yaml.Node, expected: str) -> str:
    """Return the text of a scalar, without a colon at its end if it has no `@`.

    Spack reads this colon as the mark of a key that replaces another (`spack_yaml.py`). Raises
    `LineFault` if the node is not a scalar.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise fault_at(node, quoting_advice(node) or f"expected {expected} as text")
    text = str(node.value)
    return text[:-1] if text.endswith(":") and "@" not in text else text


def quoting_advice(node: yaml.Node) -> str:
    """Return advice on a mapping that should be text, such as `- hdf5@1.14: +mpi`; else ""."""
    if not isinstance(node, yaml.MappingNode) or len(node.value) != 1:
        return ""
    ((key, value),) = node.value
    if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode):
        return ""
    text = f"{key.value}: {value.value}".rstrip()
    return f"the colon makes a mapping of {text!r}: put the spec in quotes"


def key_of(node: yaml.Node) -> tuple[str, str]:
    """Return a key without its suffix, and how it merges with a lower one: `:`, `+`, `-` or "".

    Raises:
        LineFault: the key is not text, or the merge key of YAML.
    """
    if not isinstance(node, yaml.ScalarNode):
        raise fault_at(node, "expected a key as text")
    text = str(node.value)
    if text == "<<":
        raise fault_at(node, "'<<' is not supported: write the merged keys out")
    if not text.endswith(":") or "@" in text:
        return text, ""
    how = text[-2:-1] if text[-2:-1] in ("+", "-") else ":"
    return text.removesuffix(":").removesuffix(how), how


def items_of(node: yaml.Node, expected: str) -> list[yaml.Node]:
    """Return the items of a list that are not null; `LineFault` if the node is not a list."""
    if is_nothing(node):
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise fault_at(node, f"expected a list of {expected}: lines that begin with '- '")
    return [item for item in node.value if not is_nothing(item)]


def entries_of(node: yaml.Node, expected: str) -> dict[str, yaml.Node]:
    """Return the entries of a mapping; `LineFault` if it is not one, or has a key twice."""
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


class _Composer(yaml.composer.Composer):
    """Composes and counts nodes; an alias is the last node with its anchor.

    This is the rule of YAML 1.2 (3.2.2.2) and Spack; PyYAML refuses a repeated anchor.
    """

    def __init__(self, text: str, bounds: YamlBounds, path: str) -> None:
        type(self).__bases__[-1].__init__(self, text)  # type: ignore[misc]  # the parser's
        yaml.composer.Composer.__init__(self)
        self._bounds = bounds
        self._path = path
        # YAML ends lines at more characters than editors do.
        self._line_ends = [index for index, character in enumerate(text) if character == "\n"]
        # Parts, characters and the deepest level so far, with aliases written out.
        self._parts = self._size = self._deepest = 0
        self._level = self._aliases = 0
        # Parts, characters and levels of each complete node with an anchor.
        self._extents: dict[int, tuple[int, int, int]] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[attr-defined]  # of the parser
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, parent, index)
        self.anchors.pop(event.anchor, None)
        is_scalar = isinstance(event, yaml.ScalarEvent)
        parts, size, deepest, level = self._parts, self._size, self._deepest, self._level
        self._level += not is_scalar
        self._deepest = 0
        self._add(event, 1, len(event.value) if is_scalar else 0, 0)
        node: Any = super().compose_node(parent, index)
        mark = node.start_mark
        line = bisect_left(self._line_ends, mark.index)
        node.start_mark = yaml.Mark(self._path, mark.index, line, mark.column, None, 0)
        if event.anchor is not None:
            extent = self._parts - parts, self._size - size, self._deepest - level
            self._extents[id(node)] = extent
        self._level, self._deepest = level, max(deepest, self._deepest)
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        merged = [value for key, value in node.value if _is_merge(key)]
        if merged:
            node.value = _merged_pairs(node, merged)
        return node

    def _alias(self, event: Any, parent: yaml.Node | None, index: Any) -> Any:
        self._aliases += 1
        if self._aliases > self._bounds.aliases:
            expected = f"at most {self._bounds.aliases:,}" if self._bounds.aliases else "none"
            raise LineFault(0, f"has YAML aliases (*{event.anchor}), expected {expected}")
        node = super().compose_node(parent, index)
        if id(node) not in self._extents:
            raise LineFault(_line(event), f"*{event.anchor} contains itself")
        self._add(event, *self._extents[id(node)])
        return node

    def _add(self, event: Any, parts: int, size: int, depth: int) -> None:
        """Count a node; raise `LineFault` if the text exceeds a limit."""
        bounds = self._bounds
        self._parts += parts
        self._size += size
        self._deepest = max(self._deepest, self._level + depth)
        if self._deepest > bounds.depth:
            words = f"is nested more than {bounds.depth} levels deep: use fewer"
            raise LineFault(_line(event), words)
        if self._parts > bounds.parts:
            raise LineFault(0, f"has more than {bounds.parts:,} parts, aliases written out")
        if self._size > bounds.size:
            raise LineFault(0, f"has more than {bounds.size:,} characters, aliases written out")


class _TextLoader(_Composer, getattr(yaml, "CBaseLoader", yaml.BaseLoader)):  # type: ignore[misc]
    """Reads every scalar as text."""


class _ValueLoader(_Composer, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads scalars with the tags of YAML 1.1."""


def _is_merge(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value == "<<" and not key.style


def _merged_pairs(
    node: yaml.MappingNode, merged: list[yaml.Node]
) -> list[tuple[yaml.Node, yaml.Node]]:
    """Return the pairs of a mapping and its merged mappings; the first pair of a key counts."""
    pairs = [pair for pair in node.value if not _is_merge(pair[0])]
    names = {str(key.value) for key, _ in pairs}
    several = (value.value if isinstance(value, yaml.SequenceNode) else [value] for value in merged)
    for other in chain.from_iterable(several):
        if not isinstance(other, yaml.MappingNode):
            raise fault_at(node, "'<<' merges a value that is not a mapping")
        new = [pair for pair in other.value if str(pair[0].value) not in names]
        names.update(str(key.value) for key, _ in new)
        pairs += new
    return pairs


class _Constructor(yaml.constructor.SafeConstructor):
    """Raises faults with a line for scalars that do not fit their tag, such as `!!int ""`."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except _BAD_SCALAR:
            kind = node.tag.rpartition(":")[2]
            message = f"broken YAML: this is not a value of type {kind}"
            raise LineFault(line_of(node), message) from None

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise LineFault(line_of(node), "a repeated key, expected each once")
        return mapping

    def construct_scalar(self, node: Any) -> Any:
        if node.tag != _TEXT and len(node.value) > MAX_NUMBER:
            raise ValueError(f"{len(node.value):,} characters")
        return super().construct_scalar(node)


def _compose(text: str, bounds: YamlBounds, loader_of: Any, path: str = "") -> yaml.Node | None:
    if len(text) > bounds.size:
        raise LineFault(0, f"has {len(text):,} characters, expected at most {bounds.size:,}")
    try:
        loader = loader_of(text, bounds, path)
        try:
            node: yaml.Node | None = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        # A fault at the end of the text is one of the last line.
        last = text.removesuffix("\n").count("\n")
        mark = error.problem_mark
        line = min(text.count("\n", 0, mark.index), last) + 1 if mark else 0
        raise LineFault(line, _message(error)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise LineFault(0, _message(error)) from None
    return node


def _value(constructor: Any, node: yaml.Node) -> Any:
    try:
        return constructor.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise LineFault(mark.line + 1 if mark else 0, _message(error)) from None


def _message(error: Exception) -> str:
    text = (error.problem or error.context) if isinstance(error, yaml.MarkedYAMLError) else error
    return f"broken YAML: {' '.join(str(text).split())}"


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0
