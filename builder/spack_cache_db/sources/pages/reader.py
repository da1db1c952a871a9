"""Pages → columns. Keys are raw spellings here, so that normal form is made once for each."""

from __future__ import annotations

from collections import defaultdict

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.sources.columns import Document, PageFacts, Writer
from spack_cache_db.sources.files import RawFile
from spack_cache_db.sources.pages.bounds import (
    require_bounded,
    require_bounded_stacks,
    require_short_text,
)
from spack_cache_db.sources.pages.consistency import Consistency
from spack_cache_db.sources.pages.normal import as_set, normal_configuration
from spack_cache_db.sources.pages.parse import parse_page
from spack_cache_db.sources.pages.records import OF_A_LISTING, Page, SpecDetail
from spack_cache_db.sources.pages.shapes import values_of
from spack_cache_db.sources.tarballs import TarballParts

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

    def add(self, file: RawFile) -> None:
        """Read one page.

        Raises:
            InputError: with every fault of this page; none of its listings is kept.
        """
        self.keep(parse_page(file))

    def keep(self, page: Page) -> None:
        """Add a page that has been parsed (as `add`)."""
        spec, configuration, stacks, size, tarball = [], [], [], [], []
        hashes, sizes, stack_spellings = self._texts.hashes, self._sizes, self._stack_spellings
        spellings = self._spellings[page.package]
        for detail in page.details:
            key = _spelling(detail)
            at = spellings.get(key)
            if at is None:
                at = spellings[key] = self._configuration(page, detail)
            configuration.append(at)
            stack_set = stack_spellings.get(detail.stacks)
            stacks.append(self._stack_set(page, detail) if stack_set is None else stack_set)
            spec.append(hashes[detail.hash])
            known = sizes.get(detail.size)
            size.append(self._size(page, detail) if known is None else known)
            url = detail.tarball
            tarball.append(self._tarball(page, detail, url, at) if isinstance(url, str) else 0)
        problems = self._consistency.problems(page.meta, configuration, stacks)
        facts = PageFacts(page.package, page.format)
        number = self._writer.add(
            Document(page.location, page.path, page.sha256, page.release, problems, facts)
        )
        self._writer.append(
            "listings",
            number,
            spec=spec,
            configuration=configuration,
            stacks=stacks,
            size=size,
            tarball=tarball,
        )

    def _configuration(self, page: Page, detail: SpecDetail) -> int:
        try:
            require_bounded(detail)
            return self._texts.configurations[normal_configuration(page.package, detail)]
        except ValueError as error:
            raise detail_fault(page, detail, error) from None

    def _stack_set(self, page: Page, detail: SpecDetail) -> int:
        try:
            require_bounded_stacks(detail.stacks)
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
        _require_short(page, detail, "tarball", url)
        parts = self._tarballs.split(url, configuration, detail.hash)
        return self._texts.tarballs[parts]


def _require_short(page: Page, detail: SpecDetail, word: str, text: str) -> None:
    try:
        require_short_text(word, text)
    except ValueError as error:
        raise detail_fault(page, detail, error) from None


def detail_fault(page: Page, detail: SpecDetail, error: ValueError) -> InputError:
    """Return the error that names a detail which has no normal form."""
    message = f"the spec {detail.hash} {error}"
    return InputError([Fault(page.location, page.line, message)])
