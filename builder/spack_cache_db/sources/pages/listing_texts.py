"""The listings of a page by their text, so that a text that repeats is decoded once.

Two listings of one configuration mostly differ in their hash alone, and pages of two weeks repeat
each other. Cut at each `"hash": "`, the text of `spec_details` gives pieces that begin with 32
characters of a hash; the rest of a piece, the end of one listing and the beginning of the next,
repeats:

    [{"compiler": "gcc@13.2.0", | 2i24…54qa", "os": "rhel8", …}, {"compiler": "gcc@13.2.0", | 3wdo…

This is sound where the text has no backslash, because each listing is decoded strictly when it is
first seen: a cut inside of a string leaves an odd number of quotes on both sides, which is no JSON.
Whatever does not fit is left to the decoder of whole pages, which also tells what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET

from spack_cache_db.errors import InputError
from spack_cache_db.sources.pages.page_format import Page, SpecDetail
from spack_cache_db.sources.pages.page_parser import (
    MAX_ITEMS,
    are_distinct_hashes,
    holds_each_key_once,
)

Row = tuple[int, int, int, int]
"""The numbers of a listing's configuration, stacks, size and tarball."""

_DETAIL_DECODER = msgspec.json.Decoder(SpecDetail)
_AT_HASH = b'"hash": "'
_BETWEEN = b"}, {"
_HASH_LENGTH = 32
_TARBALL = b'"tarball": "'
_FOLDER = b"/build_cache/"
# Stand for the listing's hash and for the page's mirror in the URL of a tarball. A page has no NUL.
_THE_HASH, _THE_MIRROR = b"\0h", b"\0m"
_MOST_TEXTS = 2**16
_MOST_BYTES = 2**25
"""When so much is kept, all of it is forgotten: what a worker keeps may not fill the memory."""


RowOf = Callable[[Page, SpecDetail], Row | None]
"""The row of a listing, which depends on its package and on all of its text but the hash; None for
one whose row depends on its hash."""


class _Place(dict[bytes, tuple[Row, int]]):
    """Where a hash may stand: after `head`, the beginning of its listing.

    Maps the text after the hash, as far as the next one, to the row of the listing and to the
    number of the place of the next hash. Were it the place itself, places would refer to each other
    in circles, and a worker, which does not look for circles, would keep every unit it has read.
    `rows` maps the end of the listing alone to its row: what follows a listing has many beginnings.
    """

    __slots__ = ("head", "rows")

    def __init__(self, head: bytes) -> None:
        super().__init__()
        self.head = head
        self.rows: dict[bytes, Row] = {}


class ListingTexts:
    """Rows of listings by their text."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[tuple[str, bytes, bytes], int] = {}
        self._places: list[_Place] = []
        self._texts = self._bytes = 0

    def rows(self, page: Page, row_of: RowOf) -> tuple[list[str], list[Row]] | None:
        """Return the hash and the row of each listing; None if the page has to be decoded."""
        text = page.spec_details.text
        if b"\\" in text or text[:2] != b"[{" or text[-2:] != b"}]" or len(text) > MAX_ITEMS:
            return None
        mirror = b""
        if _TARBALL in text:
            mirror = _mirror_of(text)
            if not mirror:
                return None
            text = text.replace(mirror, _THE_MIRROR)
        head, *pieces = text[2:].split(_AT_HASH)
        if not pieces:
            return None
        pieces[-1] = pieces[-1][:-2] + _BETWEEN
        if self._texts > _MOST_TEXTS or self._bytes > _MOST_BYTES:
            self._forget()
        places = self._places
        place = places[self._number(page.package, mirror, head)]
        hashes, rows = [], []
        for piece in pieces:
            dag_hash, after = piece[:_HASH_LENGTH], piece[_HASH_LENGTH:]
            if mirror:
                after = after.replace(dag_hash, _THE_HASH)
            known = place.get(after) or self._read(page, row_of, mirror, place, dag_hash, after)
            if known is None:
                return None
            row, following = known
            place = places[following]
            hashes.append(dag_hash)
            rows.append(row)
        texts = b" ".join(hashes).decode(errors="replace").split(" ")
        return (texts, rows) if not place.head and are_distinct_hashes(texts) else None

    def _number(self, package: str, mirror: bytes, head: bytes) -> int:
        key = (package, mirror, head)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._places)
            self._places.append(_Place(head))
        return number

    def _read(
        self,
        page: Page,
        row_of: RowOf,
        mirror: bytes,
        place: _Place,
        dag_hash: bytes,
        after: bytes,
    ) -> tuple[Row, int] | None:
        """Keep the row of a listing and the place that follows; None if a page would not say so."""
        end, between, head = after.partition(_BETWEEN)
        if not between:
            return None
        row = place.rows.get(end)
        if row is None:
            text = b"".join([b"{", place.head, _AT_HASH, dag_hash, end, b"}"])
            text = text.replace(_THE_MIRROR, mirror).replace(_THE_HASH, dag_hash)
            row = _decoded(page, row_of, text, dag_hash)
            if row is None:
                return None
            place.rows[end] = row
        self._texts += 1
        self._bytes += len(after)
        known = place[after] = row, self._number(page.package, mirror, head)
        return known


def _decoded(page: Page, row_of: RowOf, text: bytes, dag_hash: bytes) -> Row | None:
    """Return the row of a listing by its whole text; None if it is not as pages write them."""
    try:
        detail = _DETAIL_DECODER.decode(text)
        is_plain = holds_each_key_once(text, [detail]) and detail.hash.encode() == dag_hash
        # Its URL alone may contain its hash; what else does is not the same in another listing.
        is_plain = is_plain and text.count(dag_hash) == 1 + (detail.tarball is not UNSET)
        return row_of(page, detail) if is_plain else None
    except (msgspec.DecodeError, UnicodeError, InputError):
        return None


def _mirror_of(text: bytes) -> bytes:
    """Return what the first tarball's URL begins with, up to the folder that mirrors have."""
    start = text.find(_TARBALL) + len(_TARBALL)
    url = text[start : text.find(b'"', start)]
    return url[: url.find(_FOLDER) + 1]
