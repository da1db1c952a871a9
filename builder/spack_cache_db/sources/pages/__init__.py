"""Reads pages of the build-cache site, one per package and release, of 2023 and later.

Texts are stored in normal form: `gcc@=13.2.0` and `gcc@13.2.0/abc…` become `gcc@13.2.0`,
`libs:=shared,static` becomes `libs=shared,static`, and lists are sorted, because their order has
no meaning. All other texts are stored unchanged. A page that contradicts its own summary is stored
with a problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any

from spack_cache_db.errors import Fault, InputError
from spack_cache_db.records import Configuration, Problem
from spack_cache_db.schema import FACETS
from spack_cache_db.sources import RawFile
from spack_cache_db.sources.columns import Document, PageFacts, TarballParts, Texts, Writer
from spack_cache_db.sources.pages.page_parser import Meta, Page, SpecDetail, parse_page
from spack_cache_db.sources.strictness import (
    MAX_TEXT,
    as_json,
    require_bounded,
    require_few,
    require_name,
    require_no_formula,
    require_short,
)
from spack_cache_db.spack.normal_forms import normal_compiler, normal_variant, readable_variant

UNKNOWN_SIZE = "-"
"""The size in pages that do not know it."""

LISTS = {f"{field}s": field for field in ("version", *FACETS)}
"""The lists of `meta`, and the field of the configurations in each."""

StackSets = Collection[tuple[tuple[str, ...], int]]
"""Sets of stacks, each with the number of its listings."""

Facts = dict[str, Any]
"""The value of each key of `meta`."""


class PageReader:
    """Reads pages into columns; a page contains the names of its release and stacks."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._texts = texts = writer.texts
        self._spellings: dict[object, int] = {}
        # Bound methods would refer back to this reader, and workers do not collect cycles.
        self._stacks = cache(partial(_add_stacks, texts))
        self._size = cache(partial(_add_size, texts))
        self._tarballs = TarballParts(texts.configurations.things)
        self._sound: set[tuple[Meta, frozenset[int], tuple[int, ...]]] = set()

    def add(self, file: RawFile) -> None:
        """Read one page; raises `InputError` with its first fault."""
        self.keep(parse_page(file))

    def keep(self, page: Page) -> None:
        """Add a parsed page; raises as `add`, without adding any of its listings."""
        rows = [self._row(page, detail) for detail in page.details]
        hashes = self._texts.hashes
        configuration, stacks, size, tarball = zip(*rows, strict=True) if rows else ((),) * 4
        problems = self._problems(page.meta, configuration, stacks)
        facts = PageFacts(page.package, page.format)
        number = self._writer.add(
            Document(page.location, page.path, page.sha256, page.release, problems, facts)
        )
        self._writer.append(
            "listings",
            number,
            spec=[hashes[detail.hash] for detail in page.details],
            configuration=configuration,
            stacks=stacks,
            size=size,
            tarball=tarball,
        )

    def _row(self, page: Page, detail: SpecDetail) -> tuple[int, int, int, int]:
        """Return the numbers of a listing's configuration, stacks, size and tarball."""
        key = (
            page.package,
            detail.compiler,
            detail.versions,
            detail.os,
            detail.platform,
            detail.target,
            detail.variants,
        )
        try:
            configuration = self._spellings.get(key)
            if configuration is None:
                normal = normal_configuration(page.package, detail)
                require_bounded(normal)
                configuration = self._spellings[key] = self._texts.configurations[normal]
            stacks, size = self._stacks(detail.stacks), self._size(detail.size)
            url = detail.tarball
            tarball = self._tarball(detail.hash, url, configuration) if isinstance(url, str) else 0
        except ValueError as error:
            message = f"the spec {detail.hash} {error}"
            raise InputError([Fault(page.location, page.line, message)]) from None
        return configuration, stacks, size, tarball

    def _tarball(self, dag_hash: str, url: str, configuration: int) -> int:
        parts = self._tarballs.split(url, configuration, dag_hash)
        number = self._texts.tarballs.get(parts)
        if number is None:
            # All other parts of the URL come from the configuration, which has bounds.
            _require_text("tarball", url)
            number = self._texts.tarballs[parts]
        return number

    def _problems(
        self, meta: Meta, configuration: Collection[int], stacks: Collection[int]
    ) -> tuple[Problem, ...]:
        """Return the contradictions in a page, given the numbers of its listings' values."""
        distinct = frozenset(configuration)
        # Most pages repeat the page of another week, which has been checked.
        key = (meta, distinct, tuple(sorted(stacks)))
        if key in self._sound:
            return ()
        configurations, sets = self._texts.configurations.things, self._texts.stack_sets.things
        records = [configurations[number - 1] for number in distinct]
        counts = [(sets[number - 1], count) for number, count in Counter(stacks).items()]
        unreadable = {
            problem for record in records for problem in variant_problems(record.variants)
        }
        problems = (*page_problems(meta, records, counts), *sorted(unreadable))
        if not problems:
            self._sound.add(key)
        return problems


def _add_stacks(texts: Texts, stacks: tuple[str, ...]) -> int:
    require_few("stacks", len(stacks))
    for text in stacks:
        require_name("stack", text)
    return texts.stack_sets[as_set("stack", stacks)]


def _add_size(texts: Texts, text: str) -> int:
    if text == UNKNOWN_SIZE:
        return 0
    _require_text("size", text)
    return texts.sizes[text]


def _require_text(word: str, text: str) -> None:
    require_short(word, text, MAX_TEXT)
    require_no_formula(word, text)


def normal_configuration(package: str, detail: SpecDetail) -> Configuration:
    """Return the configuration of a listing, in normal form.

    Raises:
        ValueError: the detail does not have exactly one version, or repeats a variant.
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
        as_set("variant", (_normal(normal_variant, text) for text in detail.variants)),
    )


def as_set(word: str, texts: object) -> tuple[str, ...]:
    """Return texts sorted; `ValueError` if one is repeated."""
    ordered = tuple(sorted(texts))  # type: ignore[call-overload]  # any iterable of text
    for text, following in pairwise(ordered):
        if text == following:
            raise ValueError(f"lists the {word} {text!r} twice, expected once")
    return ordered


def _normal(normal_form: Callable[[str], str], text: str) -> str:
    """Return the normal form of a text, or the text if it has none."""
    try:
        return normal_form(text)
    except ValueError:
        return text


def computed_meta(distinct: Collection[Configuration], stack_sets: StackSets) -> Facts:
    """Return the `meta` that the configurations and stacks of a page imply, in normal form."""
    stacks = Counter[str]()
    for names, count in stack_sets:
        stacks.update(dict.fromkeys(names, count))
    return {
        **{
            key: sorted({getattr(configuration, column) for configuration in distinct})
            for key, column in LISTS.items()
        },
        "stacks": sorted(stacks),
        "num_specs": sum(count for _, count in stack_sets),
        "num_specs_by_stack": dict(sorted(stacks.items())),
    }


def declared_meta(meta: Meta) -> Facts:
    """Return the `meta` that a page declares, in normal form: sorted, compilers without `@=`."""
    return {
        **{key: sorted(getattr(meta, key)) for key in (*LISTS, "stacks")},
        "compilers": sorted({_normal(normal_compiler, name) for name in meta.compilers}),
        "num_specs": meta.num_specs,
        "num_specs_by_stack": dict(sorted(meta.num_specs_by_stack.items())),
    }


def page_problems(
    meta: Meta, distinct: Collection[Configuration], stack_sets: StackSets
) -> Iterator[Problem]:
    """Yield the contradictions between a page's `meta` and its listings."""
    computed = computed_meta(distinct, stack_sets)
    for key, value in declared_meta(meta).items():
        if value != computed[key]:
            message = _difference(key, value, computed[key])
            yield Problem(key, message, value=as_json(value))


@lru_cache(maxsize=4096)
def variant_problems(variants: tuple[str, ...]) -> tuple[Problem, ...]:
    """Return a problem for each text that Spack would not read as a variant."""
    return tuple(
        Problem("variant", f"{text!r} is not a variant of Spack's; stored unchanged")
        for text in variants
        if readable_variant(text) is None
    )


def _difference(key: str, declared: Any, computed: Any) -> str:
    if isinstance(declared, int):
        return f"meta declares {key} {declared}, the page lists {computed}"
    declared_items, computed_items = map(_items, (declared, computed))
    parts = []
    if only_declared := sorted(declared_items - computed_items):
        parts.append(f"declares {', '.join(only_declared)}, which no spec has")
    if only_listed := sorted(computed_items - declared_items):
        parts.append(f"does not declare {', '.join(only_listed)}, which specs have")
    return f"meta.{key} {' and '.join(parts) or 'has a repeated entry'}"


def _items(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {f"{stack} {count}" for stack, count in value.items()}
    return set(value)
