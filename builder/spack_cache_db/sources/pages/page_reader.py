"""Pages → columns.

Normal form is made once for each spelling: `gcc@=13.2.0` and `gcc@13.2.0/abc…` are `gcc@13.2.0`,
`libs:=shared,static` is `libs=shared,static`, and the order of a list has no meaning. Nothing else
of a page is changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

import msgspec
from msgspec import UNSET

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration
from spack_cache_db.sources import ANYWHERE, Place, RawFile
from spack_cache_db.sources.columns import Document, PageFacts, TarballParts, Writer
from spack_cache_db.sources.pages.consistency import Consistency
from spack_cache_db.sources.pages.page_format import OF_A_LISTING, Page, SpecDetail, values_of
from spack_cache_db.sources.pages.page_parser import (
    MAX_ITEMS,
    are_distinct_hashes,
    holds_each_key_once,
    parse_page,
    read_details,
)
from spack_cache_db.sources.strictness import (
    MAX_TEXT,
    require_bounded,
    require_few,
    require_name,
    require_short,
)
from spack_cache_db.spack.normal_forms import normal_compiler, normal_variant


def normal_configuration(package: str, detail: SpecDetail) -> Configuration:
    """Return what a person can see of a spec, in normal form.

    Raises:
        ValueError: the detail does not have exactly one version, or names a variant twice.
    """
    if len(detail.versions) != 1:
        raise ValueError(f"has {len(detail.versions)} versions, expected one")
    return Configuration(
        package,
        detail.versions[0],
        normal_compiler(detail.compiler),
        detail.os,
        detail.platform,
        detail.target,
        as_set("variant", map(kept_variant, detail.variants)),
    )


def as_set(word: str, texts: object) -> tuple[str, ...]:
    """Return texts sorted; `ValueError` if one stands twice, for a set cannot give it back."""
    ordered = tuple(sorted(texts))  # type: ignore[call-overload]  # any iterable of text
    for left, right in pairwise(ordered):
        if left == right:
            raise ValueError(f"lists the {word} {left!r} twice, expected once")
    return ordered


def kept_variant(text: str) -> str:
    """Return a variant's normal form; text that is no variant stays as it is."""
    try:
        return normal_variant(text)
    except ValueError:
        return text


UNKNOWN_SIZE = "-"
"""What pages print where they do not know a size."""

SPELLING = tuple(name for name in SpecDetail.__struct_fields__ if name not in OF_A_LISTING)
"""All other fields: two details that differ in one of them may have different configurations."""

_spelling = values_of(SPELLING)

Row = tuple[int, int, int, int]
"""The numbers of a listing's configuration, stacks, size and tarball."""

_DETAIL_DECODER = msgspec.json.Decoder(SpecDetail)
_AT_HASH = b'"hash": "'
_BETWEEN = b"}, {"
_HASH_LENGTH = 32
_TARBALL = b'"tarball": "'
# Stands for the listing's hash in the URL of its tarball. A page has no NUL.
_THE_HASH = b"\0"
_MOST_TEXTS = 2**16
_MOST_BYTES = 2**25
"""When so much is kept, all of it is forgotten: what a worker keeps may not fill the memory."""


RowOf = Callable[[Page, SpecDetail], Row | None]
"""The row of a listing, which depends on its package and on all of its text but the hash; None for
one whose row depends on its hash."""


class PageReader:
    """Reads pages into the columns of a unit; they name their release and stacks themselves."""

    def __init__(self, writer: Writer, place: Place = ANYWHERE) -> None:
        self._writer = writer
        self._texts = texts = writer.texts
        self._spellings: dict[str, dict[object, int]] = defaultdict(dict)
        self._stack_spellings: dict[tuple[str, ...], int] = {}
        self._sizes = {UNKNOWN_SIZE: 0}
        self._tarballs = TarballParts(texts.configurations.things)
        self._consistency = Consistency(texts.configurations.things, texts.stack_sets.things)
        self._listing_texts = ListingTexts()

    def add(self, file: RawFile) -> None:
        """Read one page.

        Raises:
            InputError: with every fault of this page; none of its listings is kept.
        """
        self.keep(parse_page(file))

    def keep(self, page: Page) -> None:
        """Add a page whose listings have not been looked at (as `add`)."""
        known = self._listing_texts.rows(page, self._row_without_hash)
        texts, rows = known or self._decoded(page)
        hashes = self._texts.hashes
        configuration, stacks, size, tarball = zip(*rows, strict=True) if rows else ((),) * 4
        problems = self._consistency.problems(page.meta, configuration, stacks)
        facts = PageFacts(page.package, page.format)
        number = self._writer.add(
            Document(page.location, page.path, page.sha256, page.release, problems, facts)
        )
        self._writer.append(
            "listings",
            number,
            spec=[hashes[text] for text in texts],
            configuration=configuration,
            stacks=stacks,
            size=size,
            tarball=tarball,
        )

    def _decoded(self, page: Page) -> tuple[list[str], list[Row]]:
        details = read_details(page)
        return [each.hash for each in details], [self._row(page, each) for each in details]

    def _row(self, page: Page, detail: SpecDetail) -> Row:
        try:
            key = _spelling(detail)
            spellings = self._spellings[page.package]
            configuration = spellings.get(key)
            if configuration is None:
                configuration = spellings[key] = self._configuration(page.package, detail)
            stacks = self._stack_spellings.get(detail.stacks)
            if stacks is None:
                stacks = self._stack_set(detail.stacks)
            size = self._sizes.get(detail.size)
            if size is None:
                require_short("size", detail.size, MAX_TEXT)
                size = self._sizes[detail.size] = self._texts.sizes[detail.size]
            url = detail.tarball
            tarball = self._tarball(detail.hash, url, configuration) if isinstance(url, str) else 0
        except ValueError as error:
            raise detail_fault(page, detail, error) from None
        return configuration, stacks, size, tarball

    def _row_without_hash(self, page: Page, detail: SpecDetail) -> Row | None:
        row = self._row(page, detail)
        tarball = row[-1]
        return None if tarball and self._texts.tarballs.things[tarball - 1].is_whole else row

    def _configuration(self, package: str, detail: SpecDetail) -> int:
        configuration = normal_configuration(package, detail)
        require_bounded(configuration)
        return self._texts.configurations[configuration]

    def _stack_set(self, stacks: tuple[str, ...]) -> int:
        require_few("stacks", len(stacks))
        for text in stacks:
            require_name("stack", text)
        at = self._stack_spellings[stacks] = self._texts.stack_sets[as_set("stack", stacks)]
        return at

    def _tarball(self, dag_hash: str, url: str, configuration: int) -> int:
        parts = self._tarballs.split(url, configuration, dag_hash)
        known = self._texts.tarballs.get(parts)
        if known is None:
            # What follows a known prefix is made of the configuration, which has bounds.
            require_short("tarball", url, MAX_TEXT)
            known = self._texts.tarballs[parts]
        return known


def detail_fault(page: Page, detail: SpecDetail, error: ValueError) -> InputError:
    """Return the error that names a detail which has no normal form."""
    message = f"the spec {detail.hash} {error}"
    return InputError([Fault(page.location, page.spec_details.line, message)])


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
    """Rows of listings by their text, so that a text that repeats is decoded once.

    Two listings of one configuration mostly differ in their hash alone, and pages of two weeks
    repeat each other. Cut at each `"hash": "`, the text of `spec_details` gives pieces that begin
    with 32 characters of a hash; the rest of a piece, the end of one listing and the beginning of
    the next, repeats:

        [{"compiler": "gcc@13.2.0", | 2i24…54qa", "os": "rhel8", …}, {"compiler": "gcc@13.2.0", | 3…

    This is sound where the text has no backslash, because each listing is decoded strictly when it
    is first seen: a cut inside of a string leaves an odd number of quotes on both sides, which is
    no JSON. Whatever does not fit is left to the decoder of whole pages, which also tells what is
    wrong.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._places: list[_Place] = []
        self._texts = self._bytes = 0

    def rows(self, page: Page, row_of: RowOf) -> tuple[list[str], list[Row]] | None:
        """Return the hash and the row of each listing; None if the page has to be decoded."""
        text = page.spec_details.text
        if b"\\" in text or text[:2] != b"[{" or text[-2:] != b"}]" or len(text) > MAX_ITEMS:
            return None
        head, *pieces = text[2:].split(_AT_HASH)
        hashes = [piece[:_HASH_LENGTH] for piece in pieces]
        if not pieces or not are_distinct_hashes(hashes):
            return None
        pieces[-1] = pieces[-1][:-2] + _BETWEEN
        if self._texts > _MOST_TEXTS or self._bytes > _MOST_BYTES:
            self._forget()
        has_urls = _TARBALL in text
        places = self._places
        place = places[self._number(page.package, head)]
        rows = []
        for dag_hash, piece in zip(hashes, pieces, strict=True):
            after = piece[_HASH_LENGTH:]
            if has_urls:
                after = after.replace(dag_hash, _THE_HASH)
            known = place.get(after) or self._read(page, row_of, place, dag_hash, after)
            if known is None:
                return None
            row, following = known
            place = places[following]
            rows.append(row)
        return None if place.head else (b" ".join(hashes).decode().split(" "), rows)

    def _number(self, package: str, head: bytes) -> int:
        key = (package, head)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._places)
            self._places.append(_Place(head))
        return number

    def _read(
        self, page: Page, row_of: RowOf, place: _Place, dag_hash: bytes, after: bytes
    ) -> tuple[Row, int] | None:
        """Keep the row of a listing and the place that follows; None if a page would not say so."""
        end, between, head = after.partition(_BETWEEN)
        if not between:
            return None
        row = place.rows.get(end)
        if row is None:
            text = b"".join([b"{", place.head, _AT_HASH, dag_hash, end, b"}"])
            row = _row_of_text(page, row_of, text.replace(_THE_HASH, dag_hash), dag_hash)
            if row is None:
                return None
            place.rows[end] = row
        self._texts += 1
        self._bytes += len(after)
        known = place[after] = row, self._number(page.package, head)
        return known


def _row_of_text(page: Page, row_of: RowOf, text: bytes, dag_hash: bytes) -> Row | None:
    """Return the row of a listing by its whole text; None if it is not as pages write them."""
    try:
        detail = _DETAIL_DECODER.decode(text)
        is_plain = holds_each_key_once(text, [detail]) and detail.hash.encode() == dag_hash
        # Its URL alone may contain its hash; what else does is not the same in another listing.
        is_plain = is_plain and text.count(dag_hash) == 1 + (detail.tarball is not UNSET)
        return row_of(page, detail) if is_plain else None
    except (msgspec.DecodeError, UnicodeError, InputError):
        return None
