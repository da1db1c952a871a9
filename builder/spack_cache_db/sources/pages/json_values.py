"""Decodes the two values of a page that are JSON: `meta` and `spec_details`."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from spack_cache_db.schema.tables import FACETS
from spack_cache_db.sources.bounds import MAX_NAME, require_few, require_short
from spack_cache_db.sources.texts import BROKEN, message_of, quoted
from spack_cache_db.spack.lexer import is_hash

T = TypeVar("T")

MAX_ITEMS = 500_000
"""Maximum of values in the JSON of one key; a binary has about 30."""

_MAX_CACHED_META = 2**16
"""Bytes of a `meta` that is cached."""

LISTS = {f"{column}s": column for column in ("version", *FACETS)}
"""The lists of `meta`, and the field of the configurations in each."""


_AFTER_LISTING = b", "


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


def decode_meta(text: bytes) -> Meta:
    """Return the value of `meta`; raises `ValueError`."""
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
        for name in LISTS:
            _require_short_texts(name, getattr(meta, name))
        _require_short_texts("stacks", meta.stacks)
        _require_short_texts("num_specs_by_stack", tuple(meta.num_specs_by_stack))
    except ValueError as error:
        raise ValueError(f"meta {error}") from None
    return meta


# Few metas differ in more than their counts.
@lru_cache(maxsize=4096)
def _require_short_texts(name: str, texts: tuple[str, ...]) -> None:
    """Raise `ValueError` if a list of `meta` has too many texts, or too long ones."""
    require_few(name, len(texts))
    for text in texts:
        require_short(f"text in {name}", text, MAX_NAME)


def decode_details(text: bytes) -> tuple[SpecDetail, ...]:
    """Return the value of `spec_details`.

    Raises:
        ValueError: it is not JSON of listings, or a hash is not one or is repeated.
    """
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


def cut_details(text: bytes) -> list[bytes]:
    """Return the value of `spec_details` in pieces, one for each listing.

    `[{"hash": "a"}, {"hash": "b"}]` becomes `"hash": "a"}, ` and `"hash": "b"}, `. A
    text in a listing may be cut as well: then one of the pieces is not JSON. If all of
    them are (`decode_piece`), they are the listings, because the text is their sum.

    Raises:
        ValueError: the text is not written as the site writes it.
    """
    if len(text) > MAX_ITEMS or not (text.startswith(b"[{") and text.endswith(b"}]")):
        raise ValueError("spec_details: written in another way")
    # A single character is found many times faster than `}, {`.
    _, *pieces = text.split(b"{")
    pieces[-1] = pieces[-1].removesuffix(b"]") + _AFTER_LISTING
    return pieces


def decode_piece(piece: bytes) -> SpecDetail:
    """Return the listing of a piece; `ValueError` if it is not one."""
    if not piece.endswith(b"}" + _AFTER_LISTING):
        raise ValueError("spec_details: written in another way")
    detail = _DETAIL.decode(b"{" + piece.removesuffix(_AFTER_LISTING))
    if not is_hash(detail.hash):
        raise ValueError(f"the hash is {quoted(detail.hash)}")
    return detail


_META = msgspec.json.Decoder(Meta)
_DETAIL = msgspec.json.Decoder(SpecDetail)
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
