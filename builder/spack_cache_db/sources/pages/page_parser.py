"""A page's bytes → its record; the three eras that list specs are read, older ones refused by name.

A sound page takes the fast way: front matter, two JSON decodes, a few checks. Only a page that
fails is looked at again, with Python's own decoder, to find every fault in it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from spack_cache_db.errors import Fault, InputError, LineFault
from spack_cache_db.sources.pages.front_matter import (
    JSON_KEYS,
    FrontMatter,
    read_front_matter,
)
from spack_cache_db.sources.pages.page_format import (
    NUMBER,
    TEXT,
    TEXTS,
    Json,
    Meta,
    Page,
    Shape,
    SpecDetail,
)
from spack_cache_db.sources.strictness import MAX_NAME, MAX_TEXTS
from spack_cache_db.sources.units import RawFile
from spack_cache_db.spack.identifiers import is_name, is_package

KEYS = {"title", "layout", "categories"} | JSON_KEYS

MAX_FAULTS = 100
"""So many faults of one page are told; no more are looked for."""

META = Shape(Meta)
DETAIL = Shape(SpecDetail)
_HASH = re.compile(r"[a-z2-7]{32}")


def key_faults(front: FrontMatter) -> list[LineFault]:
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


def json_faults(source: Json, key: str) -> tuple[Any, list[LineFault]]:
    """Decode JSON with Python's own decoder, which can say where it breaks.

    Returns:
        The value, and faults; the value is None where there are faults. An object comes as a
        `JsonPairs`, so that a key that stands twice can be seen.
    """
    try:
        text = source.text.decode()
        return json.loads(text, object_pairs_hook=JsonPairs, parse_constant=_refuse_constant), []
    except json.JSONDecodeError as error:
        line = source.line + error.lineno - 1
        column = error.colno + (source.column - 1 if error.lineno == 1 else 0)
        said = f"broken JSON in {key} at column {column}: {error.msg}, expected JSON"
        return None, [LineFault(line, said)]
    except RecursionError:
        said = f"broken JSON in {key}: nested too deeply, expected lists of objects"
        return None, [LineFault(source.line, said)]
    except ValueError as error:
        return None, [LineFault(source.line, f"broken JSON in {key}: {error}, expected JSON")]


class JsonPairs(list[tuple[str, Any]]):
    """A JSON object as its list of (key, value), in the order of the text."""


def meta_faults(value: Any, line: int) -> list[LineFault]:
    """Return what is wrong with a decoded `meta`."""
    if isinstance(value, JsonPairs):
        keys = {key for key, _ in value}
        if not keys & {"stacks", "num_specs", "num_specs_by_stack"} and "versions" in keys:
            message = (
                "2022 page: its meta has no stacks and no num_specs, its specs lie in spec-N.json "
                "files; expected a page of 2023 or later"
            )
            return [LineFault(line, message)]
    return _object_faults(value, META, "meta", line)


def detail_faults(value: Any, line: int) -> list[LineFault]:
    """Return what is wrong with a decoded `spec_details`."""
    if isinstance(value, JsonPairs) or not isinstance(value, list):
        return [LineFault(line, "spec_details has a wrong type, expected a list of objects")]
    faults: list[LineFault] = []
    for index, item in enumerate(value):
        if len(faults) > MAX_FAULTS:
            return faults
        where = f"spec_details[{index}]"
        faults += _object_faults(item, DETAIL, where, line)
        dag_hash = dict(item).get("hash") if isinstance(item, JsonPairs) else None
        if isinstance(dag_hash, str) and not _HASH.fullmatch(dag_hash):
            said = f"{where}.hash is {quoted(dag_hash)}, expected 32 characters of a-z and 2-7"
            faults.append(LineFault(line, said))
    hashes = Counter(
        text
        for item in value
        if isinstance(item, JsonPairs)
        if isinstance(text := dict(item).get("hash"), str)
    )
    faults += [
        LineFault(line, f"spec_details lists the hash {_name(text)} {count} times, expected once")
        for text, count in hashes.items()
        if count > 1
    ]
    return faults


def _object_faults(value: Any, shape: Shape, where: str, line: int) -> list[LineFault]:
    if not isinstance(value, JsonPairs):
        return [LineFault(line, f"{where} has a wrong type, expected an object")]
    kinds = shape.kinds
    counts = Counter(key for key, _ in value)
    said = [
        f"{where}.{_name(key)} stands {n} times, expected once"
        for key, n in counts.items()
        if n > 1
    ]
    said += [
        f"{where}.{key} is missing, expected {kind}"
        for key, kind in kinds.items()
        if key not in counts and key not in shape.optional
    ]
    for key, member in value:
        if key not in kinds:
            said.append(f"unknown key {where}.{_name(key)}, expected only {', '.join(kinds)}")
        elif not _is(member, kinds[key]):
            said.append(f"{where}.{key} has a wrong type, expected {kinds[key]}")
        elif isinstance(member, JsonPairs) and len(dict(member)) < len(member):
            said.append(f"{where}.{key} names something twice, expected each stack once")
        elif _has_nul(member):
            said.append(f"{where}.{key} holds a NUL character, expected text")
    return [LineFault(line, each) for each in said]


def _is(value: Any, kind: str) -> bool:
    if kind == TEXT:
        return isinstance(value, str)
    if kind == TEXTS:
        return (
            isinstance(value, list)
            and not isinstance(value, JsonPairs)
            and all(isinstance(each, str) for each in value)
        )
    if kind == NUMBER:
        return _is_int(value)
    return isinstance(value, JsonPairs) and all(_is_int(count) for _, count in value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _has_nul(value: Any) -> bool:
    return (
        "\0" in value
        if isinstance(value, str)
        else (isinstance(value, list | tuple) and any(_has_nul(each) for each in value))
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _name(text: str) -> str:
    return text if text.isprintable() and len(text) <= 60 else quoted(text)


def quoted(text: str) -> str:
    """Return text as it may stand in a message: one line, printable, not long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


_META_DECODER = msgspec.json.Decoder(Meta)
_DETAILS_DECODER = msgspec.json.Decoder(tuple[SpecDetail, ...])
_BASE32 = b"abcdefghijklmnopqrstuvwxyz234567"

_LONGEST_NAME = 100
_NAMES_HOLD = (
    f"at most {_LONGEST_NAME} printable characters with no blank at either end and no - before them"
)
_PACKAGES_HOLD = f"at most {_LONGEST_NAME} of a-z, A-Z, 0-9, _, - and ., no - or . at the start"


def parse_page(raw: RawFile) -> Page:
    """Return the record of one page, whose `spec_details` have not been looked at.

    Raises:
        InputError: with every fault of the rest of this page.
    """
    try:
        front = read_front_matter(bytes(raw.data))
        if front.keys != KEYS or front.json.keys() != JSON_KEYS:
            raise _Refused(key_faults(front))
        package, release = _names(front)
        meta = _decode_meta(front.json["meta"])
    except (LineFault, _Refused) as error:
        raise _located(error, raw.location) from None
    return Page(
        location=raw.location,
        path=raw.path,
        sha256=hashlib.sha256(raw.data).hexdigest(),
        package=package,
        release=release,
        format=_format(front, meta),
        meta=meta,
        spec_details=front.json["spec_details"],
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
    """Return what is wrong in a file as an error that names the file."""
    faults = error.faults if isinstance(error, _Refused) else [error]
    return InputError(Fault(location, each.line, each.message) for each in _few(faults))


def _few(faults: list[LineFault]) -> Iterator[LineFault]:
    """Yield the first faults of a page; a wrong file may have one for every byte."""
    yield from faults[:MAX_FAULTS]
    if len(faults) > MAX_FAULTS:
        yield LineFault(0, f"has more faults than the {MAX_FAULTS} that are told")


class _Refused(Exception):
    def __init__(self, faults: list[LineFault]) -> None:
        self.faults = faults


def _names(front: FrontMatter) -> tuple[str, str]:
    """Return the package and the release that the small keys name."""
    values, lines = front.values, front.lines
    package, layout, categories = values["title"], values["layout"], values["categories"]
    faults = []
    if not isinstance(package, str) or not package:
        faults.append(LineFault(lines["title"], "title is not a package name, expected text"))
    elif not is_package(package) or len(package) > _LONGEST_NAME:
        message = f"title is {quoted(package)}, expected a package name: {_PACKAGES_HOLD}"
        faults.append(LineFault(lines["title"], message))
    if layout != "cache":
        said = quoted(layout) if isinstance(layout, str) else "no text"
        faults.append(LineFault(lines["layout"], f"layout is {said}, expected cache"))
    if not _names_release(categories):
        message = "no release in categories, expected [package, RELEASE]"
        faults.append(LineFault(lines["categories"], message))
    elif not is_name(categories[1]) or len(categories[1]) > _LONGEST_NAME:
        message = f"the release is {quoted(categories[1])}, expected a name: {_NAMES_HOLD}"
        faults.append(LineFault(lines["categories"], message))
    if faults:
        raise _Refused(faults)
    return package, categories[1]


def _names_release(categories: object) -> bool:
    return (
        isinstance(categories, list)
        and len(categories) == 2
        and categories[0] == "package"
        and isinstance(categories[1], str)
        and bool(categories[1])
    )


def _decode_meta(source: Json) -> Meta:
    require_countable(source, "meta")
    try:
        decode = _read_meta if len(source.text) <= _LONGEST_KEPT else _meta
        meta, is_plain = decode(source.text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise _Refused(_explain(source, "meta")) from None
    except ValueError as error:
        raise LineFault(source.line, str(error)) from None
    if not is_plain:
        _refuse_if_faulty(source, "meta")
    return meta


def _meta(text: bytes) -> tuple[Meta, bool]:
    """Return `meta`, and whether it needs no closer look (raises as `require_bounded_meta`)."""
    meta = _META_DECODER.decode(text)
    require_bounded_meta(meta)
    return meta, _holds(text, META.texts([meta]))


_read_meta = lru_cache(maxsize=256)(_meta)
"""Many releases have the same."""

_LONGEST_KEPT = 2**16
"""Bytes: what is kept for the next page may not fill the memory."""


def _decode_details(source: Json) -> tuple[SpecDetail, ...]:
    require_countable(source, "spec_details")
    try:
        details = _DETAILS_DECODER.decode(source.text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise _Refused(_explain(source, "spec_details")) from None
    hashes = [detail.hash for detail in details]
    if not holds_each_key_once(source.text, details) or not are_distinct_hashes(hashes):
        _refuse_if_faulty(source, "spec_details")
    return details


def are_distinct_hashes(texts: Sequence[str]) -> bool:
    """Return whether each of these texts is a DAG hash, and none stands twice.

    A DAG hash is 32 characters of lower-case base32 (Spack 1.1 `spec.py`, `util/hash.py`).
    """
    joined = "".join(texts)
    return (
        {*map(len, texts)} <= {32}
        and joined.isascii()
        and not joined.encode().translate(None, _BASE32)
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


def _refuse_if_faulty(source: Json, key: str) -> None:
    faults = _explain(source, key, certain=False)
    if faults:
        raise _Refused(faults)


def _explain(source: Json, key: str, *, certain: bool = True) -> list[LineFault]:
    """Return what is wrong with a big key; `certain`: the decoder refused it."""
    value, faults = json_faults(source, key)
    if not faults:
        faults = (meta_faults if key == "meta" else detail_faults)(value, source.line)
    if not faults and certain:
        said = f"{key} is not JSON that can be read, expected what pages hold"
        return [LineFault(source.line, said)]
    return faults


def _format(front: FrontMatter, meta: Meta) -> str:
    """Return the era of a page that lists specs: A, B or C."""
    if front.json["meta"].text.startswith(b'{"versions"'):
        return "C"
    return "B" if any("@=" in compiler for compiler in meta.compilers) else "A"


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
