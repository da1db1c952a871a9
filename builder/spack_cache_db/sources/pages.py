"""Reads pages of the build-cache site, one per package and release, of 2023 and later.

Texts are stored in normal form: `gcc@=13.2.0` and `gcc@13.2.0/abc…` become `gcc@13.2.0`,
`libs:=shared,static` becomes `libs=shared,static`, and lists are sorted, because their order has
no meaning. All other texts are stored unchanged. The two big keys of a page are read as JSON,
because a YAML reader would be a hundred times slower.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType

from spack_cache_db.bounded_yaml import YamlBounds, compose, text_value
from spack_cache_db.errors import LineFault
from spack_cache_db.model import Configuration, Problem, is_name
from spack_cache_db.schema.tables import FACETS
from spack_cache_db.sources import (
    BROKEN,
    MAX_NAME,
    RawFile,
    as_json,
    message_of,
    quoted,
    require_bounded,
    require_cell,
    require_few,
    require_name,
    require_short,
    require_text,
)
from spack_cache_db.sources.columns import Document, PageFacts, TarballParts, Texts, Writer
from spack_cache_db.spack.lexer import is_hash, is_package
from spack_cache_db.spack.normal_forms import normal_compiler, normal_variant, readable_variant

T = TypeVar("T")

JSON_KEYS = {"meta", "spec_details"}
"""The big keys, whose values are JSON."""

KEYS = {"title", "layout", "categories"} | JSON_KEYS

MAX_JSON = 2**24
"""Maximum size of a big key in bytes; the largest known pages have a few hundred thousand."""

MAX_YAML = 2**14
"""Maximum size of a small key in bytes; their names have at most 100 characters."""

MAX_ITEMS = 500_000
"""Maximum of values in the JSON of one key; a binary has about 30."""

_MAX_CACHED_META = 2**16

_YAML = YamlBounds(size=MAX_YAML)
_BIG = re.compile(rb"(meta|spec_details):")
_FENCE = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)

_CONTINUES = frozenset(b" \t#-]}\r\n")
"""First bytes of a line that belongs to the entry above it."""

_LONGEST_NAME = 100
_RELEASE_NAME = (
    f"at most {_LONGEST_NAME} printable characters, no blank at either end, none of = + - @ first"
)
_PACKAGE_NAME = f"at most {_LONGEST_NAME} of a-z, A-Z, 0-9, _, - and ., no - or . at the start"


class Meta(Struct, frozen=True, gc=False, forbid_unknown_fields=True, eq=False):
    """The `meta` object of a page, its summary of `spec_details`; compared by identity."""

    versions: tuple[str, ...]
    compilers: tuple[str, ...]
    oss: tuple[str, ...]
    platforms: tuple[str, ...]
    targets: tuple[str, ...]
    stacks: tuple[str, ...]
    num_specs: int
    num_specs_by_stack: dict[str, int]


class SpecDetail(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A member of `spec_details`: a listing with the texts of its page."""

    hash: str
    compiler: str
    versions: tuple[str, ...]
    os: str
    platform: str
    target: str
    variants: tuple[str, ...]
    stacks: tuple[str, ...]
    size: str
    tarball: str | UnsetType = UNSET


class Entry(NamedTuple):
    """The line of a key, and its value: the JSON of a big key, text or a list of a small one."""

    line: int
    value: Any


class Page(NamedTuple):
    """A page; `line` is the first line of its listings, for messages."""

    document: Document
    package: str
    meta: Meta
    details: tuple[SpecDetail, ...]
    line: int


def parse_page(file: RawFile) -> Page:
    """Return the record of one page; raises `LineFault`."""
    front, values = read_front_matter(file.data), {}
    for key, value_of in _VALUES.items():
        line, value = front[key]
        if key in JSON_KEYS and not isinstance(value, bytes):
            raise LineFault(line, f"{key} is not plain JSON, expected a line `{key}: ` and JSON")
        try:
            values[key] = value_of(value)
        except ValueError as error:
            raise LineFault(line, str(error)) from None
    package, _, release, meta, details = values.values()
    # Format A is of 2025 and later, B of early 2025, C of 2023 and 2024.
    form = "B" if "@=" in " ".join(meta.compilers) else "A"
    form = "C" if front["meta"].value.startswith(b'{"versions"') else form
    sha256, facts = hashlib.sha256(file.data).hexdigest(), PageFacts(package, form)
    document = Document(file.location, file.path, sha256, release, page=facts)
    return Page(document, package, meta, details, line)


def read_front_matter(data: bytes) -> dict[str, Entry]:
    """Return the entries of a page's front matter by key; raises `LineFault`."""
    if not data.strip():
        raise LineFault(0, "the file is empty, expected a page that starts with ---")
    require_text(data)
    start, stop = _between_fences(data)
    front: dict[str, Entry] = {}
    line = 2
    while start < stop:
        end = data.find(b"\n", start, stop) + 1 or stop
        while end < stop and data[end] in _CONTINUES:
            end = data.find(b"\n", end, stop) + 1 or stop
        key, value = _read_entry(data[start:end], line)
        if key in front:
            first = front[key].line
            raise LineFault(line, f"the key {key} is listed twice, first on line {first}")
        if key in ("spec_files", "spec_names", "category"):
            message = "2021 page: it lists spec files, no spec details; expected a page of 2023"
            raise LineFault(1, f"{message} or later, with meta and spec_details")
        if key not in KEYS:
            raise LineFault(line, f"unknown key {key}, expected only {', '.join(sorted(KEYS))}")
        front[key] = Entry(line, value)
        line += data.count(b"\n", start, end)
        start = end
    if missing := sorted(KEYS - front.keys()):
        expected = ", ".join(sorted(KEYS))
        raise LineFault(1, f"the key {missing[0]} is missing, expected {expected}")
    return front


def _between_fences(data: bytes) -> tuple[int, int]:
    """Return the positions at which the front matter starts and ends."""
    opened = _FENCE.match(data)
    if not opened:
        raise LineFault(1, "no front matter, expected --- on the first line")
    # The closing line is the last one of a valid page.
    end = len(data.rstrip()) - len("---")
    if end > opened.end() and data.startswith(b"\n---", end - 1):
        return opened.end() + 1, end
    *_, last = _FENCE.finditer(data)
    if last.start() == 0:
        raise LineFault(1, "the front matter is not closed, expected a second line ---")
    line = data.count(b"\n", 0, last.end()) + 2
    raise LineFault(line, "text after the front matter, expected none: it would be lost")


def _read_entry(entry: bytes, line: int) -> tuple[str, Any]:
    """Return the key and the value of an entry."""
    big = _BIG.match(entry)
    name, limit = (big[1].decode(), MAX_JSON) if big else ("this entry", MAX_YAML)
    if len(entry) > limit:
        raise LineFault(line, f"{name} has more than {limit:,} bytes")
    if big:
        return name, entry[big.end() :].strip()
    try:
        return _read_yaml(entry)
    except LineFault as fault:
        at = line + max(fault.line - 1, 0)
        raise LineFault(at, f"{fault.message}, expected `key: value`") from None


# Pages of many releases and packages repeat the same few hundred lines.
@lru_cache(maxsize=4096)
def _read_yaml(entry: bytes) -> tuple[str, Any]:
    """Return the key and the value of one entry, with `1.10` and `2025-04-20` as text."""
    node = compose(entry.decode("utf-8-sig"), _YAML)
    if isinstance(node, yaml.MappingNode) and len(node.value) == 1:
        ((key, value),) = node.value
        if isinstance(key, yaml.ScalarNode):
            return key.value, text_value(value)
    raise LineFault(0, "broken YAML: this is not one entry")


def _package(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError("title is not a package name, expected text")
    if not is_package(name) or len(name) > _LONGEST_NAME:
        raise ValueError(f"title is {quoted(name)}, expected a package name: {_PACKAGE_NAME}")
    return name


def _layout(text: Any) -> None:
    if text != "cache":
        value = quoted(text) if isinstance(text, str) else "not a text"
        raise ValueError(f"layout is {value}, expected cache")


def _release(categories: Any) -> str:
    match categories:
        case ["package", str(release)] if release:
            if is_name(release) and len(release) <= _LONGEST_NAME:
                return release
            raise ValueError(f"the release is {quoted(release)}, expected a name: {_RELEASE_NAME}")
    raise ValueError("no release in categories, expected [package, RELEASE]")


def _meta(text: bytes) -> Meta:
    is_short = len(text) <= _MAX_CACHED_META
    return _decoded_meta(text) if is_short else _decoded_meta.__wrapped__(text)


# The pages of many releases have the same.
@lru_cache(maxsize=256)
def _decoded_meta(text: bytes) -> Meta:
    try:
        meta = _decoded(_META, text, "meta")
    except ValueError:
        if b'"versions"' in text and b'"num_specs' not in text:
            message = "2022 page: its meta has no stacks and no num_specs, its specs are in"
            expected = "spec-N.json files; expected a page of 2023 or later"
            raise ValueError(f"{message} {expected}") from None
        raise
    try:
        for name in (*LISTS, "stacks", "num_specs_by_stack"):
            require_few(name, len(getattr(meta, name)))
            for item in getattr(meta, name):
                require_short(f"text in {name}", item, MAX_NAME)
    except ValueError as error:
        raise ValueError(f"meta {error}") from None
    return meta


def _details(text: bytes) -> tuple[SpecDetail, ...]:
    """Return the value of `spec_details`; the hashes must be valid and distinct."""
    details = _decoded(_DETAILS, text, "spec_details")
    hashes = [detail.hash for detail in details]
    if not all(map(is_hash, hashes)):
        index, wrong = next(item for item in enumerate(hashes) if not is_hash(item[1]))
        message = f"$[{index}].hash is {quoted(wrong)}, expected 32 characters of a-z and 2-7"
        raise ValueError(f"spec_details: {message}")
    if len({*hashes}) < len(hashes):
        repeated = next(dag_hash for dag_hash, count in Counter(hashes).items() if count > 1)
        raise ValueError(f"spec_details: the hash {repeated} is listed twice, expected once")
    return details


_VALUES: dict[str, Callable[[Any], Any]] = {
    "title": _package,
    "layout": _layout,
    "categories": _release,
    "meta": _meta,
    "spec_details": _details,
}
"""Functions that return the value of a key; they raise `ValueError`. `spec_details` is the last."""

_META = msgspec.json.Decoder(Meta)
_DETAILS = msgspec.json.Decoder(tuple[SpecDetail, ...])


def _decoded(decoder: msgspec.json.Decoder[T], text: bytes, key: str) -> T:
    if len(text) > MAX_ITEMS:
        # `[],[],[],…` takes a hundred times its size in memory.
        items = text.count(b",") + text.count(b"[") + text.count(b"{")
        if items > MAX_ITEMS:
            expected = f"expected at most {MAX_ITEMS:,} in a page"
            raise ValueError(f"{key} has about {items:,} values, {expected}")
    try:
        return decoder.decode(text)
    except BROKEN as error:
        raise ValueError(f"{key}: {message_of(error)}") from None


LISTS = {f"{field}s": field for field in ("version", *FACETS)}
"""The lists of `meta`, and the field of the configurations in each."""

_SPELLING = attrgetter("compiler", "versions", "os", "platform", "target", "variants")


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

    def add(self, page: Page) -> None:
        """Add a page; raises `LineFault` without adding any of its listings."""
        rows = [self._row(page, detail) for detail in page.details]
        configuration, stacks, size, tarball = zip(*rows, strict=True) if rows else ((),) * 4
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
        spelling = page.package, _SPELLING(detail)
        try:
            configuration = self._spellings.get(spelling)
            if configuration is None:
                normal = normal_configuration(page.package, detail)
                require_bounded(normal)
                configuration = self._spellings[spelling] = self._texts.configurations[normal]
            stacks, size = self._stacks(detail.stacks), self._size(detail.size)
            url = detail.tarball
            tarball = self._tarball(detail.hash, url, configuration) if isinstance(url, str) else 0
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
        """Return the contradictions in a page, given the numbers of its listings' values."""
        distinct = frozenset(configuration)
        # Most pages repeat the page of another week, which has been checked.
        key = (meta, distinct, tuple(sorted(stacks)))
        if key in self._sound:
            return ()
        configurations, sets = self._texts.configurations.things, self._texts.stack_sets.things
        records = [configurations[number - 1] for number in distinct]
        unreadable = {
            Problem("variant", f"{text!r} is not a variant of Spack's; stored unchanged")
            for record in records
            for text in record.variants
            if not readable_variant(text)
        }
        computed = computed_meta(records, [sets[number - 1] for number in stacks])
        problems = (*_contradictions(declared_meta(meta), computed), *sorted(unreadable))
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


def normal_configuration(package: str, detail: SpecDetail) -> Configuration:
    """Return the configuration of a listing in normal form.

    Raises:
        ValueError: the detail does not have exactly one version, or repeats a variant.
    """
    compiler, versions, os, platform, target, variants = _SPELLING(detail)
    if len(versions) != 1:
        raise ValueError(f"has {len(versions)} versions, expected one")
    variants = as_set("variant", [_normal(normal_variant, text) for text in variants])
    compiler = normal_compiler(compiler)
    return Configuration(package, versions[0], compiler, os, platform, target, variants)


def as_set(word: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts sorted; `ValueError` if one is repeated."""
    ordered = tuple(sorted(texts))
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


def computed_meta(
    configurations: Iterable[Configuration], stack_sets: Sequence[Iterable[str]]
) -> dict[str, Any]:
    """Return the `meta` that a page's configurations and sets of stacks imply, in normal form."""
    distinct, counts = {*configurations}, Counter(chain.from_iterable(stack_sets))
    return {
        **{
            key: sorted({getattr(configuration, column) for configuration in distinct})
            for key, column in LISTS.items()
        },
        "stacks": sorted(counts),
        "num_specs": len(stack_sets),
        "num_specs_by_stack": dict(sorted(counts.items())),
    }


def declared_meta(meta: Meta) -> dict[str, Any]:
    """Return the `meta` that a page declares, in normal form: sorted, compilers without `@=`."""
    return {
        **{key: sorted(getattr(meta, key)) for key in (*LISTS, "stacks")},
        "compilers": sorted({_normal(normal_compiler, name) for name in meta.compilers}),
        "num_specs": meta.num_specs,
        "num_specs_by_stack": dict(sorted(meta.num_specs_by_stack.items())),
    }


def _contradictions(declared: dict[str, Any], computed: dict[str, Any]) -> Iterator[Problem]:
    """Yield the contradictions between a page's `meta` and its listings."""
    for key, value in declared.items():
        if value == computed[key]:
            continue
        if key == "num_specs":
            message = f"meta declares {key} {value}, the page lists {computed[key]}"
        else:
            items, listed = _items(value), _items(computed[key])
            parts = []
            if items - listed:
                parts.append(f"declares {', '.join(sorted(items - listed))}, which no spec has")
            if listed - items:
                names = ", ".join(sorted(listed - items))
                parts.append(f"does not declare {names}, which specs have")
            message = f"meta.{key} {' and '.join(parts) or 'has a repeated entry'}"
        yield Problem(key, message, value=as_json(value))


def _items(value: Any) -> set[str]:
    is_counted = isinstance(value, dict)
    return {f"{name} {count}" for name, count in value.items()} if is_counted else {*value}
