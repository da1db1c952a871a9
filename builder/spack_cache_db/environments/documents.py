"""Decides the kind of a YAML or JSON document by its keys, and finds documents in a
text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from spack_cache_db.environments.known_keys import SECTIONS_OF_SPACK
from spack_cache_db.environments.pasted.quotes import has_prompt
from spack_cache_db.errors import LineFault

EXPECTED = "expected a spack.yaml, a spack.lock, or one spec on each line"


class Kind(Enum):
    """A kind of document."""

    MANIFEST = auto()
    LOCKFILE = auto()
    SPEC_FILE = auto()
    CONDA = auto()
    INDEX = auto()
    BUILD_CACHE_MANIFEST = auto()
    SPACK_SECTION = auto()
    OTHER = auto()


MANIFEST_KEYS = frozenset(("spack", "env", "specs", "definitions", "packages"))
"""The keys of an environment, and of a `packages.yaml`."""

_OTHER_SECTIONS = SECTIONS_OF_SPACK - MANIFEST_KEYS
"""The sections of Spack's configuration that are not an environment."""

_CONDA_KEYS = frozenset(("name", "channels", "dependencies", "prefix", "variables"))
MOST_KEYS = 5
"""Maximum of keys that a message names."""
_OVERRIDE = re.compile(r"[+-]?:\Z")
"""The end of a key that replaces, prepends or appends a section, such as
`packages::`.
"""


def kind_of(keys: Collection[str]) -> Kind:
    """Return the kind of a document, given the keys of its mapping; none for a list."""
    names = {_OVERRIDE.sub("", key) for key in keys}
    if names & {"concrete_specs", "_meta"}:
        return Kind.LOCKFILE
    if names & MANIFEST_KEYS:
        return Kind.MANIFEST
    if "spec" in names:
        return Kind.SPEC_FILE
    if "database" in names:
        return Kind.INDEX
    if {"version", "data"} <= names:
        return Kind.BUILD_CACHE_MANIFEST
    if "dependencies" in names and names <= _CONDA_KEYS:
        return Kind.CONDA
    if names & _OTHER_SECTIONS:
        return Kind.SPACK_SECTION
    return Kind.OTHER


def refusal_of(kind: Kind, keys: Collection[str], value: Any = None) -> str:
    """Return what a document is that is not an environment, as the end of a sentence.

    Args:
        kind: its kind.
        keys: the keys of its mapping.
        value: the decoded JSON, if it is JSON.
    """
    if kind is Kind.INDEX:
        return "is the index of a build cache, for 'spack-cache-db build'"
    if kind is Kind.BUILD_CACHE_MANIFEST:
        return "is a manifest of a build cache"
    if kind is Kind.SPACK_SECTION:
        names = {_OVERRIDE.sub("", key) for key in keys} & _OTHER_SECTIONS
        shown = ", ".join(f"{name}:" for name in sorted(names))
        return f"is Spack's configuration {shown} and not an environment"
    if kind is Kind.SPEC_FILE:
        return "has the key spec:, but no nodes with hashes"
    if value is None:
        return f"is YAML with the keys {', '.join(sorted(keys)[:MOST_KEYS])}"
    if _has_old_nodes(value):
        return "lists specs without their hashes, as 'spack find --json' did before Spack 0.18"
    return "is JSON, but neither a spack.lock nor output of 'spack find --json'"


def _has_old_nodes(value: Any) -> bool:
    """Return whether a list has nodes of Spack before 0.18, which have no hashes."""
    if not isinstance(value, list) or not value:
        return False
    first = value[0]
    if not isinstance(first, dict):
        return False
    return "arch" in first or "arch" in _flat_node(first)


def nodes_of(value: Any) -> list[Any]:
    """Return the nodes of `spack find --json` or of a spec file; empty for other
    documents.

    A spec file has a list of nodes, below `nodes` since Spack 0.17. Before, each node
    is keyed by its name.
    """
    nodes = value
    if isinstance(nodes, dict):
        nodes = nodes.get("spec")
    if isinstance(nodes, dict):
        nodes = nodes.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        return []
    nodes = [_flat_node(node) for node in nodes]
    first = nodes[0]
    has_hashes = isinstance(first, dict) and "hash" in first
    return nodes if has_hashes else []


def _flat_node(node: Any) -> Any:
    """Return `{"name": "zlib", "hash": …}` for a node `{"zlib": {"hash": …}}`."""
    if not isinstance(node, dict) or len(node) != 1:
        return node
    ((name, inner),) = node.items()
    if not isinstance(inner, dict):
        return node
    return {**inner, "name": name}


class JsonDocument(NamedTuple):
    """A JSON document in a text.

    Attributes:
        start: the index of its first character.
        stop: the index behind its last character.
        line: its first line, counted from 1.
    """

    value: Any
    start: int
    stop: int
    line: int


_JSON_START = re.compile(r"^[ \t]*(?=\{\s*[\"}]|\[\s*[\[{\"])", re.MULTILINE)
_MOST_FAILURES = 20
"""Maximum of lines that begin like JSON and are not."""


def json_documents(text: str) -> list[JsonDocument]:
    """Return the JSON objects and lists that begin a line, from the first to the last.

    Raises `LineFault` if one is nested too deeply.
    """
    documents = []
    decoder = json.JSONDecoder()
    position = 0
    failure_count = 0
    line = 1
    while failure_count < _MOST_FAILURES:
        match = _JSON_START.search(text, position)
        if match is None:
            break
        start = match.end()
        line += text.count("\n", position, start)
        try:
            value, stop = decoder.raw_decode(text, start)
        except RecursionError:
            raise _nested_too_deeply() from None
        except ValueError:
            failure_count += 1
            stop = start + 1
        else:
            documents.append(JsonDocument(value, start, stop, line))
        line += text.count("\n", start, stop)
        position = stop
    return documents


def _nested_too_deeply() -> LineFault:
    return LineFault(0, "is nested too deeply, expected a spack.lock")


def json_fault(text: str) -> LineFault | None:
    """Return the fault of a text that is meant to be one JSON document and is broken.

    It is meant so if it begins with `[{`, or with a brace and has a key of lockfiles.
    """
    start = text.lstrip()
    has_lock = '"concrete_specs"' in text
    is_lock = has_lock and start.startswith("{")
    if not is_lock and not start.startswith("[{"):
        return None
    expected = "expected a whole spack.lock" if has_lock else EXPECTED
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        # The end of a text may be a line behind its last one.
        last_line = text.removesuffix("\n").count("\n") + 1
        line = min(error.lineno, last_line)
        problem = f"at column {error.colno}: {error.msg}"
        return LineFault(line, f"broken JSON {problem}, {expected}")
    except ValueError as error:
        # A number of thousands of digits.
        return LineFault(0, f"broken JSON: {error}, {expected}")
    return None


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A text that is a YAML mapping: its keys as they are written, and its first
    line.
    """

    text: str
    keys: tuple[str, ...]
    line: int

    def content(self) -> Any:
        """Return the decoded mapping; `LineFault` if it cannot be read."""
        # Importing PyYAML takes longer than reading a list of specs.
        from spack_cache_db.bounded_yaml import YamlBounds, load

        return load(self.text, YamlBounds(size=2**24, parts=500_000))


_KEY = re.compile(
    r"""(?P<key>'[^'\n]*'|"[^"\n]*"|[\w.$-]+(?:[+-]?:)?)[ \t]*:(?P<value>[ \t].*|)"""
)
_FLOW = re.compile(r"""\{\s*(?P<key>'[^'\n]*'|"[^"\n]*"|[\w.$-]+(?:[+-]?:)?)[ \t]*:""")
_ANY_KEY = "|".join(sorted(MANIFEST_KEYS))
_MANIFEST = re.compile(
    rf"""^ *['"]?(?P<key>{_ANY_KEY})(?:[+-]?:)?['"]?\s*:(?:\s|$)""", re.MULTILINE
)
"""A key of an environment at the beginning of a line."""
_QUOTES = "'\""


def yaml_mapping(text: str) -> YamlMapping | None:
    """Return the keys of a text that is a YAML mapping; None for JSON and for other
    texts.

    It is one if each line that is not indented begins with a key, and a value is below
    a key. A text with a line such as `spack:` is one as well: a mistake in it is
    reported as one.
    """
    stripped = text.lstrip()
    if stripped.startswith("["):
        return None
    if stripped.startswith("{"):
        return _flow_mapping(text)
    keys = tuple(_block_keys(text))
    if not keys:
        manifest = _MANIFEST.search(text)
        if manifest is None:
            return None
        keys = (manifest["key"],)
    return YamlMapping(text, keys, _first_line(text))


def _first_line(text: str) -> int:
    """Return the number of the first line that is not blank."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            return number
    return 1


def _flow_mapping(text: str) -> YamlMapping | None:
    """Return the mapping of a text in braces that is not JSON, or is an environment."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise _nested_too_deeply() from None
    except ValueError:
        if json_fault(text) is not None or json_documents(text):
            return None
        match = _FLOW.match(text.lstrip())
        if match is None:
            return None
        return YamlMapping(text, (match["key"].strip(_QUOTES),), 1)
    if isinstance(value, dict) and kind_of(value.keys()) is Kind.MANIFEST:
        return YamlMapping(text, tuple(value), 1)
    return None


def _block_keys(text: str) -> Iterator[str]:
    """Yield the keys at the margin of a mapping; nothing for other texts."""
    keys: list[str] = []
    margin: int | None = None
    # Whether the value of the last key may be in the lines below it.
    is_key_open = False
    has_value_below = False
    for line in text.split("\n"):
        content = line.strip()
        if not content or content.startswith(("#", "---", "...", "%YAML")):
            continue
        indent = len(line) - len(line.lstrip())
        if margin is None:
            margin = indent
        # A value is indented, or it is an item or the end of a list at the margin.
        is_item = content == "-"
        if keys and content.startswith(("- ", "]", "}")):
            is_item = True
        if indent > margin or is_item:
            # A value without a key above it is not of a mapping.
            if not keys:
                return
            has_value_below = has_value_below or is_key_open
            continue
        match = _KEY.fullmatch(content)
        if match is None or indent < margin:
            return
        keys.append(match["key"].strip(_QUOTES))
        # An anchor (`&`) or the sign of a long text (`|`, `>`) comes before a value.
        value = match["value"].partition(" #")[0].strip()
        is_key_open = value in ("", "{", "[") or value.startswith(("&", "|", ">"))
    if has_value_below:
        yield from keys


_FENCE = re.compile(r"^ *(?:```|~~~)", re.MULTILINE)


def unwrapped(text: str) -> str:
    """Return a text without what surrounds a YAML document in it; lines keep their
    numbers.

    A document may be between fences of Markdown, or below the prompt of a shell. Other
    texts are unchanged.
    """
    # Between each opening fence and the closing one behind it.
    fences = [match.start() for match in _FENCE.finditer(text)]
    opening = fences[::2]
    closing = fences[1::2]
    for start, stop in zip(opening, closing, strict=False):
        begin = text.index("\n", start) + 1
        inner = text[begin:stop]
        if _is_yaml(inner):
            return _blank_lines(text[:begin]) + inner + _blank_lines(text[stop:])

    # Below the blank lines and prompts at the beginning.
    lines = text.split("\n")
    count = 0
    while count < len(lines) and _is_blank_or_prompt(lines[count]):
        count += 1
    inner = "\n".join(lines[count:])
    if count and _is_yaml(inner):
        return "\n" * count + inner
    return text


def _is_yaml(text: str) -> bool:
    keys = list(_block_keys(text))
    return bool(keys)


def _is_blank_or_prompt(line: str) -> bool:
    content = line.strip()
    return not content or has_prompt(content)


def _blank_lines(text: str) -> str:
    """Return as many empty lines as a text has."""
    return "\n" * text.count("\n")
