"""A page's bytes → its front matter: the small keys read with PyYAML, the big ones left as JSON.

The two big keys never meet a YAML reader, which would be a hundred times slower than a JSON
decoder. The small ones are read one entry at a time and remembered, because the pages of a site
repeat the same few hundred lines (`layout: cache`, one title per package, one list per release).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

_JSON_KEYS = {f"{name}:".encode(): name for name in ("meta", "spec_details")}
_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_MAX_DEPTH = 32
_CONTINUES = frozenset([b" ", b"\t", b"#", b"-", b"]", b"}", b"\r", b"\n"])
_CLOSED = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)


class PageFault(Exception):
    """A page is refused. Args: 1-based line (0: the whole file), message."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        self.message = message
        super().__init__(message)


class Json(NamedTuple):
    """The JSON text of a big key, and where it stands (1-based line, column of its first byte)."""

    text: bytes
    line: int
    column: int


class FrontMatter(NamedTuple):
    """The entries of a page's front matter; `lines` says on which line each key stands."""

    values: Mapping[str, Any]
    json: Mapping[str, Json]
    lines: Mapping[str, int]

    @property
    def keys(self) -> set[str]:
        """All keys."""
        return set(self.lines)


def read_front_matter(data: bytes) -> FrontMatter:
    """Return the top-level entries of a page.

    Raises:
        PageFault: the bytes are not one closed front matter of distinct keys and nothing else.
    """
    _require_text(data)
    body = _between_fences(data)
    values: dict[str, Any] = {}
    json: dict[str, Json] = {}
    lines: dict[str, int] = {}
    for start, entry in _entries(body):
        for key, line, value in _read_entry(entry, start):
            if key in lines:
                first = lines[key]
                raise PageFault(line, f"the key {key} stands twice, first on line {first}")
            lines[key] = line
            (json if isinstance(value, Json) else values)[key] = value
    return FrontMatter(values, json, lines)


def _require_text(data: bytes) -> None:
    if not data.strip():
        raise PageFault(0, "the file is empty, expected a page that starts with ---")
    nul = data.find(b"\0")
    if nul >= 0:
        raise PageFault(data.count(b"\n", 0, nul) + 1, "a NUL byte, expected UTF-8 text")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            byte = data[error.start]
            raise PageFault(line, f"not UTF-8: byte 0x{byte:02x}, expected UTF-8 text") from None


def _between_fences(data: bytes) -> bytes:
    opened = _CLOSED.match(data)
    if not opened:
        raise PageFault(1, "no front matter, expected --- on the first line")
    start = opened.end() + 1
    # Searched from behind: the big keys lie before it, and nothing follows it in a sound page.
    end = data.rfind(b"\n---", start - 1)
    while end >= 0 and not _CLOSED.match(data, end + 1):
        end = data.rfind(b"\n---", start - 1, end)
    if end < 0:
        raise PageFault(1, "the front matter is not closed, expected a second line ---")
    rest = data.find(b"\n", end + 1)
    if rest >= 0 and data[rest:].strip():
        line = data.count(b"\n", 0, rest) + 2
        raise PageFault(line, "text after the front matter, expected none: it would be lost")
    return data[start : end + 1]


def _entries(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Cut the body before each line that starts an entry; other lines belong to the one above.

    Yields the line of the page on which an entry starts, and its bytes.
    """
    line, lines = 2, 0
    start = end = 0
    while end < len(body):
        end = body.find(b"\n", end) + 1 or len(body)
        lines += 1
        if body[end : end + 1] not in _CONTINUES:
            yield line, body[start:end]
            line, lines, start = line + lines, 0, end


def _read_entry(entry: bytes, line: int) -> Iterator[tuple[str, int, Any]]:
    """Yield each key of an entry with its line and its value."""
    for key, name in _JSON_KEYS.items():
        if entry.startswith(key):
            text = entry[len(key) :].lstrip(b" ")
            yield name, line, Json(text.rstrip(), line, len(entry) - len(text) + 1)
            return
    try:
        found = _read_yaml(entry)
    except yaml.MarkedYAMLError as error:
        at = line + (_lines_before(entry, error.problem_mark) if error.problem_mark else 0)
        said = " ".join(str(error.problem or error.context).split())
        raise PageFault(at, f"broken YAML: {said}, expected `key: value`") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        said = " ".join(str(error).split())
        raise PageFault(line, f"broken YAML: {said}, expected `key: value`") from None
    for name, after, value in found:
        yield name, line + after, value


def _lines_before(entry: bytes, mark: yaml.Mark) -> int:
    """Return how many lines of the file end before a mark.

    The line of the mark itself may be another: YAML 1.1 (5.4) also ends lines at a carriage return,
    NEL and the two separators of Unicode, editors and `grep -n` do not.
    """
    return entry.decode("utf-8-sig")[: mark.index].count("\n")


def _require_shallow(entry: bytes) -> None:
    """Refuse deep nesting, one event at a time: libyaml's loader would end the process."""
    depth = 0
    for event in yaml.parse(entry, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise ValueError("nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


@lru_cache(maxsize=65536)
def _read_yaml(entry: bytes) -> tuple[tuple[str, int, Any], ...]:
    """Return the keys of one entry, each with the lines before it, and its value.

    Nearly every entry has one key, but YAML can write several as one: `{title: a, title: b}`. Every
    scalar stays text, so that `v0.20` and `2025-04-20` mean themselves.
    """
    _require_shallow(entry)
    loader = _Loader(entry)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise ValueError("this is not an entry")
        if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise ValueError("this is not an entry")
        return tuple(
            (key.value, _lines_before(entry, key.start_mark), loader.construct_document(value))
            for key, value in node.value
        )
    finally:
        loader.dispose()
