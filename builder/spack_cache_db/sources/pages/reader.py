"""Reads pages of the build-cache site, one per package and release, of 2023 and later.

Texts are stored in normal form: `gcc@=13.2.0` and `gcc@13.2.0/abc…` become
`gcc@13.2.0`, `libs:=shared,static` becomes `libs=shared,static`, and lists are sorted,
because their order has no meaning. All other texts are stored unchanged. The two big
keys of a page are read as JSON, because a YAML reader would be a hundred times slower.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache, partial
from typing import NamedTuple

from spack_cache_db.errors import LineFault
from spack_cache_db.model import Configuration, Problem
from spack_cache_db.sources.bounds import (
    require_bounded,
    require_cell,
    require_few,
    require_name,
)
from spack_cache_db.sources.pages.checks import (
    SPELLING,
    as_set,
    computed_meta,
    contradictions,
    declared_meta,
    normal_configuration,
)
from spack_cache_db.sources.pages.front_matter import Meta, Page, SpecDetail
from spack_cache_db.sources.tarballs import TarballParts
from spack_cache_db.sources.writer import Texts, Writer
from spack_cache_db.spack.normal_forms import readable_variant


class _ListingColumns(NamedTuple):
    """The numbers of a page's listings; 0 for a size or tarball that it lacks."""

    configuration: list[int]
    stacks: list[int]
    size: list[int]
    tarball: list[int]


class PageReader:
    """Reads pages into columns; a page contains the names of its release and stacks."""

    def __init__(self, writer: Writer) -> None:
        texts = writer.texts
        self._writer = writer
        self._texts = texts
        # The numbers of configurations, by package and the texts of a listing.
        self._spellings: dict[object, int] = {}
        # Bound methods would refer back to this reader, and workers do not collect
        # cycles.
        self._stacks = cache(partial(_add_stacks, texts))
        self._size = cache(partial(_add_size, texts))
        self._tarballs = TarballParts(texts.configurations.things)
        # What `_problems` has been called with, if it found none.
        self._sound: set[tuple[Meta, frozenset[int], tuple[int, ...]]] = set()

    def add(self, page: Page) -> None:
        """Add a page; raises `LineFault` without adding any of its listings."""
        columns = _ListingColumns([], [], [], [])
        for detail in page.details:
            try:
                self._add_listing(columns, page.package, detail)
            except ValueError as error:
                raise LineFault(page.line, f"the spec {detail.hash} {error}") from None
        problems = self._problems(page.meta, columns.configuration, columns.stacks)
        document = page.document._replace(problems=problems)
        self._writer.append(
            "listings",
            self._writer.add(document),
            spec=[self._texts.hashes[detail.hash] for detail in page.details],
            configuration=columns.configuration,
            stacks=columns.stacks,
            size=columns.size,
            tarball=columns.tarball,
        )

    def _add_listing(
        self, columns: _ListingColumns, package: str, detail: SpecDetail
    ) -> None:
        """Add the numbers of a listing to columns; `ValueError` if a text is wrong."""
        spelling = (package, SPELLING(detail))
        configuration = self._spellings.get(spelling)
        if configuration is None:
            normal = normal_configuration(package, detail)
            require_bounded(normal)
            configuration = self._texts.configurations[normal]
            self._spellings[spelling] = configuration
        columns.configuration.append(configuration)
        columns.stacks.append(self._stacks(detail.stacks))
        columns.size.append(self._size(detail.size))
        tarball = 0
        if isinstance(detail.tarball, str):
            tarball = self._tarball(detail.hash, detail.tarball, configuration)
        columns.tarball.append(tarball)

    def _tarball(self, dag_hash: str, url: str, configuration: int) -> int:
        """Return the number of the stored part of a tarball's URL."""
        parts = self._tarballs.split(url, configuration, dag_hash)
        if parts not in self._texts.tarballs:
            # All other parts of the URL come from the configuration, which has bounds.
            require_cell("tarball", url)
        return self._texts.tarballs[parts]

    def _problems(
        self, meta: Meta, configuration: Collection[int], stacks: Collection[int]
    ) -> tuple[Problem, ...]:
        """Return the contradictions in a page, and its variants that are not Spack's.

        Args:
            meta: what the page declares.
            configuration: the number of each listing's configuration.
            stacks: the number of each listing's set of stacks.
        """
        # Most pages repeat the page of another week, which has been checked.
        distinct = frozenset(configuration)
        key = (meta, distinct, tuple(sorted(stacks)))
        if key in self._sound:
            return ()

        configurations = self._texts.configurations.things
        stack_sets = self._texts.stack_sets.things
        records = [configurations[number - 1] for number in distinct]
        sets_of_listings = [stack_sets[number - 1] for number in stacks]
        computed = computed_meta(records, sets_of_listings)
        problems = list(contradictions(declared_meta(meta), computed))
        problems += _unreadable_variants(records)
        if not problems:
            self._sound.add(key)
        return tuple(problems)


def _unreadable_variants(configurations: Iterable[Configuration]) -> list[Problem]:
    """Return a problem for each variant that Spack cannot read, sorted."""
    messages = set()
    for configuration in configurations:
        for text in configuration.variants:
            if not readable_variant(text):
                messages.add(f"{text!r} is not a variant of Spack's; stored unchanged")
    return [Problem("variant", message) for message in sorted(messages)]


def _add_stacks(texts: Texts, stacks: tuple[str, ...]) -> int:
    require_few("stacks", len(stacks))
    for text in stacks:
        require_name("stack", text)
    return texts.stack_sets[as_set("stack", stacks)]


def _add_size(texts: Texts, text: str) -> int:
    if text == "-":
        return 0
    require_cell("size", text)
    return texts.sizes[text]
