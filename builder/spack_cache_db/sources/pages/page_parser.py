"""A page's bytes → its record: reads the three formats that list specs, and refuses older ones.

A usual page, which has a line for each key, takes the fast way. The two big keys never meet a YAML
reader, which would be a hundred times slower than a JSON decoder. The small ones are read one entry
at a time and remembered, because the pages of a site repeat the same few hundred lines (`layout:
cache`, one title per package, one list per release). Only a page that fails is looked at again, to
find every fault in it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import yaml

from spack_cache_db.bounded_yaml import YamlBounds, compose, line_of, text_value
from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.records import is_name
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.pages.page_format import (
    DETAIL,
    MAX_FAULTS,
    META,
    Json,
    Meta,
    Page,
    SpecDetail,
    json_faults,
)
from spack_cache_db.sources.strictness import MAX_NAME, MAX_TEXTS, quoted, require_text
from spack_cache_db.spack.lexer import is_package

JSON_KEYS = {"meta", "spec_details"}
"""The big keys, whose values are JSON and are not read as YAML."""

_BIG_KEYS = {name.encode(): name for name in sorted(JSON_KEYS)}
_LONGEST_KEY = 16
_LONGEST_ENTRY = 256
"""Bytes of an entry that is remembered: `layout: cache`, and most titles and categories."""

MAX_JSON = 2**24
"""Bytes of one big key; the largest pages known have a few hundred thousand in all."""

MAX_YAML = 2**20
"""Bytes of one small key."""

MAX_KEYS = 100

_YAML = YamlBounds(size=MAX_YAML, parts=20_000)

_CONTINUES = frozenset([b" ", b"\t", b"#", b"-", b"]", b"}", b"\r", b"\n"])
_OPEN, _CLOSES = b"---\n", (b"\n---\n", b"\n---")
_META, _DETAILS = b"\nmeta: {", b"\nspec_details: ["
_LONGEST_SMALL_KEYS = 512
_CLOSED = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)

KEYS = {"title", "layout", "categories"} | JSON_KEYS

_META_DECODER = msgspec.json.Decoder(Meta)
_DETAILS_DECODER = msgspec.json.Decoder(tuple[SpecDetail, ...])
_BASE32 = b"abcdefghijklmnopqrstuvwxyz234567"

_LONGEST_NAME = 100
_NAMES_HOLD = (
    f"at most {_LONGEST_NAME} printable characters with no blank at either end and no - before them"
)
_PACKAGES_HOLD = f"at most {_LONGEST_NAME} of a-z, A-Z, 0-9, _, - and ., no - or . at the start"


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
    if not data.strip():
        raise LineFault(0, "the file is empty, expected a page that starts with ---")
    require_text(data)
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
    key = _BIG_KEYS.get(data[start : start + _LONGEST_KEY].partition(b":")[0])
    if key is None or end - start > MAX_JSON:
        limit = MAX_JSON if key else MAX_YAML
        raise LineFault(line, f"{key or 'this entry'} has more than {limit:,} bytes")


def _read_entry(entry: bytes, line: int) -> Iterator[tuple[str, int, Any]]:
    """Yield each key of an entry with its line and its value."""
    key, _, text = entry.partition(b":")
    if key in _BIG_KEYS:
        text = text.lstrip(b" ")
        yield _BIG_KEYS[key], line, Json(text.rstrip(), line, len(entry) - len(text) + 1)
        return
    read = _read_yaml if len(entry) <= _LONGEST_ENTRY else _read_yaml.__wrapped__
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


def parse_page(raw: RawFile) -> Page:
    """Return the record of one page, whose `spec_details` have not been looked at.

    Raises:
        InputError: with every fault of the rest of this page.
    """
    try:
        return _usual_page(raw) or _any_page(raw)
    except (LineFault, _Refused) as error:
        raise _located(error, raw.location) from None


def _any_page(raw: RawFile) -> Page:
    """Return the record of a page, however its front matter is written."""
    front = read_front_matter(raw.data)
    if front.keys != KEYS or front.json.keys() != JSON_KEYS:
        raise _Refused(_key_faults(front))
    return _page(raw, _names(front), front.json["meta"], front.json["spec_details"])


def _usual_page(raw: RawFile) -> Page | None:
    """Return the record of a page that has a line for each key; None for one that may not.

    The small keys come first, as on every page of the site.
    """
    data = raw.data
    small = data.find(_META, 0, _LONGEST_SMALL_KEYS)
    meta = small + len(_META) - 1
    end = data.find(b"\n", meta)
    details = end + len(_DETAILS) - 1
    last = data.find(b"\n", details)
    if (
        small < 0
        or not data.startswith(_OPEN)
        or not data.startswith(_DETAILS, end)
        or data[last:] not in _CLOSES
        or len(data) > MAX_YAML
        or not data.isascii()
        or b"\0" in data
    ):
        return None
    lines = data[len(_OPEN) : small].split(b"\n")
    names = dict(filter(None, map(_usual_name, lines)))
    if len(names) != len(lines) or len(names) != len(_NAMES):
        return None
    at = len(lines) + 2
    return _page(
        raw,
        names,
        Json(data[meta:end].rstrip(), at, len(_META) - 1),
        Json(data[details:last].rstrip(), at + 1, len(_DETAILS) - 1),
    )


def _page(raw: RawFile, names: Mapping[str, str], meta: Json, spec_details: Json) -> Page:
    found, era = _decode_meta(meta)
    return Page(
        location=raw.location,
        path=raw.path,
        sha256=hashlib.sha256(raw.data).hexdigest(),
        package=names["title"],
        release=names["categories"],
        format=era,
        meta=found,
        spec_details=spec_details,
    )


def read_details(page: Page) -> tuple[SpecDetail, ...]:
    """Return the listings of a page.

    Raises:
        InputError: with every fault of its `spec_details`.
    """
    try:
        return _decode_details(page.spec_details)
    except (LineFault, _Refused) as error:
        raise _located(error, page.location) from None


def _located(error: LineFault | _Refused, location: str) -> InputError:
    """Return the first faults of a file; a wrong one may have one for every byte."""
    faults = error.faults if isinstance(error, _Refused) else [error]
    told = faults[:MAX_FAULTS]
    if len(faults) > MAX_FAULTS:
        told.append(LineFault(0, f"has more faults than the {MAX_FAULTS} that are told"))
    return InputError(Fault(location, each.line, each.message) for each in told)


class _Refused(Exception):
    def __init__(self, faults: list[LineFault]) -> None:
        self.faults = faults


def _key_faults(front: FrontMatter) -> list[LineFault]:
    """Return what is wrong with the keys of a page; pages of 2021 are refused by name."""
    if front.keys & {"spec_files", "spec_names", "category"}:
        message = (
            "2021 page: it lists spec files, no spec details; expected a page of 2023 or later, "
            "with meta and spec_details"
        )
        return [LineFault(1, message)]
    faults = [
        LineFault(1, f"the key {key} is missing, expected {', '.join(sorted(KEYS))}")
        for key in KEYS - front.keys
    ]
    for key in front.keys - KEYS:
        message = f"unknown key {key}, expected only {', '.join(sorted(KEYS))}"
        faults.append(LineFault(front.lines[key], message))
    faults += [
        LineFault(front.lines[key], f"{key} is not plain JSON, expected a line `{key}: ` and JSON")
        for key in JSON_KEYS & front.values.keys()
    ]
    return faults


def _names(front: FrontMatter) -> dict[str, str]:
    """Return what the small keys name, by key."""
    names: dict[str, str] = {}
    faults = []
    for key, name_of in _NAMES.items():
        try:
            names[key] = name_of(front.values[key])
        except ValueError as error:
            faults.append(LineFault(front.lines[key], str(error)))
    if faults:
        raise _Refused(faults)
    return names


@lru_cache(maxsize=65536)
def _usual_name(entry: bytes) -> tuple[str, str] | None:
    """Return the small key of an entry and what it names; None if there is a fault to be told."""
    if entry[:1] in _CONTINUES:
        return None
    try:
        [(key, _, value)] = _read_yaml.__wrapped__(entry)
        return key, _NAMES[key](value)
    except (LineFault, ValueError, KeyError):
        return None


def _package(title: Any) -> str:
    if not isinstance(title, str) or not title:
        raise ValueError("title is not a package name, expected text")
    if not is_package(title) or len(title) > _LONGEST_NAME:
        raise ValueError(f"title is {quoted(title)}, expected a package name: {_PACKAGES_HOLD}")
    return title


def _layout(layout: Any) -> str:
    if layout != "cache":
        said = quoted(layout) if isinstance(layout, str) else "no text"
        raise ValueError(f"layout is {said}, expected cache")
    return "cache"


def _release(categories: Any) -> str:
    match categories:
        case ["package", str(release)] if release:
            if not is_name(release) or len(release) > _LONGEST_NAME:
                raise ValueError(
                    f"the release is {quoted(release)}, expected a name: {_NAMES_HOLD}"
                )
            return release
        case _:
            raise ValueError("no release in categories, expected [package, RELEASE]")


_NAMES: Mapping[str, Callable[[Any], str]] = {
    "title": _package,
    "layout": _layout,
    "categories": _release,
}
"""By small key, what returns the name in its value; raises `ValueError` if there is none."""


def _decode_meta(source: Json) -> tuple[Meta, str]:
    """Return `meta`, and the era of its page: A, B or C."""
    require_countable(source, "meta")
    try:
        decode = _read_meta if len(source.text) <= _LONGEST_META else _meta
        meta, era, is_plain = decode(source.text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise _Refused(_explain(source, "meta")) from None
    except ValueError as error:
        raise LineFault(source.line, str(error)) from None
    if not is_plain:
        _refuse_if_faulty(source, "meta")
    return meta, era


def _meta(text: bytes) -> tuple[Meta, str, bool]:
    """Return `meta`, its era, and whether it needs no closer look.

    Raises:
        ValueError: as `require_bounded_meta`; `msgspec.DecodeError` is one as well.
    """
    meta = _META_DECODER.decode(text)
    require_bounded_meta(meta)
    later = "B" if any("@=" in compiler for compiler in meta.compilers) else "A"
    era = "C" if text.startswith(b'{"versions"') else later
    return meta, era, _holds(text, META.texts([meta]))


_read_meta = lru_cache(maxsize=256)(_meta)
"""Many releases have the same."""

_LONGEST_META = 2**16
"""Bytes: what is kept for the next page may not fill the memory."""


def _decode_details(source: Json) -> tuple[SpecDetail, ...]:
    require_countable(source, "spec_details")
    try:
        details = _DETAILS_DECODER.decode(source.text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise _Refused(_explain(source, "spec_details")) from None
    hashes = [detail.hash.encode() for detail in details]
    if not holds_each_key_once(source.text, details) or not are_distinct_hashes(hashes):
        _refuse_if_faulty(source, "spec_details")
    return details


def are_distinct_hashes(texts: Sequence[bytes]) -> bool:
    """Return whether each of these texts is a DAG hash, and none stands twice.

    A DAG hash is 32 characters of lower-case base32 (Spack 1.1 `spec.py`, `util/hash.py`).
    """
    return (
        {*map(len, texts)} <= {32}
        and not b"".join(texts).translate(None, _BASE32)
        and len({*texts}) == len(texts)
    )


def holds_each_key_once(text: bytes, details: Sequence[SpecDetail]) -> bool:
    """Return whether JSON has each key of these listings once, and needs no closer look."""
    return _holds(text, DETAIL.texts(details))


def _holds(text: bytes, texts: int) -> bool:
    """Return whether JSON has as many strings as were decoded; a key that stands twice is one more.

    The decoder lets the last of such keys win in silence. Quotes are only counted where none is
    escaped; a NUL is always escaped (RFC 8259 section 7).
    """
    return b"\\" not in text and text.count(b'"') == 2 * texts


def _explain(source: Json, key: str) -> list[LineFault]:
    """Return what is wrong with JSON that its decoder refused."""
    said = f"{key} is not JSON that can be read, expected what pages hold"
    return json_faults(source, key) or [LineFault(source.line, said)]


def _refuse_if_faulty(source: Json, key: str) -> None:
    faults = json_faults(source, key)
    if faults:
        raise _Refused(faults)


MAX_ITEMS = 500_000
"""Values in the JSON of one key, each pair of an object counted as one. A spec has some thirty."""


def require_countable(source: Json, key: str) -> None:
    """Refuse JSON that would take a hundred times its size as values: `[],[],[],…`.

    Raises:
        LineFault: it has more than `MAX_ITEMS` values.
    """
    text = source.text
    if len(text) > MAX_ITEMS:
        items = text.count(b",") + text.count(b"[") + text.count(b"{")
        if items > MAX_ITEMS:
            said = f"{key} has about {items:,} values, expected at most {MAX_ITEMS:,} in a page"
            raise LineFault(source.line, said)


def require_bounded_meta(meta: Meta) -> None:
    """Raise `ValueError` as `require_bounded` does; the message begins with what is too long."""
    for name in meta.__struct_fields__:
        value = getattr(meta, name)
        if isinstance(value, int):
            continue
        if len(value) > MAX_TEXTS:
            said = f"meta.{name} has {len(value):,} texts, expected at most {MAX_TEXTS:,}"
            raise ValueError(said)
        longest = max(map(len, value), default=0)
        if longest > MAX_NAME:
            said = f"meta.{name} has a text of {longest:,} characters, expected at most {MAX_NAME}"
            raise ValueError(said)
