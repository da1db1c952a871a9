"""Filters of pages, and the addresses of filtered pages and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode

from spack_cache_db.model import NO_COMPILER
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    Condition,
    Conditions,
    Word,
)
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.words.reading import Reading
from spack_cache_db.spack.queries import CompilerConstraint
from spack_cache_db.spack.targets import known_targets

Pairs = list[tuple[str, str]]
NameCounts = tuple[tuple[str, int], ...]
"""Names with a count each."""


def most_first(counts: Mapping[str, int]) -> NameCounts:
    """Return names and counts, the largest count first and equal counts by name."""
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


VIEW = ("versions", "sort", "order", "page", "open")
"""Fields of addresses that change the view of rows, but not which rows match."""


class AddressFields:
    """Base of frozen dataclasses whose fields are those of a query string."""

    __slots__ = ()

    @classmethod
    def parse(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """Read the pairs of a query string: the first of each name, or all for a
        tuple.
        """
        values: dict[str, Any] = {}
        for field in fields(cls):  # type: ignore[arg-type]
            texts = [
                value for name, value in pairs if name == field.name and value.strip()
            ]
            is_tuple = field.default == ()
            if texts and is_tuple:
                values[field.name] = tuple(dict.fromkeys(texts))
            elif texts:
                values[field.name] = texts[0]
        return cls(**values)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the fields."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    @property
    def pairs(self) -> Pairs:
        """The pairs of the query string, without empty fields."""
        pairs = []
        for name in self.names():
            value = getattr(self, name)
            if isinstance(value, tuple):
                pairs += [(name, text) for text in value]
            elif value:
                pairs.append((name, value))
        return pairs

    @property
    def chosen(self) -> Pairs:
        """The pairs that select rows."""
        return [(name, value) for name, value in self.pairs if name not in VIEW]

    @property
    def conditions(self) -> Conditions:
        """The conditions on configurations; kind and text are a field's name and
        value.
        """
        return tuple(
            condition_of(name, value) for name, value in self.pairs if name in COLUMNS
        )

    def query(self, mark: str = "?", **changes: Any) -> str:
        """Return the query string after some changes, behind a mark; empty without
        fields.
        """
        changed = replace(self, **changes)  # type: ignore[type-var]
        text = urlencode(changed.pairs)
        return f"{mark}{text}" if text else ""

    def address(self, **changes: Any) -> str:
        """Return the query string after some changes.

        Unless these say otherwise, it is that of the first page of rows, with all rows
        closed. Without fields it is `?`, which a browser takes for the page itself.
        """
        first_page = {name: "" for name in ("page", "open") if name in self.names()}
        return self.query(**first_page | changes) or "?"

    def at_page(self, page: int) -> str:
        """Return the address of another page of the same rows."""
        return self.address(page=str(page) if page > 1 else "")

    def toggled(self, name: str, value: str) -> str:
        """Return the address with another value, or without a value that is one of the
        filters.
        """
        pair = (name, value)
        pairs = self.pairs
        if pair in pairs:
            pairs = [other for other in pairs if other != pair]
        else:
            pairs.append(pair)
        return self.parse(pairs).address()


@dataclass(frozen=True, slots=True)
class Narrowing(AddressFields):
    """Names that narrow an answer; None does not narrow it.

    `spack` is the version of Spack whose syntax specs have. With any text in
    `explicit`, only explicitly installed specs count.
    """

    release: str | None = None
    stack: str | None = None
    host: str | None = None
    spack: str | None = None
    explicit: str | None = None

    def within(self, reading: Reading) -> Narrowing:
        """Return a copy with the release, stack and host among words."""
        return replace(
            self,
            release=reading.release or self.release,
            stack=reading.stack or self.stack,
            host=reading.host or self.host,
        )

    def scope(self, lookups: Lookups) -> Conditions:
        """Return the conditions for a database; raises `UnknownNameError`."""
        scope = Scope(
            release=self.release,
            stack=self.stack,
            host=self.host,
            explicit=bool(self.explicit),
        )
        return scope.conditions(lookups)


EVERYWHERE = Narrowing()

PLACES = ("release", "stack")
"""Filters that do not concern configurations, but select which specs count."""
LABELS = {
    "package": "Package",
    "release": "Release",
    "stack": "Stack",
    "host": "Runs on",
    "version": "Version",
    "compiler": "Compiler",
    "os": "OS",
    "platform": "Platform",
    "target": "Target",
    "variant": "Variant",
}


@dataclass(frozen=True, slots=True)
class Filters(AddressFields):
    """The fields of a package's page.

    Attributes:
        host: the CPU target of the machine on which binaries must run.
        versions: `all` for tables of all versions.
        open: the first hash of the configuration whose row is open.
    """

    release: str | None = None
    stack: str | None = None
    host: str | None = None
    version: str | None = None
    compiler: str | None = None
    os: str | None = None
    platform: str | None = None
    target: str | None = None
    variant: tuple[str, ...] = ()
    versions: str = ""
    page: str = ""
    open: str = ""

    @property
    def narrowing(self) -> Narrowing:
        """The filters that other pages have as well."""
        return Narrowing(self.release, self.stack, self.host)


def value_of(name: str, word: str) -> str:
    """Return the value of a filter that matches only one word of a configuration."""
    is_bare = name == "compiler" and "@" not in word and word != NO_COMPILER
    return f"{word}@" if is_bare else word


def condition_of(name: str, value: str) -> Condition:
    """Return the condition for a filter, which compares words except for groups and
    hosts.

    Groups are a compiler without a version (all its versions) and `aarch64:` (a family
    of targets). `gcc@` is the compiler whose version is unknown.
    """
    if name == "compiler" and value.endswith("@"):
        return Condition(name, value, Word(value.removesuffix("@")))
    if name == "compiler" and "@" not in value:
        return Condition(name, value, CompilerConstraint(value))
    is_family = name == "target" and value.endswith(":")
    # Several targets satisfy the condition, so it does not compare words.
    if name == "host" or is_family:
        return Condition(name, value, value)
    return Condition(name, value, Word(value))


def place_condition(lookups: Lookups, name: str, value: str) -> Condition:
    """Return the condition for a release or stack; no spec satisfies that for an
    unknown one.
    """
    record = lookups.stack(value) if name == "stack" else lookups.release(value)
    return Condition(name, value, record.id if record else 0)


class Pagination(NamedTuple):
    """One of several pages of rows: its number, the number of pages, and its rows."""

    page: int
    page_count: int
    rows: slice


def paginated(row_count: int, number: str | None, page_rows: int) -> Pagination:
    """Return the page with a number, the last if there are fewer, and the first without
    number.
    """
    page_count = max(1, math.ceil(row_count / page_rows))
    page = min(_number_of(number or ""), page_count)
    first_row = (page - 1) * page_rows
    return Pagination(page, page_count, slice(first_row, first_row + page_rows))


def _number_of(text: str) -> int:
    """Return the number of a page; 1 for a text that is not a number, or zero."""
    if not (text.isascii() and text.isdigit()):
        return 1
    # Python refuses to read numbers with thousands of digits.
    digits = text.lstrip("0")[:9]
    return int(digits) if digits else 1


class DataLinks(NamedTuple):
    """The addresses of the same rows in three forms; `browse` is None without a table
    of them.
    """

    browse: str | None
    json: str
    csv: str

    @classmethod
    def of_page(cls, path: str, query: str) -> Self:
        """Return the addresses of the rows of one of our pages; `query` begins with
        `?`.
        """
        return cls(None, f"{path}.json{query}", f"{path}.csv{query}")


def data_links(
    database: str, table: str, pairs: Pairs, *, many: bool = False
) -> DataLinks:
    """Return the addresses of the rows of a table or view that have some values in its
    columns.

    With `many`, Datasette does not count the rows, which takes longer than showing the
    first.
    """
    base = f"/{database}/{quote(table)}"
    query = urlencode(pairs)
    without_count = "&_nocount=1" if many else ""
    return DataLinks(
        browse=f"{base}?{query}{without_count}",
        json=f"{base}.json?{query}&_shape=array",
        csv=f"{base}.csv?{query}&_stream=on&_size=max",
    )


_LIST_FIELDS = {"stack": "stacks__arraycontains", "variant": "variants__contains"}
"""Filters of columns that contain lists, and the fields of Datasette for them."""


def package_links(database: str, package: str, filters: Filters) -> DataLinks:
    """Return the addresses of the rows of a package's page, with its filters."""
    # Only `host_builds` knows which hosts run a binary, and only `build_listings` in
    # which release it is.
    table = "builds"
    if filters.release:
        table = "build_listings"
    elif filters.host is not None:
        table = "host_builds"
    pairs = [("package", package)]
    for name, value in filters.chosen:
        if name == "host" and table == "host_builds":
            pairs.append((name, value))
        else:
            pairs.append(_column_filter(name, value))
    return data_links(database, table, pairs)


def _column_filter(name: str, value: str) -> tuple[str, str]:
    """Return the field of Datasette that filters a column as one of our filters does.

    For example `("target__in", "zen3,zen4")` for the filter `host=zen4`.
    """
    condition = condition_of(name, value)
    if isinstance(condition.value, Word):
        field = _LIST_FIELDS.get(name, name)
        return field, condition.value.text
    if isinstance(condition.value, CompilerConstraint):
        return "compiler__startswith", value
    # A family or a host: the targets that satisfy the condition.
    targets = {*known_targets(), value.removesuffix(":")}
    matching = sorted(target for target in targets if condition.is_met_by(target))
    return "target__in", ",".join(matching)
