"""Records → columns: what one unit of the input says, each text once, each listing five numbers.

A worker process reads a unit and ships its columns. They are compact, because the parent has to
merge those of every worker: texts are interned here, listings are arrays of unsigned integers.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import UNSET

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration, Meta, Page, Problem, SpecDetail
from spack_cache_db.schema import TARBALL_PATH
from spack_cache_db.sources.pages.consistency import page_problems, variant_problems
from spack_cache_db.sources.pages.normal import as_set, normal_configuration

_BEFORE_HASH, _, _AFTER_HASH = "".join(TARBALL_PATH).partition("{hash}")


class PageEntry(NamedTuple):
    """A page and the slice of the listing columns that is its own."""

    shown: str
    path: str
    sha256: str
    package: str
    release: str
    format: str
    start: int
    spec_count: int
    problems: tuple[Problem, ...]


class Tarball(NamedTuple):
    """The part of a tarball's URL that a listing's other columns do not give."""

    url: str
    is_whole: bool


def _numbers() -> array[int]:
    return array("I")


@dataclass(slots=True)
class Columns:
    """What a unit says. The five arrays have one number per listing: an index into the texts.

    `tarball` counts from 1; 0 means that the page gave no URL.
    """

    pages: list[PageEntry] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    configurations: list[Configuration] = field(default_factory=list)
    stack_sets: list[tuple[str, ...]] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)
    tarballs: list[Tarball] = field(default_factory=list)
    spec: array[int] = field(default_factory=_numbers)
    configuration: array[int] = field(default_factory=_numbers)
    stacks: array[int] = field(default_factory=_numbers)
    size: array[int] = field(default_factory=_numbers)
    tarball: array[int] = field(default_factory=_numbers)
    faults: list[Fault] = field(default_factory=list)
    bytes_read: int = 0


def to_columns(pages: Iterable[Page | Fault]) -> Columns:
    """Collect pages into columns; a page that cannot be kept becomes faults."""
    writer = _Writer()
    for page in pages:
        if isinstance(page, Fault):
            writer.columns.faults.append(page)
        else:
            try:
                writer.add(page)
            except InputError as error:
                writer.columns.faults.extend(error.faults)
    return writer.finish()


class _Writer:
    """Interns the texts of one unit. Keys are raw spellings: normal form is made once for each."""

    def __init__(self) -> None:
        self.columns = Columns()
        self._hashes: dict[str, int] = {}
        self._spellings: dict[tuple[object, ...], int] = {}
        self._configurations: dict[Configuration, int] = {}
        self._stack_spellings: dict[tuple[str, ...], int] = {}
        self._stack_sets: dict[tuple[str, ...], int] = {}
        self._sizes: dict[str, int] = {}
        self._tarballs: dict[Tarball, int] = {}
        self._suffixes: dict[int, str] = {}
        self._odd: dict[int, tuple[Problem, ...]] = {}
        self._sound: set[tuple[Meta, frozenset[int], tuple[int, ...]]] = set()
        self._mirror: str | None = None
        self._mirror_number = 0

    def add(self, page: Page) -> None:
        columns = self.columns
        spec, configuration, stacks, size, tarball = [], [], [], [], []
        hashes, spellings = self._hashes, self._spellings
        package = page.package
        for detail in page.details:
            key = (
                package,
                detail.compiler,
                detail.versions,
                detail.os,
                detail.platform,
                detail.target,
                detail.variants,
            )
            at = spellings.get(key)
            if at is None:
                at = spellings[key] = self._configuration(page, detail)
            configuration.append(at)
            stack_set = self._stack_spellings.get(detail.stacks)
            stacks.append(self._stack_set(page, detail) if stack_set is None else stack_set)
            spec.append(hashes.setdefault(detail.hash, len(hashes)))
            size.append(self._sizes.setdefault(detail.size, len(self._sizes)))
            tarball.append(0 if detail.tarball is UNSET else self._tarball(detail, at))
        columns.pages.append(
            PageEntry(
                page.shown, page.path, page.sha256, package, page.release, page.format,
                len(columns.spec), len(spec), self._problems(page, configuration, stacks),
            )
        )  # fmt: skip
        columns.spec.extend(spec)
        columns.configuration.extend(configuration)
        columns.stacks.extend(stacks)
        columns.size.extend(size)
        columns.tarball.extend(tarball)

    def _problems(
        self, page: Page, configuration: list[int], stacks: list[int]
    ) -> tuple[Problem, ...]:
        distinct = frozenset(configuration)
        # Most pages say what the page of another week says, and that one has been looked at.
        key = (page.meta, distinct, tuple(sorted(stacks)))
        if key in self._sound:
            return ()
        configurations, stack_sets = self.columns.configurations, self.columns.stack_sets
        found = page_problems(
            page.meta,
            [configurations[at] for at in distinct],
            [(stack_sets[at], count) for at, count in Counter(stacks).items()],
        )
        odd = {each for at in distinct & self._odd.keys() for each in self._odd[at]}
        problems = (*found, *sorted(odd))
        if not problems:
            self._sound.add(key)
        return problems

    def finish(self) -> Columns:
        columns = self.columns
        columns.hashes = list(self._hashes)
        columns.sizes = list(self._sizes)
        columns.tarballs = list(self._tarballs)
        return columns

    def _configuration(self, page: Page, detail: SpecDetail) -> int:
        try:
            found = normal_configuration(page.package, detail)
        except ValueError as error:
            raise _fault(page, detail, error) from None
        at = self._configurations.setdefault(found, len(self._configurations))
        if at == len(self.columns.configurations):
            self.columns.configurations.append(found)
            if odd := tuple(variant_problems(found)):
                self._odd[at] = odd
        return at

    def _stack_set(self, page: Page, detail: SpecDetail) -> int:
        try:
            found = as_set("stack", detail.stacks)
        except ValueError as error:
            raise _fault(page, detail, error) from None
        at = self._stack_sets.setdefault(found, len(self._stack_sets))
        if at == len(self.columns.stack_sets):
            self.columns.stack_sets.append(found)
        self._stack_spellings[detail.stacks] = at
        return at

    def _tarball(self, detail: SpecDetail, configuration: int) -> int:
        suffix = self._suffixes.get(configuration)
        if suffix is None:
            suffix = tarball_suffix(self.columns.configurations[configuration])
            self._suffixes[configuration] = suffix
        url, end = str(detail.tarball), f"{suffix}{detail.hash}{_AFTER_HASH}"
        # All tarballs of a page lie in one mirror: mostly it is the one seen last.
        if self._mirror is not None and url == self._mirror + end:
            return self._mirror_number
        if not url.endswith(end):
            return self._tarballs.setdefault(Tarball(url, True), len(self._tarballs)) + 1
        self._mirror = url[: -len(end)]
        tarball = Tarball(self._mirror, False)
        self._mirror_number = self._tarballs.setdefault(tarball, len(self._tarballs)) + 1
        return self._mirror_number


def tarball_suffix(spec: Configuration) -> str:
    """Return what follows a mirror's prefix in a tarball's URL, up to the hash."""
    parts = spec._asdict() | {"compiler": spec.compiler.replace("@", "-")}
    return _BEFORE_HASH.format(**parts)


def _fault(page: Page, detail: SpecDetail, error: ValueError) -> InputError:
    message = f"the spec {detail.hash} {error}"
    return InputError([Fault(page.shown, page.line, message)])
