"""What a package page is narrowed to, and how that reads in an address.

Values only ever travel as bound parameters or plain comparisons; this module builds addresses,
never SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import urlencode

SINGLE = ("release", "stack", "host", "version", "compiler", "os", "platform", "target")
"""Filters that take one value. `variant` may be repeated; all must hold."""

LABELS = {
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

HIDEABLE = ("compiler", "os", "platform", "target", "variants", "stacks", "releases", "hashes")
"""Columns of the table of configurations that a reader may leave out."""

LAST_PAGE = 100_000

_MOST = 20
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Filters:
    """The state of a package page: filters, page number and how the table is shown.

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
    hidden: tuple[str, ...] = ()
    common: bool = False
    all_versions: bool = False
    opened: str | None = None
    page: int = 1

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
            hidden=tuple(each for each in _repeated(pairs, "hide") if each in HIDEABLE),
            common=("common", "show") in pairs,
            all_versions=("versions", "all") in pairs,
            opened=next(iter(_repeated(pairs, "open")), None),
            page=page_number(pairs),
        )

    def value(self, name: str) -> str | None:
        """Return the value chosen for one of the single-valued filters."""
        chosen: str | None = getattr(self, name)
        return chosen

    def chosen(self) -> list[tuple[str, str]]:
        """Return the active filters as pairs of name and value."""
        single = [(name, self.value(name)) for name in SINGLE]
        active = [(name, value) for name, value in single if value is not None]
        return active + [("variant", each) for each in self.variants]

    def pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of the address that leads here."""
        pairs = self.chosen() + [("hide", each) for each in self.hidden]
        pairs += [("common", "show")] if self.common else []
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
            return self._changed(variants=tuple(dict.fromkeys((*self.variants, value))))
        return self._changed(**{name: value})

    def without(self, name: str, value: str) -> Filters:
        """Return these filters without one of them."""
        if name == "variant":
            rest = tuple(each for each in self.variants if each != value)
            return self._changed(variants=rest)
        return self._changed(**{name: None})

    def _changed(self, **changes: Any) -> Filters:
        return replace(self, **{"page": 1, "opened": None, **changes})

    def at_page(self, page: int) -> Filters:
        """Return these filters at another page of the table."""
        return self._changed(page=page)

    def toggled_common(self) -> Filters:
        """Return these filters with common values shown where they were folded, or back."""
        return self._changed(common=not self.common)

    def with_all_versions(self) -> Filters:
        """Return these filters with every version in the grid."""
        return replace(self, all_versions=True)

    def opening(self, dag_hash: str | None) -> Filters:
        """Return these filters with all hashes of the configuration that begins with this one."""
        return replace(self, opened=dag_hash)


def page_number(pairs: Sequence[tuple[str, str]]) -> int:
    """Return the page asked for; anything that is not a page number is the first."""
    text = next((value for key, value in pairs if key == "page"), "1")
    if not (text.isascii() and text.isdigit()):
        return 1
    # Python refuses to read numbers of thousands of digits.
    return min(max(int(text.lstrip("0")[:9] or "0"), 1), LAST_PAGE)


def _repeated(pairs: Sequence[tuple[str, str]], name: str) -> tuple[str, ...]:
    values = (value[:_LONGEST] for key, value in pairs if key == name and value)
    return tuple(dict.fromkeys(values))[:_MOST]
