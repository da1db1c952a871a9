"""Parses a page into a record.

The two big keys are read as JSON, because a YAML reader would be a hundred times slower. The small
keys are read one by one and cached, because pages repeat the same few hundred lines
(`layout: cache`, one title per package, one list per release).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType

from spack_cache_db.bounded_yaml import YamlBounds, compose, text_value
from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.records import is_name
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.strictness import (
    BROKEN,
    MAX_NAME,
    message_of,
    quoted,
    require_few,
    require_short,
    require_text,
)
from spack_cache_db.spack.lexer import is_hash, is_package

T = TypeVar("T")

JSON_KEYS = {"meta", "spec_details"}
"""The big keys, whose values are JSON."""

KEYS = {"title", "layout", "categories"} | JSON_KEYS

MAX_JSON = 2**24
"""Maximum size of a big key in bytes; the largest known pages have a few hundred thousand."""

MAX_YAML = 2**20
"""Maximum size of a small key in bytes."""

MAX_ITEMS = 500_000
"""Maximum of values in the JSON of one key; a binary has about 30."""

_YAML = YamlBounds(size=MAX_YAML, parts=20_000)
_BIG = re.compile(rb"(meta|spec_details):")
_MAX_CACHED_ENTRY = 256
"""Longest small entry that is cached, in bytes; most titles and categories are shorter."""

_MAX_CACHED_META = 2**16
"""Longest `meta` that is cached, in bytes."""

_CONTINUES = frozenset(b" \t#-]}\r\n")
"""First bytes of a line that belongs to the entry above it."""

_FENCE = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)

_LONGEST_NAME = 100
_RELEASE_NAME = (
    f"at most {_LONGEST_NAME} printable characters, no blank at either end, none of = + - @ first"
)
_PACKAGE_NAME = f"at most {_LONGEST_NAME} of a-z, A-Z, 0-9, _, - and ., no - or . at the start"


class Meta(Struct, frozen=True, gc=False, forbid_unknown_fields=True, eq=False):
    """The `meta` object of a page, its summary of `spec_details`; compared by identity."""

    versions: tuple[str, ...]
    compilers: tuple[str, ...]
    oss: tuple[str, ...]
    platforms: tuple[str, ...]
    targets: tuple[str, ...]
    stacks: tuple[str, ...]
    num_specs: int
    num_specs_by_stack: dict[str, int]


class SpecDetail(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A member of `spec_details`: a listing with the texts of its page."""

    hash: str
    compiler: str
    versions: tuple[str, ...]
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    stacks: tuple[str, ...]
    size: str
    tarball: str | UnsetType = UNSET


class Json(NamedTuple):
    """The JSON text of a big key, and its first line, counted from 1."""

    text: bytes
    line: int


class Entry(NamedTuple):
    """The line of a key, and its value: `Json` of a big key, text or a list of a small one."""

    line: int
    value: Any


class Page(Struct, frozen=True, gc=False):
    """A page: one package in one release.

    `format` is A (since 2025), B (early 2025) or C (2023 and 2024). `location` is the path in
    messages, `path` the path within the input, and `line` the first line of the listings.
    """

    location: str
    path: str
    sha256: str
    package: str
    release: str
    format: str
    meta: Meta
    details: tuple[SpecDetail, ...]
    line: int


_META = msgspec.json.Decoder(Meta)
_DETAILS = msgspec.json.Decoder(tuple[SpecDetail, ...])


def parse_page(raw: RawFile) -> Page:
    """Return the record of one page; raises `InputError` with its first fault."""
    try:
        front = read_front_matter(raw.data)
        meta, details = (_json_of(front, key) for key in ("meta", "spec_details"))
        layout = front["layout"]
        if layout.value != "cache":
            value = quoted(layout.value) if isinstance(layout.value, str) else "not a text"
            raise LineFault(layout.line, f"layout is {value}, expected cache")
        return Page(
            raw.location,
            raw.path,
            hashlib.sha256(raw.data).hexdigest(),
            _package(front["title"]),
            _release(front["categories"]),
            *_meta(meta),
            _details(details),
            details.line,
        )
    except LineFault as fault:
        raise InputError([Fault(raw.location, fault.line, fault.message)]) from None


def read_front_matter(data: bytes) -> dict[str, Entry]:
    """Return the entries of a page's front matter by key; raises `LineFault`."""
    if not data.strip():
        raise LineFault(0, "the file is empty, expected a page that starts with ---")
    require_text(data)
    front: dict[str, Entry] = {}
    for line, text in _entries(data, *_between_fences(data)):
        key, value = _read_entry(text, line)
        if key in front:
            first = front[key].line
            raise LineFault(line, f"the key {key} is listed twice, first on line {first}")
        if key not in KEYS:
            raise _unknown_key(key, line)
        front[key] = Entry(line, value)
    if missing := sorted(KEYS - front.keys()):
        expected = ", ".join(sorted(KEYS))
        raise LineFault(1, f"the key {missing[0]} is missing, expected {expected}")
    return front


def _between_fences(data: bytes) -> tuple[int, int]:
    """Return the positions at which the front matter starts and ends."""
    opened = _FENCE.match(data)
    if not opened:
        raise LineFault(1, "no front matter, expected --- on the first line")
    start = opened.end() + 1
    # Searched from the end, because the closing line is the last one of a valid page.
    end = data.rfind(b"\n---", start - 1)
    while end >= 0 and not _FENCE.match(data, end + 1):
        end = data.rfind(b"\n---", start - 1, end)
    if end < 0:
        raise LineFault(1, "the front matter is not closed, expected a second line ---")
    after = data.find(b"\n", end + 1)
    if after >= 0 and data[after:].strip():
        line = data.count(b"\n", 0, after) + 2
        raise LineFault(line, "text after the front matter, expected none: it would be lost")
    return start, end + 1


def _entries(data: bytes, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yield the first line and the text of each entry of the front matter."""
    line = 2
    while start < stop:
        end = data.find(b"\n", start, stop) + 1 or stop
        while end < stop and data[end] in _CONTINUES:
            end = data.find(b"\n", end, stop) + 1 or stop
        yield line, data[start:end]
        line += data.count(b"\n", start, end)
        start = end


def _read_entry(entry: bytes, line: int) -> tuple[str, Any]:
    """Return the key and the value of an entry."""
    big = _BIG.match(entry)
    limit = MAX_JSON if big else MAX_YAML
    if len(entry) > limit:
        name = big[1].decode() if big else "this entry"
        raise LineFault(line, f"{name} has more than {limit:,} bytes")
    if big:
        return big[1].decode(), Json(entry[big.end() :].strip(), line)
    reader = _read_yaml if len(entry) <= _MAX_CACHED_ENTRY else _read_yaml.__wrapped__
    try:
        return reader(entry)
    except LineFault as fault:
        at = line + max(fault.line - 1, 0)
        raise LineFault(at, f"{fault.message}, expected `key: value`") from None


@lru_cache(maxsize=65536)
def _read_yaml(entry: bytes) -> tuple[str, Any]:
    """Return the key and the value of one entry, with `1.10` and `2025-04-20` as text."""
    node = compose(entry.decode("utf-8-sig"), _YAML)
    if isinstance(node, yaml.MappingNode) and len(node.value) == 1:
        ((key, value),) = node.value
        if isinstance(key, yaml.ScalarNode):
            return key.value, text_value(value)
    raise LineFault(0, "broken YAML: this is not one entry")


def _unknown_key(key: str, line: int) -> LineFault:
    if key in ("spec_files", "spec_names", "category"):
        message = (
            "2021 page: it lists spec files, no spec details; expected a page of 2023 or later"
        )
        return LineFault(1, f"{message}, with meta and spec_details")
    return LineFault(line, f"unknown key {key}, expected only {', '.join(sorted(KEYS))}")


def _json_of(front: dict[str, Entry], key: str) -> Json:
    line, value = front[key]
    if not isinstance(value, Json):
        raise LineFault(line, f"{key} is not plain JSON, expected a line `{key}: ` and JSON")
    return value


def _package(title: Entry) -> str:
    name = title.value
    if not isinstance(name, str) or not name:
        raise LineFault(title.line, "title is not a package name, expected text")
    if not is_package(name) or len(name) > _LONGEST_NAME:
        message = f"title is {quoted(name)}, expected a package name: {_PACKAGE_NAME}"
        raise LineFault(title.line, message)
    return name


def _release(categories: Entry) -> str:
    match categories.value:
        case ["package", str(release)] if release:
            if not is_name(release) or len(release) > _LONGEST_NAME:
                message = f"the release is {quoted(release)}, expected a name: {_RELEASE_NAME}"
                raise LineFault(categories.line, message)
            return release
    raise LineFault(categories.line, "no release in categories, expected [package, RELEASE]")


def _meta(source: Json) -> tuple[str, Meta]:
    """Return the format of a page and its `meta`: C begins with `versions`, B has `@=`."""
    decode = _decoded_meta if len(source.text) <= _MAX_CACHED_META else _decoded_meta.__wrapped__
    meta = decode(source)
    if source.text.startswith(b'{"versions"'):
        return "C", meta
    return "B" if "@=" in " ".join(meta.compilers) else "A", meta


@lru_cache(maxsize=256)
def _decoded_meta(source: Json) -> Meta:
    """Return the value of `meta`, cached because the pages of many releases have the same."""
    try:
        meta = _decoded(_META, source, "meta")
    except LineFault:
        if b'"versions"' in source.text and b'"num_specs' not in source.text:
            message = (
                "2022 page: its meta has no stacks and no num_specs, its specs are in spec-N.json "
                "files; expected a page of 2023 or later"
            )
            raise LineFault(source.line, message) from None
        raise
    try:
        for name in Meta.__struct_fields__:
            if name != "num_specs":
                texts = getattr(meta, name)
                require_few(name, len(texts))
                for text in texts:
                    require_short(f"text in {name}", text, MAX_NAME)
    except ValueError as error:
        raise LineFault(source.line, f"meta {error}") from None
    return meta


def _details(source: Json) -> tuple[SpecDetail, ...]:
    """Return the value of `spec_details`; the hashes must be valid and distinct."""
    details = _decoded(_DETAILS, source, "spec_details")
    hashes = [detail.hash for detail in details]
    message = ""
    if not all(map(is_hash, hashes)):
        index = next(index for index, text in enumerate(hashes) if not is_hash(text))
        value = quoted(hashes[index])
        message = f"$[{index}].hash is {value}, expected 32 characters of a-z and 2-7"
    elif len({*hashes}) < len(hashes):
        repeated = next(text for text in hashes if hashes.count(text) > 1)
        message = f"the hash {repeated} is listed twice, expected once"
    if message:
        raise LineFault(source.line, f"spec_details: {message}")
    return details


def _decoded(decoder: msgspec.json.Decoder[T], source: Json, key: str) -> T:
    text = source.text
    if len(text) > MAX_ITEMS:
        # `[],[],[],…` takes a hundred times its size in memory.
        items = text.count(b",") + text.count(b"[") + text.count(b"{")
        if items > MAX_ITEMS:
            message = f"{key} has about {items:,} values, expected at most {MAX_ITEMS:,} in a page"
            raise LineFault(source.line, message)
    try:
        return decoder.decode(text)
    except BROKEN as error:
        raise LineFault(source.line, f"{key}: {message_of(error)}") from None
