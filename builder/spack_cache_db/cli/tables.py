"""Prints answers as tables, JSON, CSV, Markdown or JUnit; notes, errors and progress;
and signals.

Names and messages come from files that other people wrote, and a terminal obeys control
characters, so their escapes are printed instead. A signal ends the process at once: an
exception raised at an arbitrary point could be lost there.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import click

from spack_cache_db.cli.forms import form_of, is_terminal, print_json, say_notes, styled
from spack_cache_db.errors import counted, printable
from spack_cache_db.query.rows import Rows, csv_text

MOST_ROWS = 50
"""Rows of a table on a terminal without `--all`."""

NOTHING = "-"
_HEADINGS = {"specs": "binaries", "spec_count": "binaries"}
"""Headings that differ from the names of their columns."""
_GAP = "  "
_INDENT = " " * 4
_LABEL = re.compile(r"(?:\S+ )?(\w+)(?=  |:)")
"""The beginning of a table's line: a status, or the title of a section."""


def width() -> int | None:
    """Return the width of the terminal; None for a pipe or a file, where no line is
    wrapped.
    """
    if not is_terminal() and "COLUMNS" not in os.environ:
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


class Heading(str):
    """A line of a table that is bold on a terminal."""

    __slots__ = ()


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

    JSON is `value`, the records of `rows` by default; CSV has the rows; `table` and
    `markdown` are lines. `colours` are those of statuses and sections on a terminal.
    """
    form = form_of(options)
    if form == "json":
        print_json(value() if value else [*rows().records])
    elif form == "csv":
        # A pipe may end in a terminal as well.
        lines = csv_text(rows()).split("\n")
        click.echo("\n".join(map(printable, lines)), nl=False)
    else:
        for line in markdown if form == "markdown" else table:
            click.echo(printable(line) if form else _coloured(line, colours))


def _coloured(line: str, colours: Mapping[str, str | None]) -> str:
    if isinstance(line, Heading):
        return styled(printable(line), sys.stdout, bold=True)
    label = _LABEL.match(line)
    colour = colours.get(label[1]) if label else None
    if label is None or colour is None:
        return printable(line)
    return styled(label[0], sys.stdout, fg=colour) + printable(line[label.end() :])


def print_rows(
    rows: Rows, options: Any, nothing: str, columns: Sequence[str] = ()
) -> bool:
    """Print rows in the format that the options select; return whether there are any.

    The note `nothing` goes to standard error if there are none. Tables and Markdown
    have only `columns`, all by default.
    """
    records = [*rows.records]
    if not records:
        say_notes([nothing])
    if records or form_of(options) is not None:
        names = columns or rows.columns
        cells = [[_cell(record[name]) for name in names] for record in records]
        headings = [_HEADINGS.get(name) or name.replace("_", " ") for name in names]
        printed = cells[: most_rows(options)]
        table = aligned(headings, printed, optional=headings[:0:-1])
        more = (
            ("", more_rows(len(cells) - len(printed)))
            if len(printed) < len(cells)
            else ()
        )
        print_answer(
            options,
            lambda: Rows(rows.columns, records),
            (*table, *more),
            markdown=markdown_table(headings, cells),
        )
    return bool(records)


def markdown_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> Iterator[str]:
    """Yield the lines of a table in Markdown; markup in it is escaped."""
    for line in (headings, ["---"] * len(headings)):
        yield f"| {' | '.join(line)} |"
    for row in rows:
        cells = (text.replace("|", "\\|").replace("<", "&lt;") for text in row)
        yield f"| {' | '.join(cells)} |"


def most_rows(options: Any) -> int | None:
    """Return how many rows a table has at most; None for any number."""
    return MOST_ROWS if is_terminal() and not options["every"] else None


def more_rows(count: int) -> str:
    """Return the line below a shortened table: how many rows are hidden."""
    return f"{counted(count, 'more row')}: --all shows all"


def aligned(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    long: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines of a table as wide as the terminal, without its empty columns.

    The last columns may be `long`: they go below each row if they do not fit. A narrow
    terminal
    leaves out `optional` columns, the least useful first.
    """
    used = [
        at for at in range(len(headings)) if any(row[at] != NOTHING for row in rows)
    ]
    sizes = {at: max(len(headings[at]), *(len(row[at]) for row in rows)) for at in used}
    below, left_out = list[int](), list[int]()
    optional_columns = [headings.index(name) for name in optional if name in headings]
    long_columns = [at for at in reversed(used) if headings[at] in long]
    for columns, removed in ((optional_columns, left_out), (long_columns, below)):
        for at in columns:
            size = sum(sizes.values()) + len(_GAP) * (len(sizes) - 1)
            if at in sizes and size > (width() or size):
                removed.append(at)
                del sizes[at]
    for number, row in enumerate((headings, *rows)):
        line = _GAP.join(row[at].ljust(size) for at, size in sizes.items()).rstrip()
        yield from wrapped(line) if number else map(Heading, wrapped(line))
        for at in sorted(below) if number else ():
            if row[at] != NOTHING:
                yield from wrapped(f"{_INDENT}{headings[at]}: {row[at]}", _INDENT)
    if left_out:
        names = ", ".join(headings[at] for at in sorted(left_out))
        yield from ("", *wrapped(f"left out of this narrow table: {names}"))


def wrapped(line: str, indent: str = "") -> list[str]:
    """Return a line wrapped to the width of the terminal; continuation lines are
    indented.
    """
    max_width = width()
    if max_width is None or len(line) <= max_width:
        return [line]
    from textwrap import wrap

    more = indent + _INDENT
    return wrap(
        line.strip(),
        max_width,
        initial_indent=indent,
        subsequent_indent=more,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _cell(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else str(value)
