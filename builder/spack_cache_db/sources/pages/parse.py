"""Pages' bytes → records: the three eras that list specs are read, older ones refused by name.

A sound page takes the fast road: front matter, two JSON decodes, a few checks. Only a page that
fails is looked at again, by `faults.py`, to say what is wrong with it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.pages.bounds import require_bounded_meta, require_countable
from spack_cache_db.sources.pages.faults import (
    DETAIL,
    KEYS,
    MAX_FAULTS,
    META,
    detail_faults,
    json_faults,
    key_faults,
    meta_faults,
    quoted,
)
from spack_cache_db.sources.pages.front_matter import (
    JSON_KEYS,
    FrontMatter,
    PageFault,
    read_front_matter,
)
from spack_cache_db.sources.pages.records import Meta, Page, SpecDetail

_META_DECODER = msgspec.json.Decoder(Meta)
_DETAILS_DECODER = msgspec.json.Decoder(tuple[SpecDetail, ...])
_HASHES = re.compile(r"(?:[a-z2-7]{32} )*")
"""Spack's DAG hash: 32 characters of lower-case base32 (Spack 1.1 `spec.py`, `util/hash.py`)."""

_NAMES_HOLD = "at most 100 printable characters with no blank at either end"


def parse_page(raw: RawFile) -> Page:
    """Return the record of one page.

    Raises:
        InputError: with every fault of this page.
    """
    try:
        front = read_front_matter(bytes(raw.data))
        if front.keys != KEYS or front.json.keys() != JSON_KEYS:
            raise _Refused(key_faults(front))
        package, release = _names(front)
        meta = _decode_meta(front)
        details = _decode_details(front)
    except PageFault as fault:
        raise InputError([Fault(raw.location, fault.line, fault.message)]) from None
    except _Refused as refused:
        raise InputError(
            Fault(raw.location, each.line, each.message) for each in _few(refused.faults)
        ) from None
    sha256 = hashlib.sha256(raw.data).hexdigest()
    return Page(
        location=raw.location,
        path=raw.path,
        line=front.lines["spec_details"],
        sha256=sha256,
        package=package,
        release=release,
        format=_format(front, meta),
        meta=meta,
        details=details,
    )


def _few(faults: list[PageFault]) -> Iterator[PageFault]:
    """Yield the first faults of a page; a wrong file may have one for every byte."""
    yield from faults[:MAX_FAULTS]
    if len(faults) > MAX_FAULTS:
        yield PageFault(0, f"has more faults than the {MAX_FAULTS} that are told")


class _Refused(Exception):
    def __init__(self, faults: list[PageFault]) -> None:
        self.faults = faults


def _names(front: FrontMatter) -> tuple[str, str]:
    """Return the package and the release that the small keys name."""
    values, lines = front.values, front.lines
    package, layout, categories = values["title"], values["layout"], values["categories"]
    faults = []
    if not isinstance(package, str) or not package:
        faults.append(PageFault(lines["title"], "title is not a package name, expected text"))
    elif not _is_name(package):
        message = f"title is {quoted(package)}, expected a package name: {_NAMES_HOLD}"
        faults.append(PageFault(lines["title"], message))
    if layout != "cache":
        said = quoted(layout) if isinstance(layout, str) else "no text"
        faults.append(PageFault(lines["layout"], f"layout is {said}, expected cache"))
    if not _names_release(categories):
        message = "no release in categories, expected [package, RELEASE]"
        faults.append(PageFault(lines["categories"], message))
    elif not _is_name(categories[1]):
        message = f"the release is {quoted(categories[1])}, expected a name: {_NAMES_HOLD}"
        faults.append(PageFault(lines["categories"], message))
    if faults:
        raise _Refused(faults)
    return package, categories[1]


def _is_name(text: str) -> bool:
    """Return whether text can stand in a message, a link and a table; it is data, never a path."""
    return text.isprintable() and text == text.strip() and len(text) <= 100


def _names_release(categories: object) -> bool:
    return (
        isinstance(categories, list)
        and len(categories) == 2
        and categories[0] == "package"
        and isinstance(categories[1], str)
        and bool(categories[1])
    )


def _decode_meta(front: FrontMatter) -> Meta:
    text = front.json["meta"].text
    require_countable(front.json["meta"], "meta")
    try:
        meta, is_plain = (_read_meta if len(text) <= _LONGEST_KEPT else _meta)(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise _Refused(_explain(front, "meta")) from None
    if not is_plain:
        _refuse_if_faulty(front, "meta")
    try:
        require_bounded_meta(meta)
    except ValueError as error:
        raise PageFault(front.lines["meta"], str(error)) from None
    return meta


def _meta(text: bytes) -> tuple[Meta, bool]:
    """Return `meta`, and whether it needs no closer look."""
    meta = _META_DECODER.decode(text)
    return meta, _holds(text, META.texts([meta]))


_read_meta = lru_cache(maxsize=256)(_meta)
"""Many releases have the same."""

_LONGEST_KEPT = 2**16
"""Bytes: what is kept for the next page may not fill the memory."""


def _decode_details(front: FrontMatter) -> tuple[SpecDetail, ...]:
    text = front.json["spec_details"].text
    require_countable(front.json["spec_details"], "spec_details")
    try:
        details = _DETAILS_DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise _Refused(_explain(front, "spec_details")) from None
    hashes = [detail.hash for detail in details]
    if (
        not _holds(text, DETAIL.texts(details))
        or not _HASHES.fullmatch(" ".join([*hashes, ""]))
        or len(set(hashes)) != len(hashes)
    ):
        _refuse_if_faulty(front, "spec_details")
    return details


def _holds(text: bytes, texts: int) -> bool:
    """Return whether JSON has as many strings as were decoded; a key that stands twice is one more.

    The decoder lets the last of such keys win in silence. Quotes are only counted where none is
    escaped; a NUL is always escaped (RFC 8259 section 7).
    """
    return b"\\" not in text and text.count(b'"') == 2 * texts


def _refuse_if_faulty(front: FrontMatter, key: str) -> None:
    faults = _explain(front, key, certain=False)
    if faults:
        raise _Refused(faults)


def _explain(front: FrontMatter, key: str, *, certain: bool = True) -> list[PageFault]:
    """Return what is wrong with a big key; `certain`: the decoder refused it."""
    value, faults = json_faults(front.json[key], key)
    if not faults:
        faults = (meta_faults if key == "meta" else detail_faults)(value, front.lines[key])
    if not faults and certain:
        line = front.lines[key]
        faults = [PageFault(line, f"{key} is not JSON that can be read, expected what pages hold")]
    return faults


def _format(front: FrontMatter, meta: Meta) -> str:
    """Return the era of a page that lists specs: A, B or C."""
    if front.json["meta"].text.startswith(b'{"versions"'):
        return "C"
    return "B" if any("@=" in compiler for compiler in meta.compilers) else "A"
