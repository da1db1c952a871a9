"""Numbers the distinct listings of many pages.

Pages of two releases have most of their listings in common, byte for byte. So a listing
is looked up by its bytes, and only new ones are decoded.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from functools import cache, partial

from spack_cache_db.errors import LineFault
from spack_cache_db.sources.bounds import (
    require_bounded,
    require_cell,
    require_few,
    require_name,
)
from spack_cache_db.sources.pages.checks import SPELLING, as_set, normal_configuration
from spack_cache_db.sources.pages.json_values import (
    SpecDetail,
    cut_details,
    decode_piece,
)
from spack_cache_db.sources.pages.page import Page, details_of
from spack_cache_db.sources.tarballs import TarballParts
from spack_cache_db.sources.texts import BROKEN
from spack_cache_db.sources.writer import Interned, Texts


class DistinctListings:
    """The distinct listings of pages; the first one has the number 0.

    Attributes:
        columns: the columns of `listings`, except `document`.
        kinds: for each listing, the index of its kind in `kinds_of_listings.things`.
        kinds_of_listings: the distinct pairs of a configuration and a set of stacks, in
            numbers.
    """

    def __init__(self, texts: Texts) -> None:
        names = ("spec", "configuration", "stacks", "size", "tarball")
        self.columns = {name: array("I") for name in names}
        self.kinds = array("I")
        self.kinds_of_listings: Interned[tuple[int, int]] = Interned()
        self._texts = texts
        # The numbers of listings by package and bytes, and those of configurations by
        # package and the texts of a listing.
        self._of_bytes: dict[str, dict[bytes, int]] = defaultdict(dict)
        self._of_texts: dict[str, dict[object, int]] = defaultdict(dict)
        # Bound methods would refer back to this object, and workers do not collect
        # cycles.
        self._stacks = cache(partial(_add_stacks, texts))
        self._size = cache(partial(_add_size, texts))
        self._tarballs = TarballParts(texts.configurations.things)

    def numbers_of(self, page: Page) -> list[int]:
        """Return the numbers of a page's listings; raises `LineFault`."""
        try:
            return self._looked_up(page)
        except BROKEN:
            # A page that is written in another way, or the fault of one listing: the
            # whole decoder finds the first fault.
            return self._decoded(page)

    def _looked_up(self, page: Page) -> list[int]:
        """Return the numbers of listings that are looked up by their bytes.

        Raises:
            ValueError: a listing cannot be read, or a hash is repeated.
        """
        known = self._of_bytes[page.package]
        pieces = cut_details(page.details)
        numbers = []
        for piece in pieces:
            number = known.get(piece)
            if number is None:
                number = self._add(page.package, decode_piece(piece))
                known[piece] = number
            numbers.append(number)
        spec = self.columns["spec"]
        if len({spec[number] for number in numbers}) < len(numbers):
            raise ValueError("a hash is repeated")
        return numbers

    def _decoded(self, page: Page) -> list[int]:
        """Return the numbers of listings that are all decoded; raises `LineFault`."""
        numbers = []
        for detail in details_of(page):
            try:
                numbers.append(self._add(page.package, detail))
            except ValueError as error:
                raise LineFault(page.line, f"the spec {detail.hash} {error}") from None
        return numbers

    def _add(self, package: str, detail: SpecDetail) -> int:
        """Add a listing and return its number; `ValueError` if a text is wrong."""
        texts = self._texts
        configuration = self._configuration(package, detail)
        stacks = self._stacks(detail.stacks)
        size = self._size(detail.size)
        tarball = 0
        if isinstance(detail.tarball, str):
            tarball = self._tarball(detail.hash, detail.tarball, configuration)

        number = len(self.kinds)
        self.kinds.append(self.kinds_of_listings[configuration, stacks] - 1)
        self.columns["spec"].append(texts.hashes[detail.hash])
        self.columns["configuration"].append(configuration)
        self.columns["stacks"].append(stacks)
        self.columns["size"].append(size)
        self.columns["tarball"].append(tarball)
        return number

    def _configuration(self, package: str, detail: SpecDetail) -> int:
        """Return the number of a listing's configuration."""
        known = self._of_texts[package]
        spelling = SPELLING(detail)
        number = known.get(spelling)
        if number is None:
            configuration = normal_configuration(package, detail)
            require_bounded(configuration)
            number = self._texts.configurations[configuration]
            known[spelling] = number
        return number

    def _tarball(self, dag_hash: str, url: str, configuration: int) -> int:
        """Return the number of the stored part of a tarball's URL."""
        parts = self._tarballs.split(url, configuration, dag_hash)
        if parts not in self._texts.tarballs:
            # All other parts of the URL come from the configuration, which has bounds.
            require_cell("tarball", url)
        return self._texts.tarballs[parts]


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
