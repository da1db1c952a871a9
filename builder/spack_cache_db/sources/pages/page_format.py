"""A page as frozen records, and its two JSON values decoded strictly. No text is changed here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from spack_cache_db.errors import LineFault
from spack_cache_db.sources.strictness import (
    BROKEN,
    MAX_NAME,
    MAX_TEXTS,
    quoted,
    require_few,
    require_short,
    said,
)
from spack_cache_db.spack.lexer import is_hash

T = TypeVar("T")

MAX_ITEMS = 500_000
"""Values in the JSON of one key, each pair of an object counted as one. A binary has about 30."""

_BASE32 = b"abcdefghijklmnopqrstuvwxyz234567"
_HASH_LENGTH = 32


class Meta(Struct, frozen=True, gc=False, forbid_unknown_fields=True, eq=False):
    """The `meta` object of a page: the source's own summary of its `spec_details`.

    Pages may share one; two are equal if they are the same object.
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
    """One member of `spec_details`: one listing, in the spelling of its page."""

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


OF_A_LISTING = frozenset({"hash", "stacks", "size", "tarball"})
"""The fields of a detail that do not belong to the configuration."""


class Json(NamedTuple):
    """The JSON text of a big key, and the 1-based line on which it starts."""

    text: bytes
    line: int


class Page(Struct, frozen=True, gc=False):
    """One page: one package in one release.

    `format` is the era of the page: A (2025 on), B (early 2025) or C (2023 and 2024). `location`
    is for messages, `path` is the page's name within the input. `spec_details` is not decoded.
    """

    location: str
    path: str
    sha256: str
    package: str
    release: str
    format: str
    meta: Meta
    spec_details: Json


_META_TEXTS = tuple(name for name in Meta.__struct_fields__ if name != "num_specs")
_META = msgspec.json.Decoder(Meta)
_DETAILS = msgspec.json.Decoder(tuple[SpecDetail, ...])


@lru_cache(maxsize=256)
def decode_meta(source: Json) -> Meta:
    """Return the value of `meta`, which is the same on the pages of many releases.

    Raises:
        LineFault: it is not the `meta` of a page of 2023 or later, or has a text without a bound.
    """
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
    texts = [getattr(meta, name) for name in _META_TEXTS]
    is_plain = source.text.isascii() and b"\\" not in source.text
    longest = max(map(len, chain.from_iterable(texts)), default=0)
    if not is_plain or longest > MAX_NAME or max(map(len, texts)) > MAX_TEXTS:
        _require_bounded(source, texts)
    return meta


def _require_bounded(source: Json, texts: Sequence[Collection[str]]) -> None:
    """Reject a `meta` with too many texts, or with one that is too long or not printable."""
    try:
        for name, value in zip(_META_TEXTS, texts, strict=True):
            require_few(name, len(value))
            for text in value:
                require_short(f"text in {name}", text, MAX_NAME)
    except ValueError as error:
        raise LineFault(source.line, f"meta {error}") from None


def decode_details(source: Json) -> tuple[SpecDetail, ...]:
    """Return the value of `spec_details`: listings with distinct hashes.

    Raises:
        LineFault: it does not have that form. The message has the path of the first fault.
    """
    details = _decoded(_DETAILS, source, "spec_details")
    _require_distinct_hashes(source, [detail.hash for detail in details])
    return details


def _decoded(decoder: msgspec.json.Decoder[T], source: Json, key: str) -> T:
    _require_countable(source, key)
    try:
        return decoder.decode(source.text)
    except BROKEN as error:
        raise LineFault(source.line, f"{key}: {said(error)}") from None


def _require_countable(source: Json, key: str) -> None:
    """Reject JSON whose values would take a hundred times its size in memory: `[],[],[],…`."""
    text = source.text
    if len(text) > MAX_ITEMS:
        items = text.count(b",") + text.count(b"[") + text.count(b"{")
        if items > MAX_ITEMS:
            message = f"{key} has about {items:,} values, expected at most {MAX_ITEMS:,} in a page"
            raise LineFault(source.line, message)


def _require_distinct_hashes(source: Json, hashes: list[str]) -> None:
    """Reject texts that are not DAG hashes: 32 characters of base32 (Spack 1.1 `util/hash.py`)."""
    joined = "".join(hashes).encode()
    if {*map(len, hashes)} <= {_HASH_LENGTH} and not joined.translate(None, _BASE32):
        if len({*hashes}) == len(hashes):
            return
        repeated = next(text for text in hashes if hashes.count(text) > 1)
        message = f"the hash {repeated} is listed twice, expected once"
    else:
        at, wrong = next((at, text) for at, text in enumerate(hashes) if not is_hash(text))
        message = f"$[{at}].hash is {quoted(wrong)}, expected 32 characters of a-z and 2-7"
    raise LineFault(source.line, f"spec_details: {message}")
