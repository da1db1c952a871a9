"""Merges an environment's configuration with its includes, as Spack merges scopes.

A scope is a file, or a folder of files such as `packages.yaml`, with settings for
Spack. An environment has precedence over the scopes that it includes, and each of these
over later ones. With

    spack: {include: [site.yaml], packages: {hdf5: {require: [+mpi]}}}     # spack.yaml
    packages: {hdf5: {require: ['@1.14']}, zlib: {require: +pic}}          # site.yaml

the merged section `packages` is `{hdf5: {require: [+mpi, '@1.14']}, zlib: …}`: mappings
are merged, lists of higher scopes come first, and other values replace lower ones. A
key that ends in `::` replaces the lower value, `+:` puts its text or list before it,
and `-:` behind it.

The rules are those of Spack 1.2's `config.py` and its documentation ("Configuration
Scopes", "Include Settings"). The condition of an include (`when:`) is evaluated by
`expressions`.
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
    required_node,
    text_at,
    text_of,
)
from spack_cache_db.environments.decoding import decoded
from spack_cache_db.environments.expressions import (
    ExpressionError,
    evaluate_condition,
)
from spack_cache_db.environments.key_check import refuse_unknown_keys, unknown_keys
from spack_cache_db.environments.known_keys import KEYS_OF_AN_INCLUDE
from spack_cache_db.environments.model import Surroundings
from spack_cache_db.errors import LineFault

TOP_KEYS = ("spack", "env")
"""The top-level key of a `spack.yaml`; `env` in old files."""

SECTIONS = ("packages", "definitions", "toolchains", "concretizer", "mirrors")
"""The sections that select binaries."""

MOST_FILES = 256
"""Maximum of included files and folders."""
MOST_BYTES = 2**24
"""Maximum size of all included files."""
MOST_PARTS = 50_000
"""Maximum of values in all included files."""

_LOCKFILE = "spack.lock"
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*://")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
"""A variable in a path: `${HOME}` or `$HOME`."""


class IncludedLockfile(NamedTuple):
    """An include of a lockfile.

    Attributes:
        written: its path as it is written.
        path: its path as it is opened.
        node: the node of the include, for faults.
        is_optional: whether the lockfile may be missing.
    """

    written: str
    path: str
    node: yaml.Node
    is_optional: bool = False


@dataclass(slots=True)
class SpackConfiguration:
    """The merged configuration of an environment and its includes.

    Attributes:
        sections: the merged nodes of `SECTIONS`, by name.
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
    """Return the configuration of an environment, merged with its includes.

    Args:
        section: the value of `spack:`.
        path: the path of the environment, to which the paths of includes are relative.
        surroundings: the files that can be opened, and the values of conditions.

    Raises:
        LineFault: an include cannot be read, or is not a configuration.
    """
    reader = _IncludeReader(surroundings)
    highest_first = list(reader.scopes(section, path, ()))
    # Merge the scopes into one node, from the lowest to the highest.
    node = highest_first.pop()
    while highest_first:
        node = merged(node, highest_first.pop())
    return replace(reader.configuration, sections=sections_of(node))


def spack_section(entries: Mapping[str, yaml.Node]) -> yaml.Node | None:
    """Return the value of `spack:`, or `env:` in old files; None if there is none."""
    for key in TOP_KEYS:
        if key in entries:
            return entries[key]
    return None


def sections_of(node: yaml.Node) -> dict[str, yaml.Node]:
    """Return the nodes of `SECTIONS` in a configuration, by name."""
    entries = entries_of(node, "a configuration")
    return {name: entries[name] for name in SECTIONS if name in entries}


class _Include(NamedTuple):
    """An entry of `include:`, with its path or URL as it is written."""

    path: str
    is_optional: bool = False


class _IncludeReader:
    """Reads the included files, each once.

    In its methods, `chain` has the paths of the included files that lead to the file
    that is read: empty for the environment, then the file that it includes, and so on.

    Attributes:
        configuration: what is found besides the sections.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self.configuration = SpackConfiguration({})
        self._surroundings = surroundings
        self._read_paths: set[str] = set()
        # The size of all files so far.
        self._byte_count = 0
        self._part_count = 0

    def scopes(
        self, node: yaml.Node, path: str, chain: tuple[str, ...]
    ) -> Iterator[yaml.Node]:
        """Yield the sections of a file, then those of each of its includes.

        So the scopes come in the order of their precedence, the highest first.
        """
        # The file itself.
        entries = entries_of(node, "a configuration")
        unknown = unknown_keys(node)
        self.configuration.faults += unknown.faults
        self.configuration.notes += unknown.notes
        yield node

        # Its includes, each with those below it.
        included = entries.get("include")
        if included is None or is_nothing(included):
            return
        if not isinstance(included, yaml.SequenceNode):
            message = "expected a list of paths: lines that begin with '- '"
            raise fault_at(included, message)
        for include_node in included.value:
            include = self._include(include_node)
            if include is not None:
                yield from self._scopes_of(include, include_node, path, chain)

    def _include(self, node: yaml.Node) -> _Include | None:
        """Return an entry of `include:`; None if it is not read.

        It is not read if its condition is false or unknown, or if it is a repository.
        """
        # A text is a path.
        if not isinstance(node, yaml.MappingNode):
            return _Include(text_of(node, "a path"))

        # A mapping has a path or a repository.
        entries = entries_of(node, "an include")
        refuse_unknown_keys(node, KEYS_OF_AN_INCLUDE)
        optional = text_at(entries, "optional", "true or false")
        is_optional = optional.lower() in ("true", "yes")
        path = text_at(entries, "path", "a path")
        git = text_at(entries, "git", "an address")

        # Spack includes a lockfile even if its `when:` is false.
        if "when" in entries and posixpath.basename(path) != _LOCKFILE:
            name = path or git or "an include"
            undecided = self.configuration.undecided
            if not when_applies(entries["when"], self._surroundings, name, undecided):
                return None

        # A repository would have to be cloned.
        if "git" in entries:
            self._add_missing(git, is_optional=is_optional)
            return None

        # An environment variable may have a path that replaces the written one.
        required_node(entries, "path", node)
        variable = text_at(entries, "path_override_env_var", "a variable")
        path = self._surroundings.variables.get(variable, path)
        return _Include(path, is_optional)

    def _add_missing(self, path: str, *, is_optional: bool) -> None:
        """Record an include that cannot be read; Spack skips optional ones as well."""
        if not is_optional:
            self.configuration.missing.append(path)

    def _scopes_of(
        self, include: _Include, node: yaml.Node, including: str, chain: tuple[str, ...]
    ) -> Iterator[yaml.Node]:
        """Yield the scope of an include, and those that it includes.

        A lockfile is not a scope: it is recorded, as a missing file is. `including` is
        the path of the file that has the include.
        """
        written = include.path
        path = resolved_path(written, including, self._surroundings)

        # Spack reads a lockfile only if the environment itself includes it.
        if posixpath.basename(path) == _LOCKFILE:
            if chain:
                self.configuration.unused.append(written)
            else:
                lockfile = IncludedLockfile(written, path, node, include.is_optional)
                self.configuration.lockfiles.append(lockfile)
            return

        # A file that is included again is a scope already.
        if path in chain:
            raise fault_at(node, f"{written} includes itself")
        if path in self._read_paths:
            return
        if len(self._read_paths) == MOST_FILES:
            raise fault_at(node, f"includes more than {MOST_FILES} files")

        # URLs are not downloaded.
        content = None
        if not _URL.match(path):
            content = self._surroundings.open(path)
        if content is None:
            self._add_missing(written, is_optional=include.is_optional)
            return
        self._read_paths.add(path)

        # A folder has several files, which are one scope. The paths in its
        # `include.yaml` are relative to the folder.
        if isinstance(content, bytes):
            files = {path: content}
            path_of_scope = path
        else:
            files = {}
            for name, data in sorted(content.items()):
                files[posixpath.join(path, name)] = data
            path_of_scope = posixpath.join(path, "include.yaml")
        scope = self._joined(files, path, node)
        yield from self.scopes(scope, path_of_scope, (*chain, path))

    def _joined(
        self, files: Mapping[str, bytes], path: str, node: yaml.Node
    ) -> yaml.MappingNode:
        """Return the sections of all files of a scope in one mapping.

        Args:
            files: the bytes of each file, by path.
            path: the path of the file or folder.
            node: the include, for faults.
        """
        pairs: list[tuple[yaml.Node, yaml.Node]] = []
        for file_path, data in files.items():
            self._byte_count += len(data)
            if self._byte_count > MOST_BYTES:
                raise fault_at(node, f"includes more than {MOST_BYTES:,} bytes")
            top = compose(decoded(data, file_path), path=file_path)
            # An empty file sets nothing.
            if top is None or is_nothing(top):
                continue
            self._part_count += part_count(top)
            if self._part_count > MOST_PARTS:
                raise fault_at(node, f"includes more than {MOST_PARTS:,} values")
            pairs += _section_pairs(top)
        start = yaml.Mark(path, 0, 0, 0, None, 0)
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, start, start)


def _section_pairs(top: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    """Return the keys and values of a file's sections, which may be below `spack:`."""
    entries = entries_of(top, "a configuration")
    section = spack_section(entries)
    if section is None:
        section = top
    # Refuse what is not a mapping, or has a key twice.
    entries_of(section, "a configuration")
    if not isinstance(section, yaml.MappingNode):
        return []
    pairs: list[tuple[yaml.Node, yaml.Node]] = section.value
    return pairs


def resolved_path(written: str, including: str, surroundings: Surroundings) -> str:
    """Return a path as it is opened, or a URL, with the values of its variables.

    `$base/../gpu.yaml` is `/site/gpu.yaml` if `base` is `/site/common`, and `gpu.yaml`
    is `/e/gpu.yaml`.

    Args:
        written: the path as it is written in a file.
        including: the path of the file, `/e/spack.yaml` in the example.
        surroundings: the values of the variables.
    """
    values = surroundings.variables

    def value_of(variable: re.Match[str]) -> str:
        # A variable without a known value stays as it is written.
        name = variable[1] or variable[2]
        return values.get(name, variable[0])

    path = _VARIABLE.sub(value_of, written)
    if path.startswith("~/"):
        path = values.get("HOME", "~") + path[1:]
    path = path.removeprefix("file://")
    if _URL.match(path):
        return path
    folder = posixpath.dirname(including)
    return posixpath.normpath(posixpath.join(folder, path))


def when_applies(
    node: yaml.Node, surroundings: Surroundings, name: str, undecided: list[str]
) -> bool:
    """Return whether a condition is true; False if that is unknown.

    Args:
        node: the value of `when:`.
        surroundings: the values of names in the condition.
        name: the name of what has the condition; if the answer is unknown, it is added
            to `undecided`.
        undecided: a list for such names.

    Raises:
        LineFault: it is not a text.
    """
    text = text_of(node, "a condition")
    try:
        answer = evaluate_condition(text, surroundings.names, surroundings.env)
    except ExpressionError as error:
        undecided.append(f"{name} (line {line_of(node)} {error})")
        return False
    if answer is None:
        undecided.append(name)
        return False
    return answer


def merged(low: yaml.Node, high: yaml.Node, suffix: str = "") -> yaml.Node:
    """Return a value merged from two scopes.

    Args:
        low: the value of the lower scope.
        high: the value of the higher scope, which has precedence.
        suffix: the end of the higher scope's key, `+` or `-`; empty for others.
    """
    start = high.start_mark
    end = high.end_mark
    if isinstance(low, yaml.MappingNode) and isinstance(high, yaml.MappingNode):
        pairs = _merged_pairs(low, high)
        return yaml.MappingNode(high.tag, pairs, start, end)

    # Two lists become one. An item of both counts once, in the higher list.
    if isinstance(low, yaml.SequenceNode) and isinstance(high, yaml.SequenceNode):
        higher = {_hashable(item) for item in high.value}
        only_low = [item for item in low.value if _hashable(item) not in higher]
        items = high.value + only_low
        if suffix == "-":
            items = only_low + high.value
        return yaml.SequenceNode(high.tag, items, start, end)

    # Texts are joined only if the key has a suffix.
    if isinstance(low, yaml.ScalarNode) and isinstance(high, yaml.ScalarNode):
        text = high.value
        if suffix == "+":
            text = high.value + low.value
        elif suffix == "-":
            text = low.value + high.value
        return yaml.ScalarNode(high.tag, text, start, end, high.style)

    # Of values of different kinds, the higher one replaces the lower one.
    return high


def _merged_pairs(
    low: yaml.MappingNode, high: yaml.MappingNode
) -> list[tuple[yaml.Node, yaml.Node]]:
    """Return the keys and values of two mappings.

    Those of the higher one come first, then the keys that only the lower one has.
    """
    low_pairs = {}
    for key, value in low.value:
        name, _ = key_of(key)
        low_pairs[name] = (key, value)

    pairs: list[tuple[yaml.Node, yaml.Node]] = []
    for key, value in high.value:
        name, suffix = key_of(key)
        low_pair = low_pairs.pop(name, None)
        # The suffix `:` of a key such as `packages::` replaces the lower value.
        if low_pair is not None and suffix != ":":
            _, low_value = low_pair
            value = merged(low_value, value, suffix)
        pairs.append((key, value))
    pairs += low_pairs.values()
    return pairs


def _hashable(node: yaml.Node) -> tuple[str, object]:
    """Return a value that is equal for nodes of equal content."""
    if isinstance(node, yaml.MappingNode):
        pairs = [(key_of(key), _hashable(value)) for key, value in node.value]
        return "map", frozenset(pairs)
    if isinstance(node, yaml.SequenceNode):
        return "list", tuple(_hashable(item) for item in node.value)
    return "text", node.value
