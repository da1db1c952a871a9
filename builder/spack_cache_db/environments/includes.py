"""Merges an environment's configuration with its includes, as Spack merges scopes.

The rules are those of Spack 1.2's `config.py` and its documentation ("Configuration
Scopes", "Include Settings"). A file has precedence over its includes, and an include
over later ones. Mappings are merged; lists of higher scopes come first; other values
replace lower ones. A key that ends in `::` replaces the lower value, `+:` puts its text
or list before it, and `-:` behind it.

The `when:` of an include or a definition is a Python expression, which is never run: it
is parsed with `ast`, and comparisons, `and`, `or`, `not`, `in`, constants and a few
calls are evaluated. A regular expression may only be a text with `^`, `$` and `.*`
around it, because others can take
unlimited time. The names are those of `eval_conditional`: `platform`, `os`, `target`,
`arch_str`
and `hostname` are texts, `arch` and `architecture` a spec that `satisfies` others,
`env` has the environment variables, and `re` searches.
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
from spack_cache_db.environments.decoding import TOP_KEYS, decoded
from spack_cache_db.environments.expressions import ExpressionError, holds
from spack_cache_db.environments.key_check import refuse_unknown_keys, unknown_keys
from spack_cache_db.environments.known_keys import KEYS_OF_AN_INCLUDE
from spack_cache_db.environments.model import Surroundings
from spack_cache_db.errors import LineFault

SECTIONS = ("packages", "definitions", "toolchains", "concretizer", "mirrors")
"""The sections that select binaries."""

MOST_FILES = 256
MOST_BYTES = 2**24
MOST_PARTS = 50_000
"""Maximum of values in all included files."""

_LOCKFILE = "spack.lock"
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*://")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class IncludedLockfile(NamedTuple):
    """An include of a lockfile, with its path as it is written and as it is opened."""

    written: str
    path: str
    node: yaml.Node
    is_optional: bool = False


@dataclass(slots=True)
class SpackConfiguration:
    """The merged configuration of an environment and its includes.

    Attributes:
        sections: the merged nodes of `SECTIONS`.
        missing: the includes that cannot be opened, as they are written.
        undecided: the includes whose `when:` is unknown, with the reason.
        lockfiles: the lockfiles that the environment itself includes.
        unused: the lockfiles that other files include, which Spack ignores.
        faults: the keys that Spack refuses, in the environment and its includes.
        notes: the keys that Spack ignores.
    """

    sections: dict[str, yaml.Node]
    missing: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    lockfiles: list[IncludedLockfile] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    faults: list[LineFault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merged_configuration(
    section: yaml.Node, path: str, surroundings: Surroundings
) -> SpackConfiguration:
    """Return the section `spack` of the environment at `path`, merged with its
    includes.

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

    def scopes(
        self, node: yaml.Node, path: str, chain: tuple[str, ...]
    ) -> Iterator[yaml.Node]:
        """Yield the sections of a file, then those of each of its includes, highest
        first.
        """
        entries = entries_of(node, "a configuration")
        unknown = unknown_keys(node)
        self.configuration.faults += unknown.faults
        self.configuration.notes += unknown.notes
        yield node
        included = entries.get("include")
        if included is None or is_nothing(included):
            return
        if not isinstance(included, yaml.SequenceNode):
            raise fault_at(
                included, "expected a list of paths: lines that begin with '- '"
            )
        for include in included.value:
            yield from self._included(include, path, chain)

    def _included(
        self, node: yaml.Node, including: str, chain: tuple[str, ...]
    ) -> Iterator[yaml.Node]:
        """Yield the scopes of an include; lockfiles and missing files are recorded."""
        configuration, is_optional = self.configuration, False
        if isinstance(node, yaml.MappingNode):
            entries = entries_of(node, "an include")
            refuse_unknown_keys(node, KEYS_OF_AN_INCLUDE)
            if "optional" in entries:
                optional = text_of(entries["optional"], "true or false")
                is_optional = optional.lower() in ("true", "yes")
            path, git = (
                text_of(entries[key], word) if key in entries else ""
                for key, word in (("path", "a path"), ("git", "an address"))
            )
            # Spack includes a lockfile even if its `when:` is false.
            if "when" in entries and posixpath.basename(path) != _LOCKFILE:
                name = path or git or "an include"
                if not condition_holds(
                    entries["when"], self._surroundings, name, configuration.undecided
                ):
                    return
            if "git" in entries:
                configuration.missing += [] if is_optional else [git]
                return
            if "path" not in entries:
                raise fault_at(node, "expected the key path:")
            if "path_override_env_var" in entries:
                name = text_of(entries["path_override_env_var"], "a variable")
                path = self._surroundings.variables.get(name, path)
        else:
            path = text_of(node, "a path")
        address = resolved_path(path, including, self._surroundings)
        if posixpath.basename(address) == _LOCKFILE:
            if chain:
                configuration.unused.append(path)
            else:
                configuration.lockfiles.append(
                    IncludedLockfile(path, address, node, is_optional)
                )
            return
        if address in chain:
            raise fault_at(node, f"{path} includes itself")
        if address in self._read:
            return
        if len(self._read) == MOST_FILES:
            raise fault_at(node, f"includes more than {MOST_FILES} files")
        content = None if _ADDRESS.match(address) else self._surroundings.open(address)
        if content is None:
            configuration.missing += [] if is_optional else [path]
            return
        self._read.add(address)
        yield from self._content(address, content, node, chain)

    def _content(
        self,
        address: str,
        content: bytes | Mapping[str, bytes],
        node: yaml.Node,
        chain: tuple[str, ...],
    ) -> Iterator[yaml.Node]:
        """Yield the scopes of an included file, or of the files of a folder."""
        if isinstance(content, bytes):
            files, inside = {address: content}, address
        else:
            files = {
                posixpath.join(address, name): data
                for name, data in sorted(content.items())
            }
            # Paths in a folder's `include.yaml` are relative to the folder.
            inside = posixpath.join(address, "include.yaml")
        pairs: list[tuple[yaml.Node, yaml.Node]] = []
        for path, data in files.items():
            self._bytes += len(data)
            if self._bytes > MOST_BYTES:
                raise fault_at(node, f"includes more than {MOST_BYTES:,} bytes")
            top = compose(decoded(data, path), path=path)
            if top is None or is_nothing(top):
                continue
            self._parts += part_count(top)
            if self._parts > MOST_PARTS:
                raise fault_at(node, f"includes more than {MOST_PARTS:,} values")
            # The sections of a file may be under the key `spack`.
            entries = entries_of(top, "a configuration")
            section = next((entries[key] for key in TOP_KEYS if key in entries), top)
            entries_of(section, "a configuration")
            pairs += section.value if isinstance(section, yaml.MappingNode) else []
        start = yaml.Mark(address, 0, 0, 0, None, 0)
        joined = yaml.MappingNode("tag:yaml.org,2002:map", pairs, start, start)
        yield from self.scopes(joined, inside, (*chain, address))


def resolved_path(written: str, including: str, surroundings: Surroundings) -> str:
    """Return a path or URL in the file `including`, with the values of its known
    variables.
    """
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
        answer = holds(
            text_of(node, "a condition"), surroundings.names, surroundings.env
        )
        reason = ""
    except ExpressionError as error:
        answer, reason = None, f" (line {line_of(node)} {error})"
    if answer is None:
        undecided.append(f"{name}{reason}")
    return bool(answer)


def merged(low: yaml.Node, high: yaml.Node, how: str = "") -> yaml.Node:
    """Return a section merged from two scopes; `how` is the suffix of the higher one's
    key.
    """
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
        return yaml.ScalarNode(
            high.tag, text, high.start_mark, high.end_mark, high.style
        )
    return high


def _content(node: yaml.Node) -> tuple[str, object]:
    """Return a hashable value that is equal for nodes of equal content."""
    if isinstance(node, yaml.MappingNode):
        return "map", frozenset(
            (key_of(key), _content(value)) for key, value in node.value
        )
    if isinstance(node, yaml.SequenceNode):
        return "list", tuple(map(_content, node.value))
    return "text", node.value
