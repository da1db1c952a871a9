"""Columns of many units → one catalogue: every text once, every page once, no order yet.

The numbers here are provisional: they depend on how the input was divided. `numbering.py` gives
the final ones, which do not.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from spack_cache_db.build.arrays import Numbers, pairs, ranges
from spack_cache_db.errors import Fault
from spack_cache_db.records import Configuration
from spack_cache_db.sources.columns import Columns, PageEntry, Tarball


class Listings(NamedTuple):
    """Five parallel arrays, a number in each for one listing: indices into the catalogue's texts.

    They count from 0, but `tarball` from 1: there, 0 means that the listing has none.
    """

    spec: Numbers
    configuration: Numbers
    stacks: Numbers
    size: Numbers
    tarball: Numbers

    def of(self, pages: Iterable[PageEntry]) -> Listings:
        """Return the listings of some pages, page after page."""
        starts, counts = (
            np.array([(page.start, page.spec_count) for page in pages], dtype=np.int64)
            .reshape(-1, 2)
            .T
        )
        at = ranges(starts, counts)
        return Listings(*(column[at] for column in self))


class Catalogue:
    """All pages merged.

    After `settle`, `pages` is sorted by the names of release and package, each pair once, and the
    texts are lists that the numbers in `listings` are indices into.
    """

    def __init__(self) -> None:
        self.pages: list[PageEntry] = []
        self.faults: list[Fault] = []
        self.bytes_read = 0
        self.hashes: list[str] = []
        self.configurations: list[Configuration] = []
        self.stack_sets: list[tuple[str, ...]] = []
        self.sizes: list[str] = []
        self.tarballs: list[Tarball] = []
        self.listings = Listings(*[np.zeros(0, dtype=np.uint32)] * 5)
        self._texts: dict[str, dict[Hashable, int]] = defaultdict(dict)
        self._parts = [self.listings]
        self._length = 0

    def add(self, columns: Columns) -> None:
        """Merge what one unit says."""
        self.pages += [page._replace(start=page.start + self._length) for page in columns.pages]
        self.faults += columns.faults
        self.bytes_read += columns.bytes_read
        tarballs = [0, *self._intern("tarball", columns.tarballs, 1)]
        part = Listings(
            _translated(columns.spec, self._intern("spec", columns.hashes)),
            _translated(
                columns.configuration, self._intern("configuration", columns.configurations)
            ),
            _translated(columns.stacks, self._intern("stacks", columns.stack_sets)),
            _translated(columns.size, self._intern("size", columns.sizes)),
            _translated(columns.tarball, tarballs),
        )
        self._parts.append(part)
        self._length += len(part.spec)

    def settle(self) -> None:
        """Sort the pages, keep one of those that are equal, refuse those that contradict.

        A refused page becomes a fault; of several, the first by path is kept.
        """
        self.hashes = self._interned("spec")
        self.configurations = self._interned("configuration")
        self.stack_sets = self._interned("stacks")
        self.sizes = self._interned("size")
        self.tarballs = self._interned("tarball")
        self.listings = Listings(*map(np.concatenate, zip(*self._parts, strict=True)))
        self._parts.clear()
        self.pages.sort(key=lambda page: (page.release, page.package, page.path, page.location))
        kept: list[PageEntry] = []
        for page in self.pages:
            last = kept[-1] if kept else None
            if last is None or (last.release, last.package) != (page.release, page.package):
                kept.append(page)
            elif last.sha256 != page.sha256:
                self.faults.append(_contradiction(last, page))
        self.pages = self._without_shared_hashes(kept)

    def _intern(self, kind: str, texts: Iterable[Hashable], first: int = 0) -> list[int]:
        known = self._texts[kind]
        return [known.setdefault(text, len(known)) + first for text in texts]

    def _interned(self, kind: str) -> list[Any]:
        return list(self._texts.pop(kind, ()))

    def _doubtful(self) -> set[int]:
        """Return the specs that have more than one configuration."""
        specs = pairs(self.listings.spec, self.listings.configuration).first
        return {*specs[1:][specs[1:] == specs[:-1]].tolist()}

    def _without_shared_hashes(self, pages: list[PageEntry]) -> list[PageEntry]:
        """Refuse a page that lists a hash which another package lists in the same release."""
        doubtful = self._doubtful()
        if not doubtful:
            return pages
        hashes = self.hashes
        owner: dict[tuple[str, int], str] = {}
        kept: list[PageEntry] = []
        for page in pages:
            listed = self.listings.spec[page.start : page.start + page.spec_count]
            specs = doubtful.intersection(listed.tolist())
            shared = sorted(hashes[spec] for spec in specs if (page.release, spec) in owner)
            if shared:
                by_hash = {hashes[spec]: spec for spec in specs}
                other = owner[page.release, by_hash[shared[0]]]
                message = f"lists the spec {shared[0]}, which {other} lists in the same release"
                self.faults.append(Fault(page.location, 0, f"{message}; expected one package"))
                continue
            owner.update({(page.release, spec): page.location for spec in specs})
            kept.append(page)
        return kept


def _translated(numbers: array[int], names: list[int]) -> Numbers:
    """Return `names[number]` for each number."""
    translated: Numbers = np.array(names, dtype=np.uint32)[np.asarray(numbers)]
    return translated


def _contradiction(first: PageEntry, second: PageEntry) -> Fault:
    return Fault(
        second.location,
        0,
        f"another page of {second.package} in {second.release} than {first.location}, "
        "expected one page per package and release",
    )
