"""Pages → columns.

The normal form is made once for each spelling: `gcc@=13.2.0` and `gcc@13.2.0/abc…` become
`gcc@13.2.0`, `libs:=shared,static` becomes `libs=shared,static`, and lists are sorted, because
their order has no meaning. Nothing else of a page is changed.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration
from spack_cache_db.sources import ANYWHERE, Place, RawFile
from spack_cache_db.sources.columns import Document, PageFacts, TarballParts, Writer
from spack_cache_db.sources.pages.consistency import Consistency
from spack_cache_db.sources.pages.page_format import Page, SpecDetail
from spack_cache_db.sources.pages.page_parser import parse_page, read_details
from spack_cache_db.sources.strictness import (
    MAX_TEXT,
    require_bounded,
    require_few,
    require_name,
    require_no_formula,
    require_short,
)
from spack_cache_db.spack.normal_forms import normal_compiler, normal_variant


def normal_configuration(package: str, detail: SpecDetail) -> Configuration:
    """Return the configuration of a listing, in normal form.

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
    """Return texts sorted; `ValueError` if one is repeated, because a set would lose it."""
    ordered = tuple(sorted(texts))  # type: ignore[call-overload]  # any iterable of text
    for left, right in pairwise(ordered):
        if left == right:
            raise ValueError(f"lists the {word} {left!r} twice, expected once")
    return ordered


def kept_variant(text: str) -> str:
    """Return a variant's normal form; text that is not a variant stays as it is."""
    try:
        return normal_variant(text)
    except ValueError:
        return text


UNKNOWN_SIZE = "-"
"""The size that pages print where they do not know it."""

Row = tuple[int, int, int, int]
"""The numbers of a listing's configuration, stacks, size and tarball."""


def _spelling(detail: SpecDetail) -> tuple[object, ...]:
    """Return the fields of a detail from which its configuration is made."""
    return (
        detail.compiler,
        detail.versions,
        detail.os,
        detail.platform,
        detail.target,
        detail.variants,
    )


class PageReader:
    """Reads pages into the columns of a unit; a page names its release and stacks itself."""

    def __init__(self, writer: Writer, place: Place = ANYWHERE) -> None:
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
            InputError: with the first fault of this page; none of its listings is kept.
        """
        self.keep(parse_page(file))

    def keep(self, page: Page) -> None:
        """Add a page whose listings are not decoded yet (raises as `add`)."""
        details = read_details(page)
        rows = [self._row(page, detail) for detail in details]
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
            spec=[hashes[detail.hash] for detail in details],
            configuration=configuration,
            stacks=stacks,
            size=size,
            tarball=tarball,
        )

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
                if detail.size != UNKNOWN_SIZE:
                    require_no_formula("size", detail.size)
                size = self._sizes[detail.size] = self._texts.sizes[detail.size]
            url = detail.tarball
            tarball = self._tarball(detail.hash, url, configuration) if isinstance(url, str) else 0
        except ValueError as error:
            raise detail_fault(page, detail, error) from None
        return configuration, stacks, size, tarball

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
            # The rest of a URL is made of the configuration, which has bounds.
            require_short("tarball", url, MAX_TEXT)
            require_no_formula("tarball", url)
            known = self._texts.tarballs[parts]
        return known


def detail_fault(page: Page, detail: SpecDetail, error: ValueError) -> InputError:
    """Return the error for a listing that has no normal form."""
    message = f"the spec {detail.hash} {error}"
    return InputError([Fault(page.location, page.spec_details.line, message)])
