"""Reads pages of the build-cache site, one per package and release, of 2023 and later.

Texts are stored in normal form: `gcc@=13.2.0` and `gcc@13.2.0/abc…` become
`gcc@13.2.0`, `libs:=shared,static` becomes `libs=shared,static`, and lists are sorted,
because their order has no meaning. All other texts are stored unchanged. The two big
keys of a page are read as JSON, because a YAML reader would be a hundred times slower.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spack_cache_db.model import Configuration, Problem
from spack_cache_db.sources.pages.checks import (
    contradictions,
    counts_of,
    declared_meta,
    lists_of,
)
from spack_cache_db.sources.pages.json_values import Meta
from spack_cache_db.sources.pages.listings import DistinctListings
from spack_cache_db.sources.pages.page import Page
from spack_cache_db.sources.writer import Writer
from spack_cache_db.spack.normal_forms import readable_variant


class _Implied(NamedTuple):
    """What the configurations of a page imply: lists of `meta`, and problems of their
    variants.
    """

    lists: dict[str, Any]
    problems: list[Problem]


class PageReader:
    """Reads pages into columns; a page contains the names of its release and stacks."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._listings = DistinctListings(writer.texts)
        # The document and the number of each listing of a page.
        self._documents = array("I")
        self._numbers = array("I")
        # What `_problems` has been called with, if it found none.
        self._sound: set[tuple[Meta, tuple[int, ...]]] = set()
        self._implied_by: dict[frozenset[int], _Implied] = {}

    def add(self, page: Page) -> None:
        """Add a page; raises `LineFault` without adding any of its listings."""
        numbers = self._listings.numbers_of(page)
        problems = self._problems(page.meta, numbers)
        document = page.document
        if problems:
            document = document._replace(problems=problems)
        number = self._writer.add(document)
        self._documents.extend([number] * len(numbers))
        self._numbers.extend(numbers)

    def finish(self) -> None:
        """Write the listings of all pages."""
        numbers = np.asarray(self._numbers)
        columns = {"document": np.asarray(self._documents)}
        for name, column in self._listings.columns.items():
            columns[name] = np.asarray(column)[numbers]
        self._writer.extend("listings", columns)

    def _problems(self, meta: Meta, numbers: Sequence[int]) -> tuple[Problem, ...]:
        """Return the contradictions in a page, and its variants that are not Spack's.

        Args:
            meta: what the page declares.
            numbers: the numbers of its listings.
        """
        # Most pages repeat the page of another week, which has been checked.
        kind_of = self._listings.kinds
        kinds = sorted([kind_of[number] for number in numbers])
        key = (meta, tuple(kinds))
        if key in self._sound:
            return ()

        # Compute what the listings imply.
        every_set = self._writer.texts.stack_sets.things
        configurations = set()
        stack_sets = []
        for kind in kinds:
            configuration, stacks = self._listings.kinds_of_listings.things[kind]
            configurations.add(configuration)
            stack_sets.append(every_set[stacks - 1])
        implied = self._implied(frozenset(configurations))
        computed = {**implied.lists, **counts_of(stack_sets)}

        problems = list(contradictions(declared_meta(meta), computed))
        problems += implied.problems
        if not problems:
            self._sound.add(key)
        return tuple(problems)

    def _implied(self, configurations: frozenset[int]) -> _Implied:
        """Return what the configurations of a page imply, by their numbers."""
        implied = self._implied_by.get(configurations)
        if implied is None:
            every_one = self._writer.texts.configurations.things
            records = [every_one[number - 1] for number in configurations]
            implied = _Implied(lists_of(records), _unreadable_variants(records))
            self._implied_by[configurations] = implied
        return implied


def _unreadable_variants(configurations: Iterable[Configuration]) -> list[Problem]:
    """Return a problem for each variant that Spack cannot read, sorted."""
    messages = set()
    for configuration in configurations:
        for text in configuration.variants:
            if not readable_variant(text):
                messages.add(f"{text!r} is not a variant of Spack's; stored unchanged")
    return [Problem("variant", message) for message in sorted(messages)]
