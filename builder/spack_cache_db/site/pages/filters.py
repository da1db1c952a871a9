"""Filters of pages, and the addresses that ask for them.

The addresses are those of our pages, and of Datasette's tables with the same rows. No SQL is built
here: values of filters are compared, or bound as parameters.
"""

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
from spack_cache_db.spack.targets import (
    ancestors,
    known_targets,
    maker,
    runs_on,
    target_matches,
)

NameCounts = tuple[tuple[str, int], ...]
"""Names, each with how many there are of it."""


class AddressFields:
    """What an address asks, as a frozen dataclass: each of its fields is one of a query string."""

    __slots__ = ()

    @classmethod
    def parse(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """Read the pairs of a query string; the first of each name counts."""
        given = {name: value.strip() for name, value in reversed(pairs)}
        return cls(**{name: given[name] for name in cls.names() if given.get(name)})

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the fields."""
        return tuple(each.name for each in fields(cls))  # type: ignore[arg-type]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of a query string that asks the same."""
        named = ((name, getattr(self, name)) for name in self.names())
        return [(name, value) for name, value in named if value]

    def query_string(self, **changes: str | None) -> str:
        """Return the query string, without question mark, that asks the same but for `changes`."""
        return urlencode(replace(self, **changes).pairs)  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class Narrowing(AddressFields):
    """Names that narrow an answer, as a visitor gives them; None narrows nothing.

    `spack` narrows nothing: it is the version of Spack for which specs are written. With
    `explicit`, only what somebody asked to have installed counts.
    """

    release: str | None = None
    stack: str | None = None
    host: str | None = None
    spack: str | None = None
    explicit: str | None = None

    def within(self, release: str | None, stack: str | None) -> Narrowing:
        """Return what is narrowed to a release and a stack, where they are given, as well."""
        return replace(self, release=release or self.release, stack=stack or self.stack)

    def but(self, left_out: Collection[str] = ()) -> str:
        """Return the end of a query string that narrows the same without some names."""
        query = self.query_string(**dict.fromkeys(left_out))
        return query and f"&{query}"

    @property
    def address(self) -> str:
        """The same as a whole query string, with its question mark; empty if it narrows nothing."""
        query = self.query_string()
        return query and f"?{query}"

    def scope(self, lookups: Lookups) -> Conditions:
        """Return the conditions that it is in a file.

        Raises:
            UnknownNameError: there is no such release, stack or host.
        """
        places = scope_of(lookups, self.release, self.stack, self.host)
        return (*places, *explicitly(lookups.conn)) if self.explicit else places


EVERYWHERE = Narrowing()

SINGLE = ("release", "stack", "host", "version", "compiler", "os", "platform", "target")
"""Filters that take one value. `variant` may be repeated; all must hold."""

PLACES = ("release", "stack")
"""Filters that are not of configurations: they say whose specs count."""

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

_MOST = 20
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Filters:
    """The state of a package page: filters, page number and the row that is open.

    Attributes:
        host: the CPU target of a machine on which it must run; `target` is that very target.
        opened: the first hash of the configuration whose hashes and releases are all shown.
    """

    release: str | None = None
    stack: str | None = None
    host: str | None = None
    version: str | None = None
    compiler: str | None = None
    os: str | None = None
    platform: str | None = None
    target: str | None = None
    variants: tuple[str, ...] = ()
    all_versions: bool = False
    opened: str | None = None
    page: int = 1

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the fields of a query string."""
        return (*SINGLE, "variant", "versions", "page", "open")

    @classmethod
    def parse(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """Read the pairs of a query string; what it does not know, it leaves alone."""
        single: dict[str, str] = {}
        for key, value in pairs:
            if key in SINGLE and value:
                single[key] = value[:_LONGEST]
        return cls(
            **single,
            variants=_repeated(pairs, "variant"),
            all_versions=("versions", "all") in pairs,
            opened=next(iter(_repeated(pairs, "open")), None),
            page=page_number(next((value for key, value in pairs if key == "page"), None)),
        )

    def chosen(self) -> list[tuple[str, str]]:
        """Return the active filters as pairs of name and value."""
        single = [(name, getattr(self, name)) for name in SINGLE]
        active = [(name, value) for name, value in single if value is not None]
        return active + [("variant", each) for each in self.variants]

    @property
    def narrowing(self) -> Narrowing:
        """What of it other pages have as well."""
        return Narrowing(self.release, self.stack, self.host)

    def conditions(self) -> Conditions:
        """Return what the active filters ask of configurations; a release and a stack ask nothing.

        The kind and the text of each are the name and the value of its filter.
        """
        return tuple(
            condition_of(name, value) for name, value in self.chosen() if name not in PLACES
        )

    def pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of the address that leads here."""
        pairs = self.chosen()
        pairs += [("versions", "all")] if self.all_versions else []
        pairs += [("page", str(self.page))] if self.page > 1 else []
        pairs += [("open", self.opened)] if self.opened else []
        return pairs

    def address(self) -> str:
        """Return the query string, with its question mark when it says anything."""
        pairs = self.pairs()
        return "?" + urlencode(pairs) if pairs else "?"

    def with_value(self, name: str, value: str) -> Filters:
        """Return these filters narrowed by one more."""
        if name == "variant":
            return self.changed(variants=tuple(dict.fromkeys((*self.variants, value))))
        return self.changed(**{name: value})

    def without(self, name: str, value: str) -> Filters:
        """Return these filters without one of them."""
        if name == "variant":
            rest = tuple(each for each in self.variants if each != value)
            return self.changed(variants=rest)
        return self.changed(**{name: None})

    def changed(self, **changes: Any) -> Filters:
        """Return these filters with changes: on the first page, no row opened, unless they say."""
        return replace(self, **{"page": 1, "opened": None, **changes})


def value_of(name: str, word: str) -> str:
    """Return the value of a filter that asks for one word of a configuration alone."""
    is_bare = name == "compiler" and "@" not in word and word != NO_COMPILER
    return f"{word}@" if is_bare else word


def condition_of(name: str, value: str) -> Condition:
    """Return what a filter asks: its very value, but for a machine and for what stands for several.

    A compiler without a version stands for all of its versions, `gcc@` for the one of which no
    version is known, `aarch64:` for a family of targets.
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
    """Return what a form offers, in one piece: a template would make a thousand pieces of it.

    Args:
        values: the values of a filter; as a mapping, with how many rows each leaves.
        chosen: the one that is chosen.
        notes: what to say of those that are variants.
    """
    counts = values if isinstance(values, Mapping) else {}
    pieces = []
    for value in values:
        # `gcc@` is the compiler of which no version is known.
        text = f"{value[:-1]} without a version" if value.endswith("@") else value
        text += f" ({counts[value]:,})" if value in counts else ""
        note = notes.get(value)
        text += ", default" if note is not None and note.is_default else ""
        own = f' value="{escape(value)}"' if text != value else ""
        own += " selected" if value == chosen else ""
        own += f' title="{escape(note.hint)}"' if note is not None else ""
        pieces.append(f"<option{own}>{escape(text)}</option>")
    # Values, texts and hints are escaped above.
    return Markup("".join(pieces))


def page_number(text: str | None) -> int:
    """Return the page asked for; anything that is not a page number is the first."""
    if not (text and text.isascii() and text.isdigit()):
        return 1
    # Python refuses to read numbers of thousands of digits.
    return min(max(int(text.lstrip("0")[:9] or "0"), 1), LAST_PAGE)


class Pagination(NamedTuple):
    """One of the pages of many rows: its number, of how many pages, and which rows it has."""

    page: int
    page_count: int
    rows: slice


def paginated(row_count: int, page: int, page_rows: int) -> Pagination:
    """Return the page with this number, or the last one if there are not so many."""
    page_count = max(1, -(-row_count // page_rows))
    page = min(page, page_count)
    return Pagination(page, page_count, slice((page - 1) * page_rows, page * page_rows))


def _repeated(pairs: Sequence[tuple[str, str]], name: str) -> tuple[str, ...]:
    values = (value[:_LONGEST] for key, value in pairs if key == name and value)
    return tuple(dict.fromkeys(values))[:_MOST]


def hosts_of(targets: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the CPU targets of machines on which something built for `targets` runs.

    They are grouped by maker, the newest processors first.
    """
    return _hosts_of(tuple(sorted(targets)))


@lru_cache(maxsize=256)
def _hosts_of(targets: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    hosts: dict[str, list[str]] = {}
    newest_first = sorted(
        {*known_targets(), *targets}, key=lambda each: (-len(ancestors(each)), each)
    )
    for host in newest_first:
        if any(runs_on(target, host) for target in targets):
            hosts.setdefault(maker(host), []).append(host)
    return {name: tuple(hosts[name]) for name in sorted(hosts, key=_maker_order)}


def _maker_order(name: str) -> tuple[bool, bool, str]:
    return name.startswith("Any "), name not in ("AMD", "Intel", "Arm", "Apple"), name


_MATCHED = {"version", "compiler", "os", "platform", "target", "release"}


@dataclass(frozen=True, slots=True)
class DataLinks:
    """The same rows three ways; `browse` is None where Datasette has no page of them."""

    browse: str | None
    json: str
    csv: str

    @classmethod
    def of_page(cls, path: str, query: str) -> Self:
        """Return the addresses of the rows of one of our pages; `query` has its question mark."""
        return cls(None, f"{path}.json{query}", f"{path}.csv{query}")


def data_links(
    database: str, table: str, pairs: Sequence[tuple[str, str]], *, many: bool = False
) -> DataLinks:
    """Return the addresses of the rows of a table or view that match `pairs`.

    Args:
        database: the first part of its addresses, as Datasette encodes it.
        table: the table or view.
        pairs: columns and their values.
        many: so many rows that to count them would cost more than to show the first.
    """
    base = f"/{database}/{quote(table)}"
    query = urlencode(pairs)
    joint = "&" if query else ""
    return DataLinks(
        browse=f"{base}?{query}{f'{joint}_nocount=1' if many else ''}",
        json=f"{base}.json?{query}{joint}_shape=array",
        csv=f"{base}.csv?{query}{joint}_stream=on&_size=max",
    )


def package_links(database: str, package: str, filters: Filters) -> DataLinks:
    """Return the addresses of the builds on a package's page, narrowed as the page is."""
    pairs = [("package", package)]
    for name, value in filters.chosen():
        if name == "target" and value.endswith(":"):
            names = {*known_targets(), value.removesuffix(":")}
            of_family = sorted(name for name in names if target_matches(value, name))
            pairs.append(("target__in", ",".join(of_family)))
        elif name == "compiler" and "@" not in value:
            pairs.append(("compiler__startswith", value))
        elif name in _MATCHED:
            asked = condition_of(name, value).asked
            pairs.append((name, asked.text if isinstance(asked, Word) else value))
        elif name == "stack":
            pairs.append(("stacks__arraycontains", value))
        elif name == "variant":
            pairs.append(("variants__contains", value))
        elif filters.release is None:
            pairs.append(("host", value))
        else:
            pairs.append(("target__in", ",".join(sorted({value, *ancestors(value)}))))
    if filters.release is not None:
        return data_links(database, "build_listings", pairs)
    table = "builds" if filters.host is None else "host_builds"
    return data_links(database, table, pairs)
