"""Merges an environment's configuration with its includes, as Spack merges scopes.

The rules are those of Spack 1.1's `config.py` and its documentation ("Configuration Scopes",
"Include Settings"). A file has precedence over its includes, and an include over later ones.
Mappings are merged; lists of higher scopes come first; other values replace lower ones. A key that
ends in `::` replaces the lower value, `+:` puts its text or list before it, and `-:` behind it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple

import yaml

from spack_cache_db.bounded_yaml import (
    compose,
    entries_of,
    fault_at,
    is_nothing,
    key_of,
    line_of,
    part_count,
    text_of,
)
from spack_cache_db.environments import TOP_KEYS, Surroundings, decoded
from spack_cache_db.environments.expressions import ExpressionError, holds

SECTIONS = ("packages", "definitions", "toolchains")
"""The sections that select binaries."""

MOST_FILES = 256
MOST_BYTES = 2**24
MOST_PARTS = 50_000
"""Maximum of values in all included files."""

_INCLUDE_KEYS = {
    *("path", "when", "optional", "name", "sha256"),
    *("path_override_env_var", "prefer_modify", "backwards_compat"),
}
_GIT_KEYS = {"git", "branch", "commit", "tag", "paths"}
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*://")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(slots=True)
class SpackConfiguration:
    """The merged configuration of an environment and its includes.

    Attributes:
        sections: the merged nodes of `SECTIONS`.
        missing: the includes that cannot be opened, as they are written.
        undecided: the includes whose `when:` is unknown, with the reason.
        lockfiles: the lockfiles that the environment itself includes.
        unused: the lockfiles that other files include, which Spack ignores.
    """

    sections: dict[str, yaml.Node]
    missing: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    lockfiles: list[IncludedLockfile] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


class IncludedLockfile(NamedTuple):
    """An include of a lockfile, with its path as it is written and as it is opened."""

    written: str
    path: str
    node: yaml.Node
    is_optional: bool = False


def merged_configuration(
    section: yaml.Node, path: str, surroundings: Surroundings
) -> SpackConfiguration:
    """Return the section `spack` of the environment at `path`, merged with its includes.

    Raises:
        LineFault: an include cannot be read, or is not a configuration.
    """
    reader = _Includes(surroundings)
    # `scopes` yields the highest scope first.
    scopes = reversed([*reader.scopes(section, path, ())])
    return replace(reader.configuration, sections=sections_of(reduce(merged, scopes)))


def sections_of(node: yaml.Node) -> dict[str, yaml.Node]:
    """Return the nodes of `SECTIONS` in a configuration."""
    entries = entries_of(node, "a configuration")
    return {name: entries[name] for name in SECTIONS if name in entries}


class _Includes:
    """Reads the included files, each once."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.configuration = SpackConfiguration({})
        self._surroundings = surroundings
        self._read: set[str] = set()
        self._bytes = 0
        self._parts = 0

    def scopes(self, node: yaml.Node, path: str, chain: tuple[str, ...]) -> Iterator[yaml.Node]:
        """Yield the sections of a file, then those of each of its includes, highest first."""
        entries = entries_of(node, "a configuration")
        yield node
        included = entries.get("include")
        if included is None or is_nothing(included):
            return
        if not isinstance(included, yaml.SequenceNode):
            raise fault_at(included, "expected a list of paths: lines that begin with '- '")
        for include in included.value:
            yield from self._included(include, path, chain)

    def _included(self, node: yaml.Node, path: str, chain: tuple[str, ...]) -> Iterator[yaml.Node]:
        if isinstance(node, yaml.MappingNode):
            entries = entries_of(node, "an include")
            if unknown := entries.keys() - _INCLUDE_KEYS - _GIT_KEYS:
                raise fault_at(node, f"{min(unknown)}: is an unknown key, expected path: and when:")
            # Spack includes a lockfile even if its `when:` is false.
            is_lock = "path" in entries and _is_lockfile(text_of(entries["path"], "a path"))
            if not is_lock and not self._applies(entries):
                return
            if "git" in entries:
                self._miss(text_of(entries["git"], "an address"), entries)
                return
            if "path" not in entries:
                raise fault_at(node, "expected the key path:")
            written = text_of(entries["path"], "a path")
            if "path_override_env_var" in entries:
                name = text_of(entries["path_override_env_var"], "a variable")
                written = self._surroundings.variables.get(name, written)
        else:
            entries, written = {}, text_of(node, "a path")
        yield from self._file(written, path, entries, node, chain)

    def _applies(self, entries: Mapping[str, yaml.Node]) -> bool:
        if "when" not in entries:
            return True
        address = entries.get("path", entries.get("git"))
        name = "an include" if address is None else text_of(address, "a path")
        undecided = self.configuration.undecided
        return condition_holds(entries["when"], self._surroundings, name, undecided)

    def _miss(self, written: str, entries: Mapping[str, yaml.Node]) -> None:
        if not _is_optional(entries):
            self.configuration.missing.append(written)

    def _file(
        self,
        written: str,
        including: str,
        entries: Mapping[str, yaml.Node],
        node: yaml.Node,
        chain: tuple[str, ...],
    ) -> Iterator[yaml.Node]:
        """Yield the scopes of an included file or folder."""
        address = resolved_path(written, including, self._surroundings)
        if _is_lockfile(address):
            lockfile = IncludedLockfile(written, address, node, _is_optional(entries))
            if chain:
                self.configuration.unused.append(written)
            else:
                self.configuration.lockfiles.append(lockfile)
            return
        if address in chain:
            raise fault_at(node, f"{written} includes itself")
        if address in self._read:
            return
        if len(self._read) == MOST_FILES:
            raise fault_at(node, f"includes more than {MOST_FILES} files")
        content = None if _ADDRESS.match(address) else self._surroundings.open(address)
        if content is None:
            self._miss(written, entries)
            return
        self._read.add(address)
        if isinstance(content, bytes):
            parts = [(address, content)]
        else:
            parts = [
                (posixpath.join(address, name), data) for name, data in sorted(content.items())
            ]
        self._bytes += sum(len(data) for _, data in parts)
        if self._bytes > MOST_BYTES:
            raise fault_at(node, f"includes more than {MOST_BYTES:,} bytes")
        nodes = [_top(self._composed(data, path, node), path) for path, data in parts]
        # Paths in a folder's `include.yaml` are relative to the folder.
        inside = address if isinstance(content, bytes) else posixpath.join(address, "include.yaml")
        yield from self.scopes(_joined(nodes, address), inside, (*chain, address))

    def _composed(self, data: bytes, path: str, including: yaml.Node) -> yaml.Node | None:
        node = compose(decoded(data, path), path=path)
        self._parts += part_count(node) if node is not None else 0
        if self._parts > MOST_PARTS:
            raise fault_at(including, f"includes more than {MOST_PARTS:,} values")
        return node


def _is_lockfile(path: str) -> bool:
    return posixpath.basename(path) == "spack.lock"


def _is_optional(entries: Mapping[str, yaml.Node]) -> bool:
    optional = entries.get("optional")
    return optional is not None and text_of(optional, "true or false").lower() in ("true", "yes")


def resolved_path(written: str, including: str, surroundings: Surroundings) -> str:
    """Return a path or URL in the file `including`, with the values of its known variables."""
    values = surroundings.variables
    text = _VARIABLE.sub(lambda name: values.get(name[1] or name[2], name[0]), written)
    if text.startswith("~/"):
        text = values.get("HOME", "~") + text[1:]
    text = text.removeprefix("file://")
    if _ADDRESS.match(text):
        return text
    return posixpath.normpath(posixpath.join(posixpath.dirname(including), text))


def condition_holds(
    node: yaml.Node, surroundings: Surroundings, name: str, undecided: list[str]
) -> bool:
    """Return whether a `when:` holds; if that is unknown, add the name to `undecided`.

    Raises:
        LineFault: it is not a text.
    """
    try:
        answer = holds(text_of(node, "a condition"), surroundings.names, surroundings.env)
        reason = ""
    except ExpressionError as error:
        answer, reason = None, f" (line {line_of(node)} {error})"
    if answer is None:
        undecided.append(f"{name}{reason}")
    return bool(answer)


def _top(node: yaml.Node | None, path: str) -> yaml.MappingNode:
    """Return the sections of a file, which may be under the key `spack`."""
    if node is None or is_nothing(node):
        return _joined([], path)
    entries = entries_of(node, "a configuration")
    inner = next((entries[key] for key in TOP_KEYS if key in entries), node)
    entries_of(inner, "a configuration")
    return inner if isinstance(inner, yaml.MappingNode) else _joined([], path)


def _joined(nodes: list[yaml.MappingNode], path: str) -> yaml.MappingNode:
    """Return one mapping with the entries of all files of a folder."""
    pairs = [pair for node in nodes for pair in node.value]
    start = yaml.Mark(path, 0, 0, 0, None, 0)
    return yaml.MappingNode("tag:yaml.org,2002:map", pairs, start, start)


def merged(low: yaml.Node, high: yaml.Node, how: str = "") -> yaml.Node:
    """Return a section merged from two scopes; `how` is the suffix of the higher one's key."""
    if isinstance(low, yaml.MappingNode) and isinstance(high, yaml.MappingNode):
        below = {key_of(key)[0]: (key, value) for key, value in low.value}
        pairs: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in high.value:
            name, suffix = key_of(key)
            lower = below.pop(name, None)
            if lower is not None and suffix != ":":
                value = merged(lower[1], value, suffix)
            pairs.append((key, value))
        pairs += below.values()
        return yaml.MappingNode(high.tag, pairs, high.start_mark, high.end_mark)
    if isinstance(low, yaml.SequenceNode) and isinstance(high, yaml.SequenceNode):
        above = {*map(_content, high.value)}
        lower_items = [item for item in low.value if _content(item) not in above]
        items = lower_items + high.value if how == "-" else high.value + lower_items
        return yaml.SequenceNode(high.tag, items, high.start_mark, high.end_mark)
    if how and isinstance(low, yaml.ScalarNode) and isinstance(high, yaml.ScalarNode):
        text = high.value + low.value if how == "+" else low.value + high.value
        return yaml.ScalarNode(high.tag, text, high.start_mark, high.end_mark, high.style)
    return high


def _content(node: yaml.Node) -> tuple[str, object]:
    """Return a hashable value that is equal for nodes of equal content."""
    if isinstance(node, yaml.MappingNode):
        return "map", frozenset((key_of(key), _content(value)) for key, value in node.value)
    if isinstance(node, yaml.SequenceNode):
        return "list", tuple(map(_content, node.value))
    return "text", node.value
