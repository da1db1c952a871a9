"""Filters of pages, and the addresses of filtered pages and tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from html import escape
from types import MappingProxyType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode

from markupsafe import Markup

from spack_cache_db.query.conditions import Condition, Conditions, Word
from spack_cache_db.query.database import Lookups
from spack_cache_db.query.names import scope_of
from spack_cache_db.query.packages import VariantNote
from spack_cache_db.query.records import explicitly
from spack_cache_db.spack.constraints import CompilerConstraint
from spack_cache_db.spack.normal_forms import NO_COMPILER
from spack_cache_db.spack.targets import ancestors, known_targets, maker, runs_on, target_matches

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
        """Read the pairs of a query string: the first of each name, or all for a tuple."""
        values: dict[str, Any] = {}
        for field in fields(cls):  # type: ignore[arg-type]
            texts = [value for name, value in pairs if name == field.name and value.strip()]
            if texts:
                values[field.name] = (
                    tuple(dict.fromkeys(texts)) if field.default == () else texts[0]
                )
        return cls(**values)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the fields."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    @property
    def pairs(self) -> Pairs:
        """The pairs of the query string, without empty fields."""
        values = [(name, getattr(self, name)) for name in self.names()]
        return [
            (name, text)
            for name, value in values
            for text in (value if isinstance(value, tuple) else (value,))
            if text
        ]

    @property
    def chosen(self) -> Pairs:
        """The pairs that select rows."""
        return [(name, value) for name, value in self.pairs if name not in VIEW]

    def query_string(self, **changes: Any) -> str:
        """Return the query string, without question mark, after some changes."""
        return urlencode(replace(self, **changes).pairs)  # type: ignore[type-var]

    def address(self, **changes: Any) -> str:
        """Return the query string after some changes; of the first page of rows, all closed."""
        closed = {name: "" for name in ("page", "open") if name in self.names()}
        return f"?{self.query_string(**closed | changes)}"

    def at_page(self, page: int) -> str:
        """Return the address of another page of the same rows."""
        return self.address(page=str(page) if page > 1 else "")


@dataclass(frozen=True, slots=True)
class Narrowing(AddressFields):
    """Names that narrow an answer; None does not narrow it.

    `spack` is the version of Spack whose syntax specs have. With any text in `explicit`, only
    explicitly installed specs count.
    """

    release: str | None = None
    stack: str | None = None
    host: str | None = None
    spack: str | None = None
    explicit: str | None = None

    def within(self, **names: str | None) -> Narrowing:
        """Return a copy with these names, except those that are None."""
        return replace(self, **{field: name for field, name in names.items() if name})

    def but(self, left_out: Collection[str] = ()) -> str:
        """Return the end of a query string (`&release=develop`), without some names."""
        query = self.query_string(**dict.fromkeys(left_out))
        return query and f"&{query}"

    @property
    def query(self) -> str:
        """The query string with its question mark; empty without names."""
        query = self.query_string()
        return query and f"?{query}"

    def scope(self, lookups: Lookups) -> Conditions:
        """Return the conditions for a database; raises `UnknownNameError`."""
        places = scope_of(lookups, release=self.release, stack=self.stack, host=self.host)
        return (*places, *explicitly(lookups)) if self.explicit else places


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

LAST_PAGE = 100_000


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

    def conditions(self) -> Conditions:
        """Return conditions on configurations; kind and text are a filter's name and value."""
        return tuple(condition_of(name, value) for name, value in self.chosen if name not in PLACES)

    def with_value(self, name: str, value: str) -> Filters:
        """Return these filters with an additional one, on the first page and all rows closed."""
        several = tuple(dict.fromkeys((*self.variant, value)))
        changes: dict[str, Any] = {name: several if name == "variant" else value}
        return replace(self, page="", open="", **changes)

    def without(self, name: str, value: str) -> Filters:
        """Return these filters without one of them."""
        others = tuple(text for text in self.variant if text != value)
        changes: dict[str, Any] = {name: others if name == "variant" else None}
        return replace(self, page="", open="", **changes)


def value_of(name: str, word: str) -> str:
    """Return the value of a filter that matches only one word of a configuration."""
    is_bare = name == "compiler" and "@" not in word and word != NO_COMPILER
    return f"{word}@" if is_bare else word


def condition_of(name: str, value: str) -> Condition:
    """Return the condition for a filter, which compares words except for groups and hosts.

    Groups are a compiler without a version (all its versions) and `aarch64:` (a family of targets).
    `gcc@` is the compiler whose version is unknown.
    """
    if name == "compiler" and value.endswith("@"):
        return Condition(name, value, Word(value[:-1]))
    if name == "compiler" and "@" not in value:
        return Condition(name, value, CompilerConstraint(value))
    is_several = name == "host" or (name == "target" and value.endswith(":"))
    return Condition(name, value, value if is_several else Word(value))


def options(
    values: Iterable[str] | Mapping[str, int],
    chosen: str | None = None,
    notes: Mapping[str, VariantNote] = MappingProxyType({}),
) -> Markup:
    """Return the options of a form; faster than a template, which joins a thousand pieces.

    A mapping of values has the number of rows for each; notes are on values that are variants.
    """
    counts = values if isinstance(values, Mapping) else {}
    elements = []
    for value in values:
        text = f"{value[:-1]} without a version" if value.endswith("@") else value
        text += f" ({counts[value]:,})" if value in counts else ""
        note = notes.get(value)
        text += ", default" if note is not None and note.is_default else ""
        attributes = f' value="{escape(value)}"' if text != value else ""
        attributes += " selected" if value == chosen else ""
        attributes += f' title="{escape(note.hint)}"' if note is not None else ""
        elements.append(f"<option{attributes}>{escape(text)}</option>")
    # Values, texts and hints are escaped above.
    return Markup("".join(elements))


def page_number(text: str | None) -> int:
    """Return the page number in a text; 1 if the text is not a page number."""
    if not (text and text.isascii() and text.isdigit()):
        return 1
    # Python refuses to read numbers with thousands of digits.
    return min(max(int(text.lstrip("0")[:9] or "0"), 1), LAST_PAGE)


class Pagination(NamedTuple):
    """One of several pages of rows: its number, the number of pages, and its rows."""

    page: int
    page_count: int
    rows: slice


def paginated(row_count: int, page: int, page_rows: int) -> Pagination:
    """Return the page with this number, or the last page if there are fewer."""
    page_count = max(1, -(-row_count // page_rows))
    page = min(page, page_count)
    return Pagination(page, page_count, slice((page - 1) * page_rows, page * page_rows))


def hosts_of(targets: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the CPU targets that can run binaries for at least one of `targets`, by maker.

    The newest processors come first.
    """
    return _hosts_of(frozenset(targets))


@lru_cache(maxsize=256)
def _hosts_of(targets: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    hosts: dict[str, list[str]] = {}
    for host in sorted(
        targets.union(known_targets()), key=lambda name: (-len(ancestors(name)), name)
    ):
        if any(runs_on(target, host) for target in targets):
            hosts.setdefault(maker(host), []).append(host)

    def order(name: str) -> tuple[bool, bool, str]:
        return name.startswith("Any "), name not in ("AMD", "Intel", "Arm", "Apple"), name

    return {name: tuple(hosts[name]) for name in sorted(hosts, key=order)}


class DataLinks(NamedTuple):
    """The addresses of the same rows in three forms; `browse` is None without a table of them."""

    browse: str | None
    json: str
    csv: str

    @classmethod
    def of_page(cls, path: str, query: str) -> Self:
        """Return the addresses of the rows of one of our pages; `query` begins with `?`."""
        return cls(None, f"{path}.json{query}", f"{path}.csv{query}")


def data_links(
    database: str, table: str, pairs: Sequence[tuple[str, str]], *, many: bool = False
) -> DataLinks:
    """Return the addresses of the rows of a table or view that have some values in its columns.

    With `many`, Datasette does not count the rows, which takes longer than showing the first.
    """
    base, query = f"/{database}/{quote(table)}", urlencode(pairs)
    return DataLinks(
        browse=f"{base}?{query}{'&_nocount=1' if many else ''}",
        json=f"{base}.json?{query}&_shape=array",
        csv=f"{base}.csv?{query}&_stream=on&_size=max",
    )


def package_links(database: str, package: str, filters: Filters) -> DataLinks:
    """Return the addresses of the rows of a package's page, with its filters."""
    pairs = [("package", package)]
    for name, value in filters.chosen:
        if name == "target" and value.endswith(":"):
            names = {*known_targets(), value.removesuffix(":")}
            targets = sorted(name for name in names if target_matches(value, name))
            pairs.append(("target__in", ",".join(targets)))
        elif name == "compiler" and "@" not in value:
            pairs.append(("compiler__startswith", value))
        elif name == "stack":
            pairs.append(("stacks__arraycontains", value))
        elif name == "variant":
            pairs.append(("variants__contains", value))
        elif name == "host" and filters.release is not None:
            pairs.append(("target__in", ",".join(sorted({value, *ancestors(value)}))))
        else:
            word = condition_of(name, value).asked
            pairs.append((name, word.text if isinstance(word, Word) else value))
    if filters.release is not None:
        return data_links(database, "build_listings", pairs)
    table = "builds" if filters.host is None else "host_builds"
    return data_links(database, table, pairs)
