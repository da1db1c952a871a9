"""Prints answers as tables, JSON, CSV or Markdown.

A table on a terminal is as wide as the terminal, and has at most 50 rows; in a pipe or
a file, it has any width and all rows. Names and messages come from files that other
people wrote, and a terminal obeys control characters, so `printable` replaces these
with escapes.
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
"""What separates two columns."""

_INDENT = " " * 4
"""How far lines are indented that continue another one."""

_NARROWEST = 30
"""Narrowest last column that `hanging` wraps below itself."""

_LABEL = re.compile(r"(?:\S+ )?(\w+)(?=  |:)")
"""The label at the beginning of a line: a status before a gap (`near  hdf5`), or a word
before a colon, with or without one word before it (`Configurations removed: 3`).
"""


class Heading(str):
    """A line of a table that is bold on a terminal."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people, as wide as the terminal.

    ```
    name  binaries  variants
    hdf5     1,200  +mpi ~shared
    zlib         7  -
    ```

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
        # Make the table narrower, column by column, until it fits: first without
        # optional columns, then with long ones below their rows, from the last one on.
        widths = self._widths()
        left_out = []
        for name in self.optional:
            if name in widths and _is_too_wide(widths):
                left_out.append(name)
                del widths[name]
        below = []
        for name in reversed(self.headings):
            if name in self.long and name in widths and _is_too_wide(widths):
                below.append(name)
                del widths[name]
        below.reverse()

        # Each row is a line, and a line for each of its values that goes below.
        names = {name: name for name in self.headings}
        for line in wrapped(self._line(names, widths)):
            yield Heading(line)
        for row in self.rows:
            cells = dict(zip(self.headings, row, strict=True))
            yield from wrapped(self._line(cells, widths))
            for name in below:
                if cells[name] != NOTHING:
                    yield from wrapped(f"{_INDENT}{name}: {cells[name]}", _INDENT)

        # Name the columns that are left out, in their order in the table.
        if left_out:
            names_left_out = [name for name in self.headings if name in left_out]
            text = ", ".join(names_left_out)
            yield ""
            yield from wrapped(f"left out of this narrow table: {text}")

    def _widths(self) -> dict[str, int]:
        """Return the width of each column that is shown, by its heading."""
        widths = {}
        for position, name in enumerate(self.headings):
            texts = [row[position] for row in self.rows]
            has_value = any(text != NOTHING for text in texts)
            if has_value or name in self.right:
                widths[name] = max(len(text) for text in (name, *texts))
        return widths

    def _line(self, cells: Mapping[str, str], widths: Mapping[str, int]) -> str:
        """Return one line: the cells of the columns in `widths`, by their headings."""
        texts = []
        for name, column_width in widths.items():
            if name in self.right:
                texts.append(cells[name].rjust(column_width))
            else:
                texts.append(cells[name].ljust(column_width))
        return _GAP.join(texts).rstrip()

    def markdown(self) -> Iterator[str]:
        """Yield the lines of the table in Markdown; markup in it is escaped."""
        yield f"| {' | '.join(self.headings)} |"
        rulers = ["---"] * len(self.headings)
        yield f"| {' | '.join(rulers)} |"
        for row in self.rows:
            cells = [text.replace("|", "\\|").replace("<", "&lt;") for text in row]
            yield f"| {' | '.join(cells)} |"


def _is_too_wide(widths: Mapping[str, int]) -> bool:
    """Return whether columns of these widths do not fit the terminal."""
    max_width = width()
    if max_width is None:
        return False
    gaps = len(_GAP) * (len(widths) - 1)
    return sum(widths.values()) + gaps > max_width


def print_answer(
    options: Mapping[str, Any],
    rows: Callable[[], Rows],
    table: Iterable[str],
    *,
    value: Callable[[], Any] | None = None,
    markdown: Iterable[str] = (),
    colours: Mapping[str, str | None] = MappingProxyType({}),
) -> None:
    """Print an answer in the format that the options select.

    Only that format is computed: the others are functions that are not called, or
    iterators that are not read.

    Args:
        options: the options of the command.
        rows: returns the rows, which CSV has.
        table: the lines for people.
        value: returns what JSON has; by default, the records of `rows`.
        markdown: the lines in Markdown.
        colours: the colours of labels in `table` on a terminal, such as
            `{"near": "yellow"}`; None for no colour.
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
    """Return a printable line: a heading is bold, and a label has its colour."""
    if isinstance(line, Heading):
        return styled(printable(line), sys.stdout, bold=True)
    label = _LABEL.match(line)
    if label is None:
        return printable(line)
    colour = colours.get(label[1])
    if colour is None:
        return printable(line)
    rest = line[label.end() :]
    return styled(label[0], sys.stdout, fg=colour) + printable(rest)


def print_rows(
    rows: Rows, options: Mapping[str, Any], nothing: str, columns: Sequence[str] = ()
) -> bool:
    """Print rows in the format that the options select; return whether there are any.

    Args:
        rows: the rows.
        options: the options of the command, with `every` for `--all`.
        nothing: a note, printed to standard error if there are no rows.
        columns: the columns of tables and Markdown, by default all; JSON and CSV always
            have all.
    """
    records = list(rows.records)
    if not records:
        say_notes([nothing])
    # People get the note only; programs get an empty answer.
    if not records and form_of(options) is None:
        return False

    names = columns or rows.columns
    headings = [_HEADINGS.get(name) or name.replace("_", " ") for name in names]
    cells = []
    for record in records:
        cells.append([_cell(record[name]) for name in names])
    shown = cells[: most_rows(options)]
    # A narrow terminal leaves out the last columns first, and never the first one.
    optional = list(reversed(headings[1:]))
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


def most_rows(options: Mapping[str, Any]) -> int | None:
    """Return how many rows a table has at most; None for any number."""
    return MOST_ROWS if is_terminal() and not options["every"] else None


def more_rows(count: int) -> str:
    """Return the line below a table that was cut, such as `7 more rows: --all shows
    all`.
    """
    return f"{counted(count, 'more row')}: --all shows all"


def hanging(cells: Sequence[str], text: str) -> Iterator[str]:
    """Yield the lines of a row whose last column is a text that may be wrapped.

    ```
    near  hdf5 +mpi  hdf5@1.14.6 gcc@13.2.0
                     ubuntu24.04 x86_64_v3
    ```

    A terminal that is too narrow for that has the text below the other cells, indented.

    Args:
        cells: the other columns, padded to their widths.
        text: the text of the last column.
    """
    head = _GAP.join(cells)
    line = f"{head}{_GAP}{text}".rstrip()
    max_width = width()
    if max_width is None or len(line) <= max_width:
        yield line
        return

    # Imported late, because most lines are short.
    from textwrap import wrap

    column = len(head) + len(_GAP)
    if max_width - column >= _NARROWEST:
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
    """Return a line wrapped to the width of the terminal.

    Args:
        line: the line.
        indent: put before the first line, if there are several; the others are indented
            further.
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
    """Return the width of the terminal, or that of the environment variable `COLUMNS`.

    None for a pipe or a file without `COLUMNS`, where no line is wrapped.
    """
    if not is_terminal() and "COLUMNS" not in os.environ:
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns
