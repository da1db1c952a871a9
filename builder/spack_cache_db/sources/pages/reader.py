"""Reads pages of the build-cache site, one per package and release, of 2023 and later.

Texts are stored in normal form: `gcc@=13.2.0` and `gcc@13.2.0/abc…` become
`gcc@13.2.0`,
`libs:=shared,static` becomes `libs=shared,static`, and lists are sorted, because their
order has no meaning. All other texts are stored unchanged. The two big keys of a page
are read as JSON, because a YAML reader would be a hundred times slower.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache, partial

from spack_cache_db.errors import LineFault
from spack_cache_db.model import Problem
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


class PageReader:
    """Reads pages into columns; a page contains the names of its release and stacks."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._texts = texts = writer.texts
        self._spellings: dict[object, int] = {}
        # Bound methods would refer back to this reader, and workers do not collect
        # cycles.
        self._stacks = cache(partial(_add_stacks, texts))
        self._size = cache(partial(_add_size, texts))
        self._tarballs = TarballParts(texts.configurations.things)
        self._sound: set[tuple[Meta, frozenset[int], tuple[int, ...]]] = set()

    def add(self, page: Page) -> None:
        """Add a page; raises `LineFault` without adding any of its listings."""
        rows = [self._row(page, detail) for detail in page.details]
        configuration, stacks, size, tarball = (
            zip(*rows, strict=True) if rows else ((),) * 4
        )
        problems = self._problems(page.meta, configuration, stacks)
        self._writer.append(
            "listings",
            self._writer.add(page.document._replace(problems=problems)),
            spec=[self._texts.hashes[detail.hash] for detail in page.details],
            configuration=configuration,
            stacks=stacks,
            size=size,
            tarball=tarball,
        )

    def _row(self, page: Page, detail: SpecDetail) -> tuple[int, int, int, int]:
        """Return the numbers of a listing's configuration, stacks, size and tarball."""
        spelling = page.package, SPELLING(detail)
        try:
            configuration = self._spellings.get(spelling)
            if configuration is None:
                normal = normal_configuration(page.package, detail)
                require_bounded(normal)
                configuration = self._spellings[spelling] = self._texts.configurations[
                    normal
                ]
            stacks, size = self._stacks(detail.stacks), self._size(detail.size)
            url = detail.tarball
            tarball = (
                self._tarball(detail.hash, url, configuration)
                if isinstance(url, str)
                else 0
            )
        except ValueError as error:
            raise LineFault(page.line, f"the spec {detail.hash} {error}") from None
        return configuration, stacks, size, tarball

    def _tarball(self, dag_hash: str, url: str, configuration: int) -> int:
        parts = self._tarballs.split(url, configuration, dag_hash)
        if parts not in self._texts.tarballs:
            # All other parts of the URL come from the configuration, which has bounds.
            require_cell("tarball", url)
        return self._texts.tarballs[parts]

    def _problems(
        self, meta: Meta, configuration: Collection[int], stacks: Collection[int]
    ) -> tuple[Problem, ...]:
        """Return the contradictions in a page, given the numbers of its listings'
        values.
        """
        distinct = frozenset(configuration)
        # Most pages repeat the page of another week, which has been checked.
        key = (meta, distinct, tuple(sorted(stacks)))
        if key in self._sound:
            return ()
        configurations, sets = (
            self._texts.configurations.things,
            self._texts.stack_sets.things,
        )
        records = [configurations[number - 1] for number in distinct]
        unreadable = {
            Problem(
                "variant", f"{text!r} is not a variant of Spack's; stored unchanged"
            )
            for record in records
            for text in record.variants
            if not readable_variant(text)
        }
        computed = computed_meta(records, [sets[number - 1] for number in stacks])
        problems = (*contradictions(declared_meta(meta), computed), *sorted(unreadable))
        if not problems:
            self._sound.add(key)
        return problems


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
