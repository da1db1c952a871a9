"""Filters of pages, which are fields of their addresses.

For example, `/package/hdf5?release=develop&target=zen3` has two. `AddressFields` reads
such fields, and makes the addresses of the same page with other ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from spack_cache_db.model import NO_COMPILER
from spack_cache_db.query.conditions.conditions import (
    COLUMNS,
    STABLE,
    Condition,
    Conditions,
    Word,
)
from spack_cache_db.query.names.scope import Scope
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.words.reading import Reading
from spack_cache_db.spack.queries import CompilerConstraint

Pairs = list[tuple[str, str]]
"""Fields of an address: names and values."""
NameCounts = tuple[tuple[str, int], ...]
"""Names with a count each."""

VIEW = ("versions", "sort", "order", "page", "open", "use")
"""Fields of addresses that change the view of rows, but not which rows match."""
PLACES = ("release", "stack")
"""Filters that do not concern configurations, but select which specs count."""
LABELS = {
    "package": "Package",
    "release": "Release",
    "stack": "Stack",
    "host": "Machine",
    "version": "Version",
    "compiler": "Compiler",
    "os": "System",
    "platform": "Platform",
    "target": "Target",
    "variant": "Variant",
}
"""The names of filters in texts for visitors."""


class AddressFields:
    """Base of frozen dataclasses whose fields are those of a query string.

    A field is a text or None, or a tuple of texts if its default is `()`. For example,
    `variant=%2Bmpi&variant=%2Bhl&page=2` is `Filters(variant=("+mpi", "+hl"),
    page="2")`.
    """

    __slots__ = ()

    @classmethod
    def parse(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """Read the pairs of a query string: the first of each name, or all for a
        tuple. Blank values, and names that are not fields, are left out.
        """
        values: dict[str, Any] = {}
        for field in fields(cls):  # type: ignore[arg-type]
            texts = [
                value for name, value in pairs if name == field.name and value.strip()
            ]
            if not texts:
                continue
            if field.default == ():
                without_duplicates = dict.fromkeys(texts)
                values[field.name] = tuple(without_duplicates)
            else:
                values[field.name] = texts[0]
        return cls(**values)

    @classmethod
    @cache
    def names(cls) -> tuple[str, ...]:
        """Return the names of the fields, which a page with many links often needs."""
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
        """The conditions on configurations: those of fields that are their columns, or
        the host.
        """
        return tuple(
            condition_of(name, value) for name, value in self.pairs if name in COLUMNS
        )

    def query(self, mark: str = "?", **changes: Any) -> str:
        """Return the query string after some changes, behind a mark; empty without
        fields.

        For example `?release=develop` for `query(release="develop")`.
        """
        changed = replace(self, **changes)  # type: ignore[type-var]
        text = urlencode(changed.pairs)
        return f"{mark}{text}" if text else ""

    def address(self, **changes: Any) -> str:
        """Return the query string after some changes.

        Unless these say otherwise, it is that of the first page of rows, with all rows
        closed and no build chosen. Without fields it is `?`, which a browser takes for
        the page itself.
        """
        for name in ("page", "open", "use"):
            if name in self.names():
                changes.setdefault(name, "")
        return self.query(**changes) or "?"

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

    Attributes:
        release: the name of a release.
        stack: the name of a stack.
        host: the CPU target of the machine on which binaries must run.
        spack: the version of Spack whose syntax specs have.
        explicit: with any text, only explicitly installed specs count.
        stable: with any text, branches such as `develop` and versions of git do not
            count.
    """

    release: str | None = None
    stack: str | None = None
    host: str | None = None
    spack: str | None = None
    explicit: str | None = None
    stable: str | None = None

    def within(self, reading: Reading) -> Narrowing:
        """Return a copy with the release, stack and host that words name, which take
        precedence; any target among the words replaces the host.
        """
        has_target = any(meaning.kind == "target" for meaning in reading.meanings)
        return replace(
            self,
            release=reading.release or self.release,
            stack=reading.stack or self.stack,
            host=reading.host if has_target else self.host,
        )

    def scope(self, lookups: Lookups) -> Conditions:
        """Return the conditions for a database; raises `UnknownNameError`."""
        scope = Scope(
            release=self.release,
            stack=self.stack,
            host=self.host,
            explicit=bool(self.explicit),
            stable=bool(self.stable),
        )
        return scope.conditions(lookups)


EVERYWHERE = Narrowing()
"""No name narrows the answer."""


@dataclass(frozen=True, slots=True)
class Filters(AddressFields):
    """The fields of a package's page.

    Most are columns of a configuration. `variant` may occur several times.

    Attributes:
        host: the CPU target of the machine on which binaries must run.
        stable: with any text, branches such as `develop` and versions of git do not
            count.
        versions: `all` for tables of all versions.
        page: the number of the page of rows.
        open: the first hash of the configuration whose row is open.
        use: the hash of the spec whose commands are shown; empty for the proposed one.
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
    stable: str | None = None
    versions: str = ""
    page: str = ""
    open: str = ""
    use: str = ""

    @property
    def narrowing(self) -> Narrowing:
        """The filters that other pages have as well."""
        return Narrowing(self.release, self.stack, self.host, stable=self.stable)


def condition_of(name: str, value: str) -> Condition:
    """Return the condition for a filter, which compares words except for groups and
    hosts.

    Groups are a compiler without a version (`gcc` is all its versions) and a family of
    targets (`aarch64:`). `gcc@` is the compiler whose version is unknown.

    Args:
        name: the name of the filter, such as `compiler`.
        value: its value, such as `gcc@13.2.0`.
    """
    if name == "stable":
        return STABLE
    if name == "compiler" and value.endswith("@"):
        return Condition(name, value, Word(value.removesuffix("@")))
    if name == "compiler" and "@" not in value:
        return Condition(name, value, CompilerConstraint(value))
    is_family = name == "target" and value.endswith(":")
    # Several targets satisfy the condition, so it does not compare words.
    if name == "host" or is_family:
        return Condition(name, value, value)
    return Condition(name, value, Word(value))


def value_of(name: str, word: str) -> str:
    """Return the value of a filter that matches only one word of a configuration.

    It is the word itself, except for a compiler without a version: `gcc@` for `gcc`.
    """
    is_without_version = name == "compiler" and "@" not in word and word != NO_COMPILER
    return f"{word}@" if is_without_version else word


def place_condition(lookups: Lookups, name: str, value: str) -> Condition:
    """Return the condition for a release or stack, one of `PLACES`."""
    place = lookups.stack(value) if name == "stack" else lookups.release(value)
    # No spec is in a release or stack with the id 0.
    return Condition(name, value, place.id if place else 0)


def most_first(counts: Mapping[str, int]) -> NameCounts:
    """Return names and counts, the largest count first and equal counts by name."""

    def place(item: tuple[str, int]) -> tuple[int, str]:
        name, count = item
        return -count, name

    return tuple(sorted(counts.items(), key=place))


class Pagination(NamedTuple):
    """One of several pages of rows: its number from 1, the number of pages, and its
    rows.
    """

    page: int
    page_count: int
    rows: slice


def paginated(row_count: int, number: str | None, page_rows: int) -> Pagination:
    """Return the page with a number, the last if there are fewer, and the first without
    number.

    Args:
        row_count: the number of all rows.
        number: the field `page` of an address, which may be any text.
        page_rows: the number of rows of a page.
    """
    page_count = max(1, math.ceil(row_count / page_rows))
    page = min(_number_of(number or ""), page_count)
    first_row = (page - 1) * page_rows
    return Pagination(page, page_count, slice(first_row, first_row + page_rows))


def _number_of(text: str) -> int:
    """Return the number of a page; 1 for a text that is not a number, or zero."""
    if not (text.isascii() and text.isdigit()):
        return 1
    # Python refuses to read numbers with thousands of digits; nine are enough.
    digits = text.lstrip("0")[:9]
    return int(digits) if digits else 1


class DataLinks(NamedTuple):
    """The addresses of the same rows in three forms.

    Attributes:
        browse: Datasette's page of them; None if no table has these rows.
        json: the rows as JSON.
        csv: the rows as CSV.
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
