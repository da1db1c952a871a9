"""Filters of pages, and the addresses of filtered pages and tables."""

from __future__ import annotations

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
        found: dict[str, Any] = {}
        for field in fields(cls):  # type: ignore[arg-type]
            texts = [
                value for name, value in pairs if name == field.name and value.strip()
            ]
            if texts:
                found[field.name] = (
                    tuple(dict.fromkeys(texts)) if field.default == () else texts[0]
                )
        return cls(**found)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the fields."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    @property
    def pairs(self) -> Pairs:
        """The pairs of the query string, without empty fields."""
        pairs = []
        for name in self.names():
            value = getattr(self, name) or ()
            pairs += [
                (name, text) for text in ((value,) if isinstance(value, str) else value)
            ]
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
        text = urlencode(replace(self, **changes).pairs)  # type: ignore[type-var]
        return text and f"{mark}{text}"

    def address(self, **changes: Any) -> str:
        """Return the query string after some changes; of the first page of rows, all
        closed.
        """
        closed = {name: "" for name in ("page", "open") if name in self.names()}
        return self.query(**closed | changes) or "?"

    def at_page(self, page: int) -> str:
        """Return the address of another page of the same rows."""
        return self.address(page=str(page) if page > 1 else "")

    def toggled(self, name: str, value: str) -> str:
        """Return the address with another value, or without a value that is one of the
        filters.
        """
        pair, pairs = (name, value), self.pairs
        others = [other for other in pairs if other != pair]
        return self.parse(others if pair in pairs else [*pairs, pair]).address()


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
        names = {kind: getattr(reading, kind) for kind in ("release", "stack", "host")}
        return replace(self, **{kind: name for kind, name in names.items() if name})

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
        return Condition(name, value, Word(value[:-1]))
    if name == "compiler" and "@" not in value:
        return Condition(name, value, CompilerConstraint(value))
    is_several = name == "host" or (name == "target" and value.endswith(":"))
    return Condition(name, value, value if is_several else Word(value))


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
    # Python refuses to read numbers with thousands of digits.
    digits = (
        number.lstrip("0")[:9]
        if number and number.isascii() and number.isdigit()
        else ""
    )
    page_count = max(1, -(-row_count // page_rows))
    page = min(int(digits or 1), page_count)
    return Pagination(page, page_count, slice((page - 1) * page_rows, page * page_rows))


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
    base, query = f"/{database}/{quote(table)}", urlencode(pairs)
    return DataLinks(
        browse=f"{base}?{query}{'&_nocount=1' if many else ''}",
        json=f"{base}.json?{query}&_shape=array",
        csv=f"{base}.csv?{query}&_stream=on&_size=max",
    )


def package_links(database: str, package: str, filters: Filters) -> DataLinks:
    """Return the addresses of the rows of a package's page, with its filters."""
    lookups = {"stack": "stacks__arraycontains", "variant": "variants__contains"}
    pairs = [("package", package)]
    for name, value in filters.chosen:
        condition = condition_of(name, value)
        match condition.asked:
            case Word(text):
                pairs.append((lookups.get(name, name), text))
            case CompilerConstraint():
                pairs.append(("compiler__startswith", value))
            case _ if name == "host" and filters.release is None:
                pairs.append((name, value))
            case _:
                names = {*known_targets(), value.removesuffix(":")}
                pairs.append(
                    ("target__in", ",".join(sorted(filter(condition.holds, names))))
                )
    table = "builds" if filters.host is None else "host_builds"
    return data_links(database, "build_listings" if filters.release else table, pairs)
