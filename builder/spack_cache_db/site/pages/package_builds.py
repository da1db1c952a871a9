"""The rows of the page of a package: one line for each configuration, with only what
differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spack_cache_db.query.match.candidates import Candidate
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.site.filters import LABELS, NameCounts
from spack_cache_db.site.names_for_people import compiler_name, system_name
from spack_cache_db.site.pages.configurations import ConfigurationRow

MENUS = ("version", "compiler", "os", "target", "variant", "stack", "release")
"""The filters above the rows, each at its place whatever is chosen."""
MOST_OF_STACKS = 30
"""Characters of the stacks of a row, unless the first one is longer."""
_COLUMNS = ("version", "os", "compiler", "target")


class Choice(NamedTuple):
    """A filter, its value if it has one, and for each possible value the configurations
    left.

    The label of a chosen variant is the variant's name.
    """

    name: str
    label: str
    chosen: str | None
    values: NameCounts

    @property
    def is_open(self) -> bool:
        """Whether there is something to choose."""
        return bool(self.values)

    @property
    def nothing(self) -> str:
        """The words for no value."""
        return "any" if self.name != "variant" or self.chosen else "add one"


def menus_of(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Return the filters above the rows: `MENUS`, some without values, and then a menu
    for each chosen variant.
    """
    unchosen = {}
    chosen_variants = []
    for choice in choices:
        if choice.name == "variant" and choice.chosen is not None:
            chosen_variants.append(choice)
        else:
            unchosen[choice.name] = choice
    menus = []
    for name in MENUS:
        menus.append(unchosen.get(name, Choice(name, LABELS[name], None, ())))
    return (*menus, *chosen_variants)


@dataclass(frozen=True, slots=True)
class BuildTable:
    """The rows of a page, and what all configurations share.

    Attributes:
        rows: the rows of this page of the table.
        columns: the columns in which configurations differ: `version`, `os`,
            `compiler`, `target`.
        shared: the words that all configurations have in the other columns.
        used: the hash of the row whose commands are shown; empty if none is.
    """

    rows: tuple[ConfigurationRow, ...]
    columns: tuple[str, ...]
    shared: tuple[str, ...]
    used: str

    @property
    def has_variants(self) -> bool:
        """Whether rows differ in their variants."""
        return any(row.variants for row in self.rows)

    @property
    def has_stacks(self) -> bool:
        """Whether a row is in a stack."""
        return any(row.presence.stacks for row in self.rows)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns) + self.has_variants + self.has_stacks + 2

    def values(self, row: ConfigurationRow) -> list[tuple[str, str]]:
        """Return the labels and words of a row in the columns, without the first."""
        return [
            (LABELS[column], _words(column, getattr(row.configuration, column)))
            for column in self.columns[1:]
        ]

    def stacks(self, row: ConfigurationRow) -> str:
        """Return the first stacks of a row, as many as fit, and how many others."""
        names = list(row.presence.stacks)
        shown = names[:1]
        for name in names[1:]:
            if len(", ".join([*shown, name])) > MOST_OF_STACKS:
                break
            shown.append(name)
        others = len(names) - len(shown)
        text = ", ".join(shown)
        return f"{text} and {others} more" if others else text

    def name(self, row: ConfigurationRow) -> str:
        """Return the words of a row in the first column."""
        if not self.columns:
            return row.configuration.version
        column = self.columns[0]
        return _words(column, getattr(row.configuration, column))


def columns_of(
    lookups: Lookups, rows: Iterable[Candidate]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns in which rows differ, and the words that they share in the
    others.
    """
    rows = list(rows)
    columns = []
    shared = []
    for column in _COLUMNS:
        keys = {row.key(column) for row in rows}
        if len(keys) > 1:
            columns.append(column)
        for key in keys if len(keys) == 1 else ():
            shared.append(_words(column, lookups.words[column][key]))
    return tuple(columns), tuple(shared)


def _words(column: str, text: str) -> str:
    """Return a word of a configuration for people."""
    if column == "os":
        return system_name(text)
    return compiler_name(text) if column == "compiler" else text
