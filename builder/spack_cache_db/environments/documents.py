"""Finds YAML and JSON documents in a text, and decides their kind by their keys.

The name of a file is not used, because people also paste text. For example,

| text | kind |
| --- | --- |
| `spack: {specs: [hdf5]}` | an environment (`MANIFEST`) |
| `{"_meta": …, "concrete_specs": …}` | a `spack.lock` (`LOCKFILE`) |
| `[{"name": "zlib", "hash": …}]` | nodes, as `spack find --json` prints them |
| `config:`, and indented lines below it | another configuration (`SPACK_SECTION`) |
| `hdf5: the library` | not a document |

A text is searched with regular expressions before a parser reads it: PyYAML is loaded
only for YAML, and a broken document has the fault of its kind.
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

    MANIFEST = auto()  # a spack.yaml, or a packages.yaml
    LOCKFILE = auto()  # a spack.lock
    SPEC_FILE = auto()  # nodes of one spec, as `spack spec --json` prints them
    CONDA = auto()  # conda's environment.yml
    INDEX = auto()  # index.json of a build cache
    BUILD_CACHE_MANIFEST = auto()  # a list of the files of one binary
    SPACK_SECTION = auto()  # another configuration file of Spack
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
    """Return the kind of a document, given the keys of its mapping.

    A list has no keys; its kind is `OTHER`.
    """
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
    """Return what a document is that cannot be read, as the end of a sentence.

    For example "is the index of a build cache, for 'spack-cache-db build'".

    Args:
        kind: its kind.
        keys: the keys of its mapping.
        value: the decoded JSON; None for YAML.
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
    # Each node of Spack has an architecture, directly or below its name.
    return "arch" in first or "arch" in _flat_node(first)


def nodes_of(value: Any) -> list[Any]:
    """Return the nodes of `spack find --json` or of a spec file; empty for other
    documents.

    The output of `find` is a list of nodes. A spec file has the list below `nodes`, and
    before Spack 0.17 in the second form:

        {"spec": {"nodes": [{"name": "zlib", "hash": …}, …]}}
        {"spec": [{"zlib": {"hash": …}}, …]}
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
        value: the decoded document.
        start: the index of its first character.
        stop: the index behind its last character.
        line: its first line, counted from 1.
    """

    value: Any
    start: int
    stop: int
    line: int


_JSON_START = re.compile(r"^[ \t]*(?=\{\s*[\"}]|\[\s*[\[{\"])", re.MULTILINE)
"""The blanks before `{"`, `{}`, `[[`, `[{` or `["` at the beginning of a line."""
_MOST_FAILURES = 20
"""Maximum of lines that begin like JSON and are not: each may take as long as the text
is.
"""


def json_documents(text: str) -> list[JsonDocument]:
    """Return the JSON objects and lists that begin a line, from the first to the last.

    The text may have other lines around them. Raises `LineFault` if a document is
    nested too deeply.
    """
    documents = []
    decoder = json.JSONDecoder()
    failure_count = 0
    # The position in the text, and its line.
    position = 0
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
            # Not a document: go on behind its first character.
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
    None for other texts.
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
        # Python does not read numbers of thousands of digits.
        return LineFault(0, f"broken JSON: {error}, {expected}")
    return None


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A text that is a YAML mapping, not parsed yet.

    Attributes:
        text: the text.
        keys: its keys as they are written, such as `packages:` in `packages::`.
        line: its first line that is not blank, counted from 1.
    """

    text: str
    keys: tuple[str, ...]
    line: int

    def content(self) -> Any:
        """Return the decoded mapping; `LineFault` if it cannot be read."""
        # Importing PyYAML takes longer than reading a list of specs.
        from spack_cache_db.bounded_yaml import YamlBounds, load

        # The nodes of a spec have more values than a configuration file may have.
        return load(self.text, YamlBounds(size=2**24, parts=500_000))


_ONE_KEY = r"""(?P<key>'[^'\n]*'|"[^"\n]*"|[\w.$-]+(?:[+-]?:)?)[ \t]*:"""
"""A key with its colon: in quotes, or a word that may end in `:`, `+:` or `-:`."""
_KEY = re.compile(rf"{_ONE_KEY}(?P<value>[ \t].*|)")
"""A line with a key, and perhaps its value."""
_FLOW = re.compile(rf"\{{\s*{_ONE_KEY}")
"""The beginning of a mapping in braces."""
_ANY_KEY = "|".join(sorted(MANIFEST_KEYS))
_MANIFEST = re.compile(
    rf"""^ *['"]?(?P<key>{_ANY_KEY})(?:[+-]?:)?['"]?\s*:(?:\s|$)""", re.MULTILINE
)
"""A key of an environment at the beginning of a line."""
_QUOTES = "'\""


def yaml_mapping(text: str) -> YamlMapping | None:
    """Return a text that is a YAML mapping, with its keys; None for other texts.

    It is one if each line that is not indented begins with a key, and a value is below
    a key. In `hdf5: the library`, no value is below, so this is not one. A text with a
    line such as `spack:` is one in any case, so that a mistake in it is reported. JSON
    in braces is one only if it is an environment.
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


def _flow_mapping(text: str) -> YamlMapping | None:
    """Return the mapping of a text that begins with a brace.

    None for JSON that is not an environment, and for what is not a mapping.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise _nested_too_deeply() from None
    except ValueError:
        # YAML such as `{spack: {specs: [hdf5]}}`, unless it is meant to be JSON.
        if json_fault(text) is not None or json_documents(text):
            return None
        match = _FLOW.match(text.lstrip())
        if match is None:
            return None
        key = match["key"].strip(_QUOTES)
        return YamlMapping(text, (key,), _first_line(text))
    if isinstance(value, dict) and kind_of(value.keys()) is Kind.MANIFEST:
        return YamlMapping(text, tuple(value), _first_line(text))
    return None


def _block_keys(text: str) -> Iterator[str]:
    """Yield the keys of a mapping that are not indented; nothing for other texts."""
    keys: list[str] = []
    # The indentation of the keys, that of the first one.
    margin: int | None = None
    # Whether the value of the last key may be in the lines below it, and whether that
    # is so for one of the keys.
    is_key_open = False
    has_value_below = False
    for line in text.split("\n"):
        content = line.strip()
        if not content or content.startswith(("#", "---", "...", "%YAML")):
            continue
        indent = len(line) - len(line.lstrip())
        if margin is None:
            margin = indent

        # A line of a value is indented, or an item or the end of a list.
        is_item = content == "-"
        if keys and content.startswith(("- ", "]", "}")):
            is_item = True
        if indent > margin or is_item:
            # A value without a key above it is not of a mapping.
            if not keys:
                return
            has_value_below = has_value_below or is_key_open
            continue

        # Each other line must have a key.
        match = _KEY.fullmatch(content)
        if match is None or indent < margin:
            return
        keys.append(match["key"].strip(_QUOTES))
        # An anchor (`&`) or the sign of a long text (`|`, `>`) comes before a value.
        value = match["value"].partition(" #")[0].strip()
        is_key_open = value in ("", "{", "[") or value.startswith(("&", "|", ">"))
    if has_value_below:
        yield from keys


def _first_line(text: str) -> int:
    """Return the number of the first line that is not blank."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            return number
    return 1


_FENCE = re.compile(r"^ *(?:```|~~~)", re.MULTILINE)
"""The line before or behind a piece of code in Markdown."""


def unwrapped(text: str) -> str:
    """Return a text without what surrounds a YAML document in it.

    A document may be between fences of Markdown, or below the prompt of a shell
    (`$ cat spack.yaml`). What surrounds it becomes blank lines, so that the others keep
    their numbers. Other texts are unchanged.
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


def _blank_lines(text: str) -> str:
    """Return as many empty lines as a text has."""
    return "\n" * text.count("\n")


def _is_blank_or_prompt(line: str) -> bool:
    content = line.strip()
    return not content or has_prompt(content)
