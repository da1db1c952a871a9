"""Reads the front matter of a page: its keys, and their values.

A page is all front matter: a line `---`, five keys, and a line `---`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

from spack_cache_db.bounded_yaml import YamlBounds, compose, text_value
from spack_cache_db.errors import LineFault
from spack_cache_db.sources.bounds import require_text

JSON_KEYS = {"meta", "spec_details"}
"""The big keys, whose values are JSON."""

KEYS = {"title", "layout", "categories"} | JSON_KEYS
"""The keys of a page; it has all of them, and no others."""

_EVERY_KEY = ", ".join(sorted(KEYS))

_KEYS_OF_2021 = ("spec_files", "spec_names", "category")

MAX_JSON = 2**24
"""Maximum size of a big key in bytes; the largest known pages have a few hundred
thousand.
"""

MAX_YAML = 2**14
"""Maximum size of a small key in bytes; their names have at most 100 characters."""

_YAML = YamlBounds(size=MAX_YAML)
_BIG = (b"meta:", b"spec_details:")
_FENCE = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)

_CONTINUES = frozenset(b" \t#-]}\r\n")
"""First bytes of a line that belongs to the entry above it."""


class Entry(NamedTuple):
    """The line of a key, and its value: the JSON of a big key, text or a list of a
    small one.
    """

    line: int
    value: Any


def begins_page(data: bytes) -> bool:
    """Return whether bytes begin as each page does; `-----BEGIN PGP` is a signature."""
    return data.startswith(b"---") and not data.startswith(b"----")


def is_faulty_page(path: str, data: bytes) -> bool:
    """Return whether a file that does not begin as a page was probably meant as one.

    It has the name of a page, and its lines of dashes too, or it is empty.
    """
    if not data.strip():
        return True
    if path.rpartition("/")[2] == "specs.md":
        return True
    return path.endswith(".md") and _FENCE.search(data) is not None


def read_front_matter(data: bytes) -> dict[str, Entry]:
    """Return the entries of a page's front matter by key; raises `LineFault`."""
    if not data.strip():
        raise LineFault(0, "the file is empty, expected a page that starts with ---")
    require_text(data)
    start, stop = _between_fences(data)
    front: dict[str, Entry] = {}
    line = 2
    while start < stop:
        end, lines = _end_of_entry(data, start, stop)
        key, value = _read_entry(data, start, end, line)
        if key in front or key not in KEYS:
            raise _wrong_key(key, front, line)
        front[key] = Entry(line, value)
        line += lines
        start = end
    if len(front) < len(KEYS):
        missing = min(KEYS - front.keys())
        raise LineFault(1, f"the key {missing} is missing, expected {_EVERY_KEY}")
    return front


def _end_of_entry(data: bytes, start: int, stop: int) -> tuple[int, int]:
    """Return the position at which the next entry begins, at most `stop`, and the
    number of lines until there.

    An entry ends before the next line that begins a key.
    """
    end = start
    lines = 0
    while True:
        newline = data.find(b"\n", end, stop)
        if newline < 0:
            return stop, lines
        end = newline + 1
        lines += 1
        if end == stop or data[end] not in _CONTINUES:
            return end, lines


def _wrong_key(key: str, front: dict[str, Entry], line: int) -> LineFault:
    """Return the fault of a key that is repeated, or not one of a page's."""
    if key in front:
        first = front[key].line
        return LineFault(line, f"the key {key} is listed twice, first on line {first}")
    if key in _KEYS_OF_2021:
        message = (
            "2021 page: it lists spec files, no spec details; expected a page of 2023"
        )
        return LineFault(1, f"{message} or later, with meta and spec_details")
    return LineFault(line, f"unknown key {key}, expected only {_EVERY_KEY}")


def _between_fences(data: bytes) -> tuple[int, int]:
    """Return the positions at which the front matter starts and ends."""
    first = _FENCE.match(data)
    if first is None:
        raise LineFault(1, "no front matter, expected --- on the first line")
    # The closing line is the last one of a valid page.
    end = len(data.rstrip()) - len("---")
    if end > first.end() and data.startswith(b"\n---", end - 1):
        return first.end() + 1, end

    # A faulty page: the last line --- is the first one, or there is text after it.
    *_, last = _FENCE.finditer(data)
    if last.start() == 0:
        raise LineFault(1, "the front matter is not closed, expected a second line ---")
    line = data.count(b"\n", 0, last.end()) + 2
    raise LineFault(
        line, "text after the front matter, expected none: it would be lost"
    )


def _read_entry(data: bytes, start: int, end: int, line: int) -> tuple[str, Any]:
    """Return the key and the value of the entry between two positions."""
    size = end - start
    if data.startswith(_BIG, start):
        colon = data.index(b":", start)
        key = data[start:colon].decode()
        if size > MAX_JSON:
            raise LineFault(line, f"{key} has more than {MAX_JSON:,} bytes")
        return key, data[colon + 1 : end].strip()
    if size > MAX_YAML:
        raise LineFault(line, f"this entry has more than {MAX_YAML:,} bytes")
    try:
        return _read_yaml(data[start:end])
    except LineFault as fault:
        at = line + max(fault.line - 1, 0)
        raise LineFault(at, f"{fault.message}, expected `key: value`") from None


# Pages of many releases and packages repeat the same few hundred lines.
@lru_cache(maxsize=4096)
def _read_yaml(entry: bytes) -> tuple[str, Any]:
    """Return the key and the value of one entry, with `1.10` and `2025-04-20` as
    text.
    """
    node = compose(entry.decode("utf-8-sig"), _YAML)
    if isinstance(node, yaml.MappingNode) and len(node.value) == 1:
        ((key, value),) = node.value
        if isinstance(key, yaml.ScalarNode):
            return key.value, text_value(value)
    raise LineFault(0, "broken YAML: this is not one entry")
