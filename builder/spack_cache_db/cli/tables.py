"""Prints answers as tables, JSON, CSV or Markdown.

Names and messages come from files that other people wrote, and a terminal obeys control
characters, so their escapes are printed instead.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import click

from spack_cache_db.cli.forms import form_of, is_terminal, print_json, say_notes, styled
from spack_cache_db.errors import counted, printable
from spack_cache_db.query.rows import Rows, csv_text

MOST_ROWS = 50
"""Rows of a table on a terminal without `--all`."""

NOTHING = "-"
"""The text of a cell without a value."""

_HEADINGS = {"specs": "binaries", "spec_count": "binaries"}
"""Headings that differ from the names of their columns."""
_GAP = "  "
_INDENT = " " * 4
_SHORTEST = 30
"""Narrowest last column of a line that `hanging` wraps."""
_LABEL = re.compile(r"(?:\S+ )?(\w+)(?=  |:)")
"""The beginning of a table's line: a status, or the title of a section."""


class Heading(str):
    """A line of a table that is bold on a terminal."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people, as wide as the terminal.

    Columns without a value are left out, except those that are right-aligned.

    Attributes:
        headings: the headings of the columns.
        rows: a text for each column, `NOTHING` for no value.
        optional: headings of the columns that a narrow terminal leaves out, the least
            useful first.
        long: headings of the last columns, which go below each row if they do not fit.
        right: headings of the columns that are right-aligned.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    optional: Sequence[str] = ()
    long: Sequence[str] = ()
    right: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        """Yield the heading, and the lines of each row."""
        widths = self._widths()
        max_width = width()

        def too_wide() -> bool:
            total = sum(widths.values()) + len(_GAP) * (len(widths) - 1)
            return max_width is not None and total > max_width

        # Make the table narrower, column by column, until it fits.
        left_out = []
        for name in self.optional:
            if name in widths and too_wide():
                left_out.append(name)
                del widths[name]
        below = []
        for name in reversed(self.headings):
            if name in self.long and name in widths and too_wide():
                below.append(name)
                del widths[name]
        below.reverse()

        # Each row is a line, and a line for each of its values that goes below.
        names = dict(zip(self.headings, self.headings, strict=True))
        for line in wrapped(self._line(names, widths)):
            yield Heading(line)
        for row in self.rows:
            cells = dict(zip(self.headings, row, strict=True))
            yield from wrapped(self._line(cells, widths))
            for name in below:
                if cells[name] != NOTHING:
                    yield from wrapped(f"{_INDENT}{name}: {cells[name]}", _INDENT)
        if left_out:
            names_left_out = [name for name in self.headings if name in left_out]
            yield ""
            text = ", ".join(names_left_out)
            yield from wrapped(f"left out of this narrow table: {text}")

    def markdown(self) -> Iterator[str]:
        """Yield the lines of the table in Markdown; markup in it is escaped."""
        yield f"| {' | '.join(self.headings)} |"
        yield f"| {' | '.join(['---'] * len(self.headings))} |"
        for row in self.rows:
            cells = [text.replace("|", "\\|").replace("<", "&lt;") for text in row]
            yield f"| {' | '.join(cells)} |"

    def _widths(self) -> dict[str, int]:
        """Return the width of each column that has a value, by its heading."""
        widths = {}
        for at, name in enumerate(self.headings):
            column = [row[at] for row in self.rows]
            has_value = any(text != NOTHING for text in column)
            if has_value or name in self.right:
                widths[name] = max(map(len, (name, *column)))
        return widths

    def _line(self, cells: Mapping[str, str], widths: Mapping[str, int]) -> str:
        texts = []
        for name, size in widths.items():
            is_right = name in self.right
            text = cells[name].rjust(size) if is_right else cells[name].ljust(size)
            texts.append(text)
        return _GAP.join(texts).rstrip()


def print_answer(
    options: Any,
    rows: Callable[[], Rows],
    table: Iterable[str],
    *,
    value: Callable[[], Any] | None = None,
    markdown: Iterable[str] = (),
    colours: Mapping[str, str | None] = MappingProxyType({}),
) -> None:
    """Print an answer in the format that the options select.

    Args:
        options: the options of the command.
        rows: returns the rows, which CSV has.
        table: the lines for people.
        value: returns what JSON has; by default, the records of `rows`.
        markdown: the lines in Markdown.
        colours: the colours of statuses and sections in `table` on a terminal.
    """
    form = form_of(options)
    if form == "json":
        print_json(value() if value else list(rows().records))
    elif form == "csv":
        # A pipe may end in a terminal as well.
        lines = [printable(line) for line in csv_text(rows()).split("\n")]
        click.echo("\n".join(lines), nl=False)
    elif form == "markdown":
        for line in markdown:
            click.echo(printable(line))
    else:
        for line in table:
            click.echo(_coloured(line, colours))


def _coloured(line: str, colours: Mapping[str, str | None]) -> str:
    """Return a printable line with the colour of its label: `near  hdf5 +mpi`."""
    if isinstance(line, Heading):
        return styled(printable(line), sys.stdout, bold=True)
    label = _LABEL.match(line)
    if label is None:
        return printable(line)
    colour = colours.get(label[1])
    if colour is None:
        return printable(line)
    return styled(label[0], sys.stdout, fg=colour) + printable(line[label.end() :])


def print_rows(
    rows: Rows, options: Any, nothing: str, columns: Sequence[str] = ()
) -> bool:
    """Print rows in the format that the options select; return whether there are any.

    The note `nothing` goes to standard error if there are none. Tables and Markdown
    have only `columns`, all by default.
    """
    records = list(rows.records)
    if not records:
        say_notes([nothing])
    # People get the note only; programs get an empty answer.
    if not records and form_of(options) is None:
        return False
    names = columns or rows.columns
    headings = [_HEADINGS.get(name) or name.replace("_", " ") for name in names]
    cells = [[_cell(record[name]) for name in names] for record in records]
    # A narrow terminal leaves out the last columns, but never the first.
    optional = headings[:0:-1]
    shown = cells[: most_rows(options)]
    lines = list(Table(headings, shown, optional).lines())
    hidden_count = len(cells) - len(shown)
    if hidden_count:
        lines += ["", more_rows(hidden_count)]
    print_answer(
        options,
        lambda: Rows(rows.columns, records),
        lines,
        markdown=Table(headings, cells).markdown(),
    )
    return bool(records)


def _cell(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else str(value)


def most_rows(options: Any) -> int | None:
    """Return how many rows a table has at most; None for any number."""
    return MOST_ROWS if is_terminal() and not options["every"] else None


def more_rows(count: int) -> str:
    """Return the line below a shortened table: how many rows are hidden."""
    return f"{counted(count, 'more row')}: --all shows all"


def hanging(cells: Sequence[str], text: str) -> Iterator[str]:
    """Yield a line without headings whose last column is wrapped below itself.

    A terminal that is too narrow for that has the text below the other cells.
    """
    head = _GAP.join(cells)
    line = f"{head}{_GAP}{text}".rstrip()
    max_width = width()
    if max_width is None or len(line) <= max_width:
        yield line
        return

    from textwrap import wrap

    column = len(head) + len(_GAP)
    if max_width - column >= _SHORTEST:
        first, *others = wrap(text, max_width - column)
        yield f"{head}{_GAP}{first}"
        for part in others:
            yield " " * column + part
    else:
        yield from wrap(head.rstrip(), max_width, subsequent_indent=_INDENT)
        yield from wrap(
            text, max_width, initial_indent=_INDENT, subsequent_indent=_INDENT
        )


def wrapped(line: str, indent: str = "") -> list[str]:
    """Return a line wrapped to the width of the terminal; continuation lines are
    indented.
    """
    max_width = width()
    if max_width is None or len(line) <= max_width:
        return [line]
    from textwrap import wrap

    return wrap(
        line.strip(),
        max_width,
        initial_indent=indent,
        subsequent_indent=indent + _INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )


def width() -> int | None:
    """Return the width of the terminal; None for a pipe or a file, where no line is
    wrapped.
    """
    if not is_terminal() and "COLUMNS" not in os.environ:
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns
