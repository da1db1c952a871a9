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

from spack_cache_db.bounded_yaml import YamlBounds, compose, line_of, text_value
from spack_cache_db.errors import LineFault
from spack_cache_db.sources.pages.page_format import Json
from spack_cache_db.sources.strictness import require_text

JSON_KEYS = {"meta", "spec_details"}
"""The big keys, whose values are JSON and are not read as YAML."""

_BIG_KEYS = {f"{name}:".encode(): name for name in sorted(JSON_KEYS)}
_LONGEST_KEPT = 256
"""Bytes of an entry that is remembered: `layout: cache`, and most titles and categories."""

MAX_JSON = 2**24
"""Bytes of one big key; the largest pages known have a few hundred thousand in all."""

MAX_YAML = 2**20
"""Bytes of one small key."""

MAX_KEYS = 100

_YAML = YamlBounds(size=MAX_YAML, parts=20_000)

_CONTINUES = frozenset([b" ", b"\t", b"#", b"-", b"]", b"}", b"\r", b"\n"])
_CLOSED = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)


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
        LineFault: the bytes are not one closed front matter of distinct keys and nothing else.
    """
    _require_text(data)
    values: dict[str, Any] = {}
    json: dict[str, Json] = {}
    lines: dict[str, int] = {}
    for start, entry in _entries(data, *_between_fences(data)):
        for key, line, value in _read_entry(entry, start):
            if len(lines) == MAX_KEYS:
                raise LineFault(line, f"the front matter has more than {MAX_KEYS} keys")
            if key in lines:
                first = lines[key]
                raise LineFault(line, f"the key {key} stands twice, first on line {first}")
            lines[key] = line
            (json if isinstance(value, Json) else values)[key] = value
    return FrontMatter(values, json, lines)


def _require_text(data: bytes) -> None:
    if not data.strip():
        raise LineFault(0, "the file is empty, expected a page that starts with ---")
    require_text(data)


def _between_fences(data: bytes) -> tuple[int, int]:
    """Return where the front matter begins and where it ends, after its last line break."""
    opened = _CLOSED.match(data)
    if not opened:
        raise LineFault(1, "no front matter, expected --- on the first line")
    start = opened.end() + 1
    # Searched from behind: the big keys lie before it, and nothing follows it in a sound page.
    end = data.rfind(b"\n---", start - 1)
    while end >= 0 and not _CLOSED.match(data, end + 1):
        end = data.rfind(b"\n---", start - 1, end)
    if end < 0:
        raise LineFault(1, "the front matter is not closed, expected a second line ---")
    rest = data.find(b"\n", end + 1)
    if rest >= 0 and data[rest:].strip():
        line = data.count(b"\n", 0, rest) + 2
        raise LineFault(line, "text after the front matter, expected none: it would be lost")
    return start, end + 1


def _entries(data: bytes, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Cut the front matter before each line that starts an entry; others belong to the one above.

    Yields the line of the page on which an entry starts, and its bytes.
    """
    line, lines = 2, 0
    end = start
    while end < stop:
        end = data.find(b"\n", end, stop) + 1 or stop
        lines += 1
        if end - start > MAX_YAML:
            _require_json(data, start, end, line)
        if end == stop or data[end : end + 1] not in _CONTINUES:
            yield line, data[start:end]
            line, lines, start = line + lines, 0, end


def _require_json(data: bytes, start: int, end: int, line: int) -> None:
    """Refuse an entry that is longer than any page needs; only the big keys may be long."""
    key = next((name for key, name in _BIG_KEYS.items() if data.startswith(key, start)), None)
    if key is None or end - start > MAX_JSON:
        limit = MAX_JSON if key else MAX_YAML
        raise LineFault(line, f"{key or 'this entry'} has more than {limit:,} bytes")


def _read_entry(entry: bytes, line: int) -> Iterator[tuple[str, int, Any]]:
    """Yield each key of an entry with its line and its value."""
    key = entry[: entry.find(b":") + 1]
    if key in _BIG_KEYS:
        text = entry[len(key) :].lstrip(b" ")
        yield _BIG_KEYS[key], line, Json(text.rstrip(), line, len(entry) - len(text) + 1)
        return
    read = _read_yaml if len(entry) <= _LONGEST_KEPT else _read_yaml.__wrapped__
    try:
        found = read(entry)
    except LineFault as fault:
        at = line + max(fault.line - 1, 0)
        raise LineFault(at, f"{fault.message}, expected `key: value`") from None
    for name, after, value in found:
        yield name, line + after, value


@lru_cache(maxsize=65536)
def _read_yaml(entry: bytes) -> tuple[tuple[str, int, Any], ...]:
    """Return the keys of one entry, each with the lines before it, and its value.

    Nearly every entry has one key, but YAML can write several as one: `{title: a, title: b}`. Every
    scalar stays text, so that `v0.20` and `2025-04-20` mean themselves.
    """
    node = compose(entry.decode("utf-8-sig"), _YAML)
    if not isinstance(node, yaml.MappingNode):
        raise LineFault(0, "broken YAML: this is not an entry")
    if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
        raise LineFault(0, "broken YAML: this is not an entry")
    return tuple((key.value, line_of(key) - 1, text_value(value)) for key, value in node.value)
