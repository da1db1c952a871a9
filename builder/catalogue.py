"""Columns of many units → one catalogue: every text once, every page once, no order yet.

The numbers here are provisional: they depend on how the input was divided. `numbering.py` gives
the final ones, which do not.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable
from operator import ne
from typing import TypeVar

from .columns import Columns, PageEntry, Tarball
from .errors import Fault
from .records import Configuration

T = TypeVar("T", bound=Hashable)


class Catalogue:
    """All pages merged. Lists of texts are indexed by the numbers in the listing arrays.

    `pages` is complete after `settle`: sorted by release and package names, each pair once.
    """

    def __init__(self) -> None:
        self.pages: list[PageEntry] = []
        self.faults: list[Fault] = []
        self.bytes_read = 0
        self._texts: dict[str, dict[Hashable, int]] = defaultdict(dict)
        self.spec_configuration: array[int] = array("I")
        self.spec = array("I")
        self.configuration = array("I")
        self.stacks = array("I")
        self.size = array("I")
        self.tarball = array("I")
        self.doubtful: set[int] = set()

    def add(self, columns: Columns) -> None:
        """Merge what one unit says."""
        offset = len(self.spec)
        self.pages += [page._replace(start=page.start + offset) for page in columns.pages]
        self.faults += columns.faults
        self.bytes_read += columns.bytes_read
        configurations = self._intern("configuration", columns.configurations)
        specs = self._intern("spec", columns.hashes)
        _translate(self.configuration, columns.configuration, configurations)
        _translate(self.spec, columns.spec, specs)
        _translate(self.stacks, columns.stacks, self._intern("stacks", columns.stack_sets))
        _translate(self.size, columns.size, self._intern("size", columns.sizes))
        _translate(
            self.tarball, columns.tarball, [0, *self._intern("tarball", columns.tarballs, 1)]
        )
        self._note_configurations(offset)

    def settle(self) -> None:
        """Sort the pages, keep one of those that are equal, refuse those that contradict.

        A refused page becomes a fault; of several, the first by path is kept.
        """
        self.pages.sort(key=lambda page: (page.release, page.package, page.path, page.shown))
        kept: list[PageEntry] = []
        for page in self.pages:
            last = kept[-1] if kept else None
            if last is None or (last.release, last.package) != (page.release, page.package):
                kept.append(page)
            elif last.sha256 != page.sha256:
                self.faults.append(_contradiction(last, page))
        self.pages = self._without_shared_hashes(kept)

    @property
    def hashes(self) -> list[str]:
        """The hash of each spec."""
        return list(self._texts["spec"])  # type: ignore[arg-type]  # interned as such

    @property
    def configurations(self) -> list[Configuration]:
        """The configurations that listings have."""
        return list(self._texts["configuration"])  # type: ignore[arg-type]

    @property
    def stack_sets(self) -> list[tuple[str, ...]]:
        """The sets of stacks that listings have."""
        return list(self._texts["stacks"])  # type: ignore[arg-type]

    @property
    def sizes(self) -> list[str]:
        """The sizes that listings have."""
        return list(self._texts["size"])  # type: ignore[arg-type]

    @property
    def tarballs(self) -> list[Tarball]:
        """The tarball prefixes that listings have; a listing's number counts from 1."""
        return list(self._texts["tarball"])  # type: ignore[arg-type]

    def _intern(self, kind: str, texts: Iterable[Hashable], first: int = 0) -> list[int]:
        known = self._texts[kind]
        return [known.setdefault(text, len(known)) + first for text in texts]

    def _note_configurations(self, offset: int) -> None:
        """Remember each new spec's configuration, and the specs that have more than one."""
        known = self.spec_configuration
        missing = len(self._texts["spec"]) - len(known)
        known.extend(array("I", [_UNKNOWN]) * missing)
        specs, configurations = self.spec[offset:], self.configuration[offset:]
        for spec, configuration in zip(specs, configurations, strict=True):
            if known[spec] == _UNKNOWN:
                known[spec] = configuration
        if any(map(ne, map(known.__getitem__, specs), configurations)):
            pairs = zip(specs, configurations, strict=True)
            self.doubtful.update(spec for spec, found in pairs if known[spec] != found)

    def _without_shared_hashes(self, pages: list[PageEntry]) -> list[PageEntry]:
        """Refuse a page that lists a hash which another package lists in the same release."""
        if not self.doubtful:
            return pages
        hashes = self.hashes
        owner: dict[tuple[str, int], str] = {}
        kept: list[PageEntry] = []
        for page in pages:
            specs = self.doubtful.intersection(self.spec[page.start : page.start + page.spec_count])
            shared = sorted(hashes[spec] for spec in specs if (page.release, spec) in owner)
            if shared:
                by_hash = {hashes[spec]: spec for spec in specs}
                other = owner[page.release, by_hash[shared[0]]]
                message = f"lists the spec {shared[0]}, which {other} lists in the same release"
                self.faults.append(Fault(page.shown, 0, f"{message}; expected one package"))
                continue
            owner.update({(page.release, spec): page.shown for spec in specs})
            kept.append(page)
        return kept


_UNKNOWN = 2**32 - 1


def _translate(into: array[int], numbers: array[int], names: list[int]) -> None:
    """Append `names[number]` for each number."""
    into.extend(array("I", map(names.__getitem__, numbers)))


def _contradiction(first: PageEntry, second: PageEntry) -> Fault:
    return Fault(
        second.shown,
        0,
        f"another page of {second.package} in {second.release} than {first.shown}, "
        "expected one page per package and release",
    )
