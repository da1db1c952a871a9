"""Pages → columns.

Normal form is made once for each spelling: `gcc@=13.2.0` and `gcc@13.2.0/abc…` are `gcc@13.2.0`,
`libs:=shared,static` is `libs=shared,static`, and the order of a list has no meaning. Nothing else
of a page is changed.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration
from spack_cache_db.sources.columns import Document, PageFacts, TarballParts, Writer
from spack_cache_db.sources.pages.consistency import Consistency
from spack_cache_db.sources.pages.listing_texts import ListingTexts, Row
from spack_cache_db.sources.pages.page_format import (
    OF_A_LISTING,
    Page,
    SpecDetail,
    values_of,
)
from spack_cache_db.sources.pages.page_parser import parse_page, read_details
from spack_cache_db.sources.strictness import (
    MAX_TEXT,
    require_bounded,
    require_few,
    require_name,
    require_short,
)
from spack_cache_db.sources.units import RawFile
from spack_cache_db.spack.compilers import normal_compiler
from spack_cache_db.spack.variants import normal_variant


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


class PageReader:
    """Reads pages into the columns of a unit."""

    def __init__(self, writer: Writer) -> None:
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
        key = _spelling(detail)
        spellings = self._spellings[page.package]
        configuration = spellings.get(key)
        if configuration is None:
            configuration = spellings[key] = self._configuration(page, detail)
        stacks = self._stack_spellings.get(detail.stacks)
        if stacks is None:
            stacks = self._stack_set(page, detail)
        size = self._sizes.get(detail.size)
        if size is None:
            size = self._size(page, detail)
        url = detail.tarball
        tarball = self._tarball(page, detail, url, configuration) if isinstance(url, str) else 0
        return configuration, stacks, size, tarball

    def _row_without_hash(self, page: Page, detail: SpecDetail) -> Row | None:
        row = self._row(page, detail)
        tarball = row[-1]
        return None if tarball and self._texts.tarballs.things[tarball - 1].is_whole else row

    def _configuration(self, page: Page, detail: SpecDetail) -> int:
        try:
            configuration = normal_configuration(page.package, detail)
            require_bounded(configuration)
        except ValueError as error:
            raise detail_fault(page, detail, error) from None
        return self._texts.configurations[configuration]

    def _stack_set(self, page: Page, detail: SpecDetail) -> int:
        try:
            require_few("stacks", len(detail.stacks))
            for text in detail.stacks:
                require_name("stack", text)
            at = self._texts.stack_sets[as_set("stack", detail.stacks)]
        except ValueError as error:
            raise detail_fault(page, detail, error) from None
        self._stack_spellings[detail.stacks] = at
        return at

    def _size(self, page: Page, detail: SpecDetail) -> int:
        _require_short(page, detail, "size", detail.size)
        at = self._sizes[detail.size] = self._texts.sizes[detail.size]
        return at

    def _tarball(self, page: Page, detail: SpecDetail, url: str, configuration: int) -> int:
        parts = self._tarballs.split(url, configuration, detail.hash)
        known = self._texts.tarballs.get(parts)
        if known is None:
            # What follows a known prefix is made of the configuration, which has bounds.
            _require_short(page, detail, "tarball", url)
            known = self._texts.tarballs[parts]
        return known


def _require_short(page: Page, detail: SpecDetail, word: str, text: str) -> None:
    try:
        require_short(word, text, MAX_TEXT)
    except ValueError as error:
        raise detail_fault(page, detail, error) from None


def detail_fault(page: Page, detail: SpecDetail, error: ValueError) -> InputError:
    """Return the error that names a detail which has no normal form."""
    message = f"the spec {detail.hash} {error}"
    return InputError([Fault(page.location, page.spec_details.line, message)])
