"""Reads the front matter of a page into records."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType

from spack_cache_db.bounded_yaml import YamlBounds, compose, text_value
from spack_cache_db.errors import LineFault
from spack_cache_db.model import is_name
from spack_cache_db.schema.tables import FACETS
from spack_cache_db.sources.bounds import (
    MAX_NAME,
    require_few,
    require_short,
    require_text,
)
from spack_cache_db.sources.facts import Document, PageFacts
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.texts import BROKEN, message_of, quoted
from spack_cache_db.spack.lexer import is_hash, is_package

T = TypeVar("T")

JSON_KEYS = {"meta", "spec_details"}
"""The big keys, whose values are JSON."""

KEYS = {"title", "layout", "categories"} | JSON_KEYS
"""The keys of a page; it has all of them, and no others."""

_KEYS_OF_2021 = ("spec_files", "spec_names", "category")

MAX_JSON = 2**24
"""Maximum size of a big key in bytes; the largest known pages have a few hundred
thousand.
"""

MAX_YAML = 2**14
"""Maximum size of a small key in bytes; their names have at most 100 characters."""

MAX_ITEMS = 500_000
"""Maximum of values in the JSON of one key; a binary has about 30."""

_MAX_CACHED_META = 2**16
"""Bytes of a `meta` that is cached."""

_YAML = YamlBounds(size=MAX_YAML)
_BIG = re.compile(rb"(meta|spec_details):")
_FENCE = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)

_CONTINUES = frozenset(b" \t#-]}\r\n")
"""First bytes of a line that belongs to the entry above it."""

_LONGEST_NAME = 100
"""Characters of the name of a package or a release."""
_RELEASE_NAME = (
    f"at most {_LONGEST_NAME} printable characters, no blank at either end, "
    "none of = + - @ first"
)
_PACKAGE_NAME = (
    f"at most {_LONGEST_NAME} of a-z, A-Z, 0-9, _, - and ., no - or . at the start"
)


class Meta(Struct, frozen=True, gc=False, forbid_unknown_fields=True, eq=False):
    """The `meta` object of a page, its summary of `spec_details`; compared by
    identity.
    """

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


class Entry(NamedTuple):
    """The line of a key, and its value: the JSON of a big key, text or a list of a
    small one.
    """

    line: int
    value: Any


class Page(NamedTuple):
    """A page; `line` is the first line of its listings, for messages."""

    document: Document
    package: str
    meta: Meta
    details: tuple[SpecDetail, ...]
    line: int


def parse_page(file: RawFile) -> Page:
    """Return the record of one page; raises `LineFault`."""
    front = read_front_matter(file.data)
    package: str = _value_of(front, "title", _package)
    _value_of(front, "layout", _require_layout)
    release: str = _value_of(front, "categories", _release)
    meta: Meta = _value_of(front, "meta", _meta)
    details: tuple[SpecDetail, ...] = _value_of(front, "spec_details", _details)

    # Format A is of 2025 and later, B of early 2025, C of 2023 and 2024.
    if front["meta"].value.startswith(b'{"versions"'):
        form = "C"
    elif "@=" in " ".join(meta.compilers):
        form = "B"
    else:
        form = "A"
    document = Document(
        file.location,
        file.path,
        hashlib.sha256(file.data).hexdigest(),
        release,
        page=PageFacts(package, form),
    )
    return Page(document, package, meta, details, front["spec_details"].line)


def _value_of(front: dict[str, Entry], key: str, read: Callable[[Any], T]) -> T:
    """Return the value of a key as a function reads it.

    Raises:
        LineFault: the value of a big key is not JSON, or the function raises
            `ValueError`.
    """
    line, value = front[key]
    if key in JSON_KEYS and not isinstance(value, bytes):
        message = f"{key} is not plain JSON, expected a line `{key}: ` and JSON"
        raise LineFault(line, message)
    try:
        return read(value)
    except ValueError as error:
        raise LineFault(line, str(error)) from None


def read_front_matter(data: bytes) -> dict[str, Entry]:
    """Return the entries of a page's front matter by key; raises `LineFault`."""
    if not data.strip():
        raise LineFault(0, "the file is empty, expected a page that starts with ---")
    require_text(data)
    start, stop = _between_fences(data)
    expected_keys = ", ".join(sorted(KEYS))
    front: dict[str, Entry] = {}
    line = 2
    while start < stop:
        # An entry ends before the next line that begins a key.
        end = _end_of_line(data, start, stop)
        while end < stop and data[end] in _CONTINUES:
            end = _end_of_line(data, end, stop)
        key, value = _read_entry(data[start:end], line)
        if key in front:
            first = front[key].line
            message = f"the key {key} is listed twice, first on line {first}"
            raise LineFault(line, message)
        if key in _KEYS_OF_2021:
            message = "2021 page: it lists spec files, no spec details; expected a page of 2023"
            raise LineFault(1, f"{message} or later, with meta and spec_details")
        if key not in KEYS:
            raise LineFault(line, f"unknown key {key}, expected only {expected_keys}")
        front[key] = Entry(line, value)
        line += data.count(b"\n", start, end)
        start = end
    missing = sorted(KEYS - front.keys())
    if missing:
        raise LineFault(1, f"the key {missing[0]} is missing, expected {expected_keys}")
    return front


def _end_of_line(data: bytes, start: int, stop: int) -> int:
    """Return the position after the line at `start`, at most `stop`."""
    newline = data.find(b"\n", start, stop)
    return stop if newline < 0 else newline + 1


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


def _read_entry(entry: bytes, line: int) -> tuple[str, Any]:
    """Return the key and the value of an entry."""
    big = _BIG.match(entry)
    if big is not None:
        key = big[1].decode()
        if len(entry) > MAX_JSON:
            raise LineFault(line, f"{key} has more than {MAX_JSON:,} bytes")
        return key, entry[big.end() :].strip()
    if len(entry) > MAX_YAML:
        raise LineFault(line, f"this entry has more than {MAX_YAML:,} bytes")
    try:
        return _read_yaml(entry)
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


def _package(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError("title is not a package name, expected text")
    if not is_package(name) or len(name) > _LONGEST_NAME:
        raise ValueError(
            f"title is {quoted(name)}, expected a package name: {_PACKAGE_NAME}"
        )
    return name


def _require_layout(text: Any) -> None:
    if text != "cache":
        value = quoted(text) if isinstance(text, str) else "not a text"
        raise ValueError(f"layout is {value}, expected cache")


def _release(categories: Any) -> str:
    match categories:
        case ["package", str(release)] if release:
            if is_name(release) and len(release) <= _LONGEST_NAME:
                return release
            raise ValueError(
                f"the release is {quoted(release)}, expected a name: {_RELEASE_NAME}"
            )
    raise ValueError("no release in categories, expected [package, RELEASE]")


def _meta(text: bytes) -> Meta:
    if len(text) <= _MAX_CACHED_META:
        return _decoded_meta(text)
    # The same function without its cache.
    return _decoded_meta.__wrapped__(text)


# The pages of many releases have the same.
@lru_cache(maxsize=256)
def _decoded_meta(text: bytes) -> Meta:
    try:
        meta = _decoded(_META, text, "meta")
    except ValueError:
        if b'"versions"' in text and b'"num_specs' not in text:
            message = (
                "2022 page: its meta has no stacks and no num_specs, its specs are in"
            )
            expected = "spec-N.json files; expected a page of 2023 or later"
            raise ValueError(f"{message} {expected}") from None
        raise
    try:
        for name in (*LISTS, "stacks", "num_specs_by_stack"):
            require_few(name, len(getattr(meta, name)))
            for item in getattr(meta, name):
                require_short(f"text in {name}", item, MAX_NAME)
    except ValueError as error:
        raise ValueError(f"meta {error}") from None
    return meta


def _details(text: bytes) -> tuple[SpecDetail, ...]:
    """Return the value of `spec_details`; the hashes must be valid and distinct."""
    details = _decoded(_DETAILS, text, "spec_details")
    known = set()
    for index, detail in enumerate(details):
        if not is_hash(detail.hash):
            expected = "expected 32 characters of a-z and 2-7"
            message = f"$[{index}].hash is {quoted(detail.hash)}, {expected}"
            raise ValueError(f"spec_details: {message}")
        known.add(detail.hash)
    if len(known) < len(details):
        # Not searched before, because nearly all pages are right.
        counts = Counter(detail.hash for detail in details)
        repeated = next(dag_hash for dag_hash in counts if counts[dag_hash] > 1)
        message = f"the hash {repeated} is listed twice, expected once"
        raise ValueError(f"spec_details: {message}")
    return details


_META = msgspec.json.Decoder(Meta)
_DETAILS = msgspec.json.Decoder(tuple[SpecDetail, ...])


def _decoded(decoder: msgspec.json.Decoder[T], text: bytes, key: str) -> T:
    if len(text) > MAX_ITEMS:
        # `[],[],[],…` takes a hundred times its size in memory.
        items = text.count(b",") + text.count(b"[") + text.count(b"{")
        if items > MAX_ITEMS:
            expected = f"expected at most {MAX_ITEMS:,} in a page"
            raise ValueError(f"{key} has about {items:,} values, {expected}")
    try:
        return decoder.decode(text)
    except BROKEN as error:
        raise ValueError(f"{key}: {message_of(error)}") from None


LISTS = {f"{column}s": column for column in ("version", *FACETS)}
"""The lists of `meta`, and the field of the configurations in each."""
