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

MAX_JSON = 2**24
"""Maximum size of a big key in bytes; the largest known pages have a few hundred
thousand.
"""

MAX_YAML = 2**14
"""Maximum size of a small key in bytes; their names have at most 100 characters."""

MAX_ITEMS = 500_000
"""Maximum of values in the JSON of one key; a binary has about 30."""

_MAX_CACHED_META = 2**16

_YAML = YamlBounds(size=MAX_YAML)
_BIG = re.compile(rb"(meta|spec_details):")
_FENCE = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)

_CONTINUES = frozenset(b" \t#-]}\r\n")
"""First bytes of a line that belongs to the entry above it."""

_LONGEST_NAME = 100
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
    front, values = read_front_matter(file.data), {}
    for key, value_of in _VALUES.items():
        line, value = front[key]
        if key in JSON_KEYS and not isinstance(value, bytes):
            raise LineFault(
                line, f"{key} is not plain JSON, expected a line `{key}: ` and JSON"
            )
        try:
            values[key] = value_of(value)
        except ValueError as error:
            raise LineFault(line, str(error)) from None
    package, _, release, meta, details = values.values()
    # Format A is of 2025 and later, B of early 2025, C of 2023 and 2024.
    form = "B" if "@=" in " ".join(meta.compilers) else "A"
    form = "C" if front["meta"].value.startswith(b'{"versions"') else form
    sha256, facts = hashlib.sha256(file.data).hexdigest(), PageFacts(package, form)
    document = Document(file.location, file.path, sha256, release, page=facts)
    return Page(document, package, meta, details, line)


def read_front_matter(data: bytes) -> dict[str, Entry]:
    """Return the entries of a page's front matter by key; raises `LineFault`."""
    if not data.strip():
        raise LineFault(0, "the file is empty, expected a page that starts with ---")
    require_text(data)
    start, stop = _between_fences(data)
    front: dict[str, Entry] = {}
    line = 2
    while start < stop:
        end = data.find(b"\n", start, stop) + 1 or stop
        while end < stop and data[end] in _CONTINUES:
            end = data.find(b"\n", end, stop) + 1 or stop
        key, value = _read_entry(data[start:end], line)
        if key in front:
            first = front[key].line
            raise LineFault(
                line, f"the key {key} is listed twice, first on line {first}"
            )
        if key in ("spec_files", "spec_names", "category"):
            message = "2021 page: it lists spec files, no spec details; expected a page of 2023"
            raise LineFault(1, f"{message} or later, with meta and spec_details")
        if key not in KEYS:
            raise LineFault(
                line, f"unknown key {key}, expected only {', '.join(sorted(KEYS))}"
            )
        front[key] = Entry(line, value)
        line += data.count(b"\n", start, end)
        start = end
    if missing := sorted(KEYS - front.keys()):
        expected = ", ".join(sorted(KEYS))
        raise LineFault(1, f"the key {missing[0]} is missing, expected {expected}")
    return front


def _between_fences(data: bytes) -> tuple[int, int]:
    """Return the positions at which the front matter starts and ends."""
    opened = _FENCE.match(data)
    if not opened:
        raise LineFault(1, "no front matter, expected --- on the first line")
    # The closing line is the last one of a valid page.
    end = len(data.rstrip()) - len("---")
    if end > opened.end() and data.startswith(b"\n---", end - 1):
        return opened.end() + 1, end
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
    name, limit = (big[1].decode(), MAX_JSON) if big else ("this entry", MAX_YAML)
    if len(entry) > limit:
        raise LineFault(line, f"{name} has more than {limit:,} bytes")
    if big:
        return name, entry[big.end() :].strip()
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


def _layout(text: Any) -> None:
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
    is_short = len(text) <= _MAX_CACHED_META
    return _decoded_meta(text) if is_short else _decoded_meta.__wrapped__(text)


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
    hashes = [detail.hash for detail in details]
    if not all(map(is_hash, hashes)):
        index, wrong = next(item for item in enumerate(hashes) if not is_hash(item[1]))
        message = (
            f"$[{index}].hash is {quoted(wrong)}, expected 32 characters of a-z and 2-7"
        )
        raise ValueError(f"spec_details: {message}")
    if len({*hashes}) < len(hashes):
        repeated = next(
            dag_hash for dag_hash, count in Counter(hashes).items() if count > 1
        )
        raise ValueError(
            f"spec_details: the hash {repeated} is listed twice, expected once"
        )
    return details


_VALUES: dict[str, Callable[[Any], Any]] = {
    "title": _package,
    "layout": _layout,
    "categories": _release,
    "meta": _meta,
    "spec_details": _details,
}
"""Functions that return the value of a key; they raise `ValueError`. `spec_details` is
the last.
"""

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


LISTS = {f"{field}s": field for field in ("version", *FACETS)}
"""The lists of `meta`, and the field of the configurations in each."""
