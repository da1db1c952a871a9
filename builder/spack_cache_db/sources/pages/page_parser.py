"""A page's bytes → its record.

The two big keys never reach a YAML reader, which would be a hundred times slower than a JSON
decoder. The small keys are read one entry at a time and remembered, because the pages of a site
repeat the same few hundred lines (`layout: cache`, one title per package, one list per release).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

from spack_cache_db.bounded_yaml import YamlBounds, compose, line_of, text_value
from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.records import is_name
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.pages.page_format import (
    Json,
    Meta,
    Page,
    SpecDetail,
    decode_details,
    decode_meta,
)
from spack_cache_db.sources.strictness import quoted, require_text
from spack_cache_db.spack.lexer import is_package

JSON_KEYS = {"meta", "spec_details"}
"""The big keys, whose values are JSON and are not read as YAML."""

KEYS = {"title", "layout", "categories"} | JSON_KEYS

MAX_JSON = 2**24
"""Bytes of one big key; the largest known pages have a few hundred thousand in all."""

MAX_YAML = 2**20
"""Bytes of one small key."""

MAX_KEYS = 100

_BIG = (b"meta:", b"spec_details:")
_YAML = YamlBounds(size=MAX_YAML, parts=20_000)
_LONGEST_KEY = 16
_LONGEST_REMEMBERED = 256
"""Bytes of an entry that is remembered: `layout: cache`, and most titles and categories."""

_LONGEST_META = 2**16
"""Bytes of a `meta` that is remembered."""

_CONTINUES = frozenset(b" \t#-]}\r\n")
"""First bytes of a line that belongs to the entry above it."""

_FENCE = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)

_LONGEST_NAME = 100
_RELEASE_NAME = (
    f"at most {_LONGEST_NAME} printable characters, no blank at either end, none of = + - @ first"
)
_PACKAGE_NAME = f"at most {_LONGEST_NAME} of a-z, A-Z, 0-9, _, - and ., no - or . at the start"


class FrontMatter(NamedTuple):
    """The entries of a page's front matter; `lines` has the line of each key."""

    values: Mapping[str, Any]
    json: Mapping[str, Json]
    lines: Mapping[str, int]


def read_front_matter(data: bytes) -> FrontMatter:
    """Return the top-level entries of a page.

    Raises:
        LineFault: the bytes are not one closed front matter of distinct keys and nothing else.
    """
    if not data.strip():
        raise LineFault(0, "the file is empty, expected a page that starts with ---")
    require_text(data)
    values: dict[str, Any] = {}
    json: dict[str, Json] = {}
    lines: dict[str, int] = {}
    for start, entry in _entries(data, *_between_fences(data)):
        for key, lines_before, value in _read_entry(entry, start):
            line = start + lines_before
            if len(lines) == MAX_KEYS:
                raise LineFault(line, f"the front matter has more than {MAX_KEYS} keys")
            if key in lines:
                first = lines[key]
                raise LineFault(line, f"the key {key} is listed twice, first on line {first}")
            lines[key] = line
            (json if isinstance(value, Json) else values)[key] = value
    return FrontMatter(values, json, lines)


def _between_fences(data: bytes) -> tuple[int, int]:
    """Return where the front matter starts and where it ends, after its last line break."""
    opened = _FENCE.match(data)
    if not opened:
        raise LineFault(1, "no front matter, expected --- on the first line")
    start = opened.end() + 1
    # Searched from the end: the big keys come before it, and nothing follows it in a sound page.
    end = data.rfind(b"\n---", start - 1)
    while end >= 0 and not _FENCE.match(data, end + 1):
        end = data.rfind(b"\n---", start - 1, end)
    if end < 0:
        raise LineFault(1, "the front matter is not closed, expected a second line ---")
    rest = data.find(b"\n", end + 1)
    if rest >= 0 and data[rest:].strip():
        line = data.count(b"\n", 0, rest) + 2
        raise LineFault(line, "text after the front matter, expected none: it would be lost")
    return start, end + 1


def _entries(data: bytes, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yield each entry of the front matter and the line on which it starts."""
    line, lines = 2, 0
    end = start
    while end < stop:
        end = data.find(b"\n", end, stop) + 1 or stop
        lines += 1
        if end - start > MAX_YAML:
            _require_json(data, start, end, line)
        if end == stop or data[end] not in _CONTINUES:
            yield line, data[start:end]
            line, lines, start = line + lines, 0, end


def _require_json(data: bytes, start: int, end: int, line: int) -> None:
    """Reject an entry that is longer than any page needs; only the big keys may be long."""
    key = data[start : start + _LONGEST_KEY].partition(b":")[0].decode("ascii", "replace")
    limit = MAX_JSON if key in JSON_KEYS else MAX_YAML
    if end - start > limit:
        entry = key if key in JSON_KEYS else "this entry"
        raise LineFault(line, f"{entry} has more than {limit:,} bytes")


def _read_entry(entry: bytes, line: int) -> Sequence[tuple[str, int, Any]]:
    """Return each key of an entry with the number of lines before it and its value."""
    if entry.startswith(_BIG):
        key, text = entry[: entry.index(b":")].decode(), entry[entry.index(b":") + 1 :]
        return ((key, 0, Json(text.strip(), line)),)
    read = _read_yaml if len(entry) <= _LONGEST_REMEMBERED else _read_yaml.__wrapped__
    try:
        return read(entry)
    except LineFault as fault:
        at = line + max(fault.line - 1, 0)
        raise LineFault(at, f"{fault.message}, expected `key: value`") from None


@lru_cache(maxsize=65536)
def _read_yaml(entry: bytes) -> tuple[tuple[str, int, Any], ...]:
    """Return the keys of one entry, each with the lines before it, and its value.

    Nearly every entry has one key, but YAML can write several as one: `{title: a, title: b}`. Every
    scalar stays text: YAML would make numbers and dates of `1.10` and `2025-04-20`.
    """
    node = compose(entry.decode("utf-8-sig"), _YAML)
    if not isinstance(node, yaml.MappingNode):
        raise LineFault(0, "broken YAML: this is not an entry")
    if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
        raise LineFault(0, "broken YAML: this is not an entry")
    return tuple((key.value, line_of(key) - 1, text_value(value)) for key, value in node.value)


def parse_page(raw: RawFile) -> Page:
    """Return the record of one page; its `spec_details` are not decoded.

    Raises:
        InputError: with the first fault of the page.
    """
    try:
        front = read_front_matter(raw.data)
        _require_keys(front)
        _value_of(front, "layout")
        package, release = _value_of(front, "title"), _value_of(front, "categories")
        meta = _meta(front.json["meta"])
    except LineFault as fault:
        raise InputError([Fault(raw.location, fault.line, fault.message)]) from None
    return Page(
        location=raw.location,
        path=raw.path,
        sha256=hashlib.sha256(raw.data).hexdigest(),
        package=package,
        release=release,
        format=_era(front.json["meta"], meta),
        meta=meta,
        spec_details=front.json["spec_details"],
    )


def read_details(page: Page) -> tuple[SpecDetail, ...]:
    """Return the listings of a page.

    Raises:
        InputError: with the first fault of its `spec_details`.
    """
    try:
        return decode_details(page.spec_details)
    except LineFault as fault:
        raise InputError([Fault(page.location, fault.line, fault.message)]) from None


def _meta(source: Json) -> Meta:
    decode = decode_meta if len(source.text) <= _LONGEST_META else decode_meta.__wrapped__
    return decode(source)


def _era(source: Json, meta: Meta) -> str:
    """Return the era of a page: C wrote `versions` first, B wrote compilers with `@=`."""
    if source.text.startswith(b'{"versions"'):
        return "C"
    return "B" if "@=" in " ".join(meta.compilers) else "A"


def _require_keys(front: FrontMatter) -> None:
    """Reject other keys than those of a page; pages of 2021 are named."""
    if front.json.keys() == JSON_KEYS and front.lines.keys() == KEYS:
        return
    keys = front.lines.keys()
    if keys & {"spec_files", "spec_names", "category"}:
        message = (
            "2021 page: it lists spec files, no spec details; expected a page of 2023 or later, "
            "with meta and spec_details"
        )
        raise LineFault(1, message)
    expected = ", ".join(sorted(KEYS))
    for key in sorted(KEYS - keys):
        raise LineFault(1, f"the key {key} is missing, expected {expected}")
    for key in sorted(keys - KEYS, key=front.lines.__getitem__):
        raise LineFault(front.lines[key], f"unknown key {key}, expected only {expected}")
    for key in sorted(JSON_KEYS & front.values.keys()):
        message = f"{key} is not plain JSON, expected a line `{key}: ` and JSON"
        raise LineFault(front.lines[key], message)


def _value_of(front: FrontMatter, key: str) -> str:
    """Return the text of a small key."""
    try:
        return _READERS[key](front.values[key])
    except ValueError as error:
        raise LineFault(front.lines[key], str(error)) from None


def _package(title: Any) -> str:
    if not isinstance(title, str) or not title:
        raise ValueError("title is not a package name, expected text")
    if not is_package(title) or len(title) > _LONGEST_NAME:
        raise ValueError(f"title is {quoted(title)}, expected a package name: {_PACKAGE_NAME}")
    return title


def _layout(layout: Any) -> str:
    if layout != "cache":
        value = quoted(layout) if isinstance(layout, str) else "not a text"
        raise ValueError(f"layout is {value}, expected cache")
    return "cache"


def _release(categories: Any) -> str:
    match categories:
        case ["package", str(release)] if release:
            if not is_name(release) or len(release) > _LONGEST_NAME:
                raise ValueError(
                    f"the release is {quoted(release)}, expected a name: {_RELEASE_NAME}"
                )
            return release
        case _:
            raise ValueError("no release in categories, expected [package, RELEASE]")


_READERS: Mapping[str, Callable[[Any], str]] = {
    "title": _package,
    "layout": _layout,
    "categories": _release,
}
"""The function that reads the value of each small key; it raises `ValueError`."""
