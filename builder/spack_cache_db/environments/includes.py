"""Configuration that an environment includes, merged with its own as Spack merges scopes.

The rules are those of Spack 1.1's `config.py` and its documentation ("Configuration Scopes",
"Include Settings"). The environment stands above what it includes, an include above later ones,
and a file above what it includes itself. Mappings are merged; lists of higher scopes come first;
any other value takes the place of a lower one. A key that ends in `::` replaces what is below,
`+:` puts its text or list before it, and `-:` behind it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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
"""The sections that matter to what is asked for."""

MOST_FILES = 256
MOST_BYTES = 2**24
MOST_PARTS = 50_000
"""Values in all included files."""

_INCLUDE_KEYS = {
    *("path", "when", "optional", "name", "sha256"),
    *("path_override_env_var", "prefer_modify", "backwards_compat"),
}
_GIT_KEYS = {"git", "branch", "commit", "tag", "paths"}
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*://")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(slots=True)
class SpackConfiguration:
    """What an environment and its includes say together.

    Attributes:
        sections: the merged node of each of `SECTIONS` that there is.
        missing: the includes that cannot be opened, as they are written.
        undecided: the includes whose `when:` is not known, with the reason.
        lockfiles: the includes of lockfiles by the environment itself.
        unused: the includes of lockfiles by other files, which Spack ignores.
    """

    sections: dict[str, yaml.Node]
    missing: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    lockfiles: list[IncludedLockfile] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


class IncludedLockfile(NamedTuple):
    """An include of a lockfile: its path as it is written and as it is opened, and its node."""

    written: str
    place: str
    node: yaml.Node
    is_optional: bool = False


def merged_configuration(
    section: yaml.Node, path: str, surroundings: Surroundings
) -> SpackConfiguration:
    """Return what the section `spack` of an environment says together with its includes.

    Args:
        section: the node of the section.
        path: the path of the environment's file.
        surroundings: where includes are found, and what their conditions ask for.

    Raises:
        LineFault: an include cannot be read, or is no configuration.
    """
    reader = _Includes(surroundings)
    # From the highest scope to the lowest.
    scopes = [*reader.scopes(section, path, ())]
    merging = _Merging()
    found = scopes[-1]
    for scope in reversed(scopes[:-1]):
        found = merging.merged(found, scope)
    return replace(reader.configuration, sections=sections_of(found))


def sections_of(node: yaml.Node) -> dict[str, yaml.Node]:
    """Return those of `SECTIONS` that a configuration has."""
    entries = entries_of(node, "a configuration")
    return {name: entries[name] for name in SECTIONS if name in entries}


class _Includes:
    """Reads the files that are included, each once."""

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
            raise fault_at(included, "expected a list of paths here: lines that begin with '- '")
        for each in included.value:
            yield from self._included(each, path, chain)

    def _included(self, node: yaml.Node, path: str, chain: tuple[str, ...]) -> Iterator[yaml.Node]:
        if isinstance(node, yaml.MappingNode):
            entries = entries_of(node, "an include")
            if unknown := entries.keys() - _INCLUDE_KEYS - _GIT_KEYS:
                raise fault_at(node, f"{min(unknown)}: is not known here, expected path: and when:")
            # Spack includes a lockfile whatever its `when:` says.
            is_lock = (
                _is_lockfile(text_of(entries["path"], "a path")) if "path" in entries else False
            )
            if not is_lock and not self._applies(entries, node):
                return
            if "git" in entries:
                self._miss(text_of(entries["git"], "an address"), entries)
                return
            if "path" not in entries:
                raise fault_at(node, "expected path: here")
            written = text_of(entries["path"], "a path")
            if "path_override_env_var" in entries:
                name = text_of(entries["path_override_env_var"], "a variable")
                written = self._surroundings.variables.get(name, written)
        else:
            entries, written = {}, text_of(node, "a path")
        yield from self._file(written, path, entries, node, chain)

    def _applies(self, entries: Mapping[str, yaml.Node], node: yaml.Node) -> bool:
        if "when" not in entries:
            return True
        named = entries.get("path", entries.get("git"))
        name = "an include" if named is None else text_of(named, "a path")
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
        """Yield the scopes of one include."""
        place = place_of(written, including, self._surroundings)
        if _is_lockfile(place):
            lockfile = IncludedLockfile(written, place, node, _is_optional(entries))
            if chain:
                self.configuration.unused.append(written)
            else:
                self.configuration.lockfiles.append(lockfile)
            return
        if place in chain:
            raise fault_at(node, f"{written} includes itself")
        if place in self._read:
            return
        if len(self._read) == MOST_FILES:
            raise fault_at(node, f"includes more than {MOST_FILES} files")
        found = None if _ADDRESS.match(place) else self._surroundings.open(place)
        if found is None:
            self._miss(written, entries)
            return
        self._read.add(place)
        if isinstance(found, bytes):
            parts = [(place, found)]
        else:
            parts = [(posixpath.join(place, name), data) for name, data in sorted(found.items())]
        self._bytes += sum(len(data) for _, data in parts)
        if self._bytes > MOST_BYTES:
            raise fault_at(node, f"includes more than {MOST_BYTES:,} bytes")
        nodes = [_top(self._composed(data, path, node), path) for path, data in parts]
        # What a folder's `include.yaml` names stands beside it.
        inside = place if isinstance(found, bytes) else posixpath.join(place, "include.yaml")
        yield from self.scopes(_mapping_of(nodes, place), inside, (*chain, place))

    def _composed(self, data: bytes, path: str, including: yaml.Node) -> yaml.Node | None:
        found = compose(decoded(data, path), path=path)
        self._parts += part_count(found) if found is not None else 0
        if self._parts > MOST_PARTS:
            raise fault_at(including, f"includes more than {MOST_PARTS:,} values")
        return found


def _is_lockfile(path: str) -> bool:
    return posixpath.basename(path) == "spack.lock"


def _is_optional(entries: Mapping[str, yaml.Node]) -> bool:
    optional = entries.get("optional")
    return optional is not None and text_of(optional, "true or false").lower() in ("true", "yes")


def place_of(written: str, including: str, surroundings: Surroundings) -> str:
    """Return the path that a file names, as far as its variables are known.

    Args:
        written: the path as it is written, or an address.
        including: the path of the file in which it stands.
        surroundings: the variables.
    """
    known = surroundings.variables
    text = _VARIABLE.sub(lambda name: known.get(name[1] or name[2], name[0]), written)
    if text.startswith("~/"):
        text = known.get("HOME", "~") + text[1:]
    text = text.removeprefix("file://")
    if _ADDRESS.match(text):
        return text
    return posixpath.normpath(posixpath.join(posixpath.dirname(including), text))


def merged(low: yaml.Node, high: yaml.Node) -> yaml.Node:
    """Return what two scopes say of one section."""
    return _Merging().merged(low, high)


def condition_holds(
    node: yaml.Node, surroundings: Surroundings, name: str, undecided: list[str]
) -> bool:
    """Return whether a `when:` holds; if that is not known, add the reason to `undecided`.

    Raises:
        LineFault: it is not a text.
    """
    try:
        found = holds(text_of(node, "a condition"), surroundings.names, surroundings.env)
        reason = ""
    except ExpressionError as error:
        found, reason = None, f" (line {line_of(node)} {error})"
    if found is None:
        undecided.append(f"{name}{reason}")
    return bool(found)


def _top(node: yaml.Node | None, path: str) -> yaml.MappingNode:
    """Return the sections of a file, which may stand under `spack`."""
    if node is None or is_nothing(node):
        return _mapping_of([], path)
    entries = entries_of(node, "a configuration")
    inner = next((entries[key] for key in TOP_KEYS if key in entries), node)
    entries_of(inner, "a configuration")
    return inner if isinstance(inner, yaml.MappingNode) else _mapping_of([], path)


def _mapping_of(nodes: list[yaml.MappingNode], path: str) -> yaml.MappingNode:
    """Return the sections of all files of a folder."""
    pairs = [pair for node in nodes for pair in node.value]
    start = yaml.Mark(path, 0, 0, 0, None, 0)
    return yaml.MappingNode("tag:yaml.org,2002:map", pairs, start, start)


class _Merging:
    """Merges nodes. Values are the same if they say the same, wherever they stand."""

    def __init__(self) -> None:
        self._kept: list[yaml.Node] = []
        self._merged: dict[tuple[int, int, str], yaml.Node] = {}
        self._identities: dict[int, int | None] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    def merged(self, low: yaml.Node, high: yaml.Node, how: str = "") -> yaml.Node:
        """Return what two scopes say; the higher one's key says `how`."""
        key = id(low), id(high), how
        if key not in self._merged:
            # A node that was freed could give its id to another one.
            self._kept += low, high
            self._merged[key] = self._both(low, high, how)
        return self._merged[key]

    def _both(self, low: yaml.Node, high: yaml.Node, how: str) -> yaml.Node:
        if isinstance(low, yaml.MappingNode) and isinstance(high, yaml.MappingNode):
            return self._mapping(low, high)
        if isinstance(low, yaml.SequenceNode) and isinstance(high, yaml.SequenceNode):
            return self._sequence(low, high, how)
        if how and isinstance(low, yaml.ScalarNode) and isinstance(high, yaml.ScalarNode):
            value = high.value + low.value if how == "+" else low.value + high.value
            return yaml.ScalarNode(high.tag, value, high.start_mark, high.end_mark, high.style)
        return high

    def _mapping(self, low: yaml.MappingNode, high: yaml.MappingNode) -> yaml.MappingNode:
        below = {key_of(key)[0]: (key, value) for key, value in low.value}
        found: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in high.value:
            name, how = key_of(key)
            lower = below.pop(name, None)
            if lower is not None and how != ":":
                value = self.merged(lower[1], value, how)
            found.append((key, value))
        found += below.values()
        return yaml.MappingNode(high.tag, found, high.start_mark, high.end_mark)

    def _sequence(
        self, low: yaml.SequenceNode, high: yaml.SequenceNode, how: str
    ) -> yaml.SequenceNode:
        above = {self._identity(each) for each in high.value}
        rest = [each for each in low.value if self._identity(each) not in above]
        items = rest + high.value if how == "-" else high.value + rest
        return yaml.SequenceNode(high.tag, items, high.start_mark, high.end_mark)

    def _identity(self, node: yaml.Node) -> int:
        """Return a number that all nodes of one value have; each node is looked at once."""
        key = id(node)
        if key in self._identities:
            known = self._identities[key]
            if known is None:
                raise fault_at(node, "this stands within itself")
            return known
        self._kept.append(node)
        self._identities[key] = None
        value: tuple[object, ...]
        if isinstance(node, yaml.MappingNode):
            pairs = ((key_of(key), self._identity(value)) for key, value in node.value)
            value = ("map", frozenset(pairs))
        elif isinstance(node, yaml.SequenceNode):
            value = ("list", tuple(map(self._identity, node.value)))
        else:
            value = ("text", node.value)
        number = self._numbers.setdefault(value, len(self._numbers))
        self._identities[key] = number
        return number
