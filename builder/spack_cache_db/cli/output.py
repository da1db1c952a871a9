"""Prints answers as tables, JSON, CSV or Markdown; and notes, errors and progress.

Names and messages come from files that other people wrote, and a terminal obeys control
characters, so their escapes are printed instead.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import MappingProxyType
from typing import IO, Any, NoReturn

import click

from spack_cache_db.cli.signals import when_stopped, write_error
from spack_cache_db.errors import counted, printable
from spack_cache_db.query import Rows, csv_text, json_text

MOST_ROWS = 50
"""Rows of a table on a terminal without `--all`."""

NOTHING = "-"
_FORMS = ("json", "csv", "markdown")
_HEADINGS = {"specs": "binaries", "spec_count": "binaries"}
"""Headings that differ from the names of their columns."""
_GAP = "  "
_INDENT = " " * 4
_LABEL = re.compile(r"(?:\S+ )?(\w+)(?=  |:)")
"""The beginning of a table's line: a status, or the title of a section."""


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def width() -> int | None:
    """Return the width of the terminal; None for a pipe or a file, where no line is wrapped."""
    if not is_terminal() and "COLUMNS" not in os.environ:
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def say(line: str) -> None:
    """Print one line."""
    click.echo(printable(line))


def say_notes(notes: Iterable[str]) -> None:
    """Print notes to standard error."""
    for note in notes:
        click.echo(f"{styled('Note:', sys.stderr, fg='yellow')} {printable(note)}", err=True)


def say_faults(faults: Iterable[object]) -> None:
    """Print faults of the input to standard error."""
    for fault in faults:
        click.echo(str(fault), err=True)


def print_json(value: Any) -> None:
    """Print plain values as JSON; escapes replace the control characters that JSON allows."""
    import json

    def escaped(char: str) -> str:
        return char if char.isprintable() else json.dumps(char)[1:-1]

    click.echo("\n".join("".join(map(escaped, line)) for line in json_text(value).split("\n")))


def styled(text: str, stream: IO[str], **style: Any) -> str:
    """Return text in a style of `click.style`, if the stream is a terminal without `NO_COLOR`."""
    # https://no-color.org: any value except the empty one.
    if os.environ.get("NO_COLOR") or not stream.isatty():
        return text
    return click.style(text, **style)


class CommandError(click.ClickException):
    """An error that ends the command; status 1 means an answer, faults or a bug."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.exit_code = status  # type: ignore[misc]

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message to standard error."""
        click.echo(f"{styled('Error:', sys.stderr, fg='red')} {self.message}", err=True)


def fail(message: str, status: int = 2) -> NoReturn:
    """End the command with an error in one line."""
    raise CommandError(printable(message), status)


class Heading(str):
    """A line of a table that is bold on a terminal."""

    __slots__ = ()


def form_of(options: Any, *more: str) -> str | None:
    """Return the selected output format, None for a table; two formats are an error."""
    offered = {name: options[f"as_{name}"] for name in _FORMS if f"as_{name}" in options}
    offered |= {name: options[name] for name in more}
    chosen = [name for name, is_given in offered.items() if is_given]
    if len(chosen) > 1:
        *first, last = (f"--{name}" for name in offered)
        fail(f"{', '.join(first)} and {last} exclude each other: give one of them")
    return chosen[0] if chosen else None


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
        options: options of the command, such as `as_json`.
        rows: returns the rows of CSV.
        table: the lines for people.
        value: returns the plain values of JSON; the records of `rows` by default.
        markdown: the lines of Markdown.
        colours: the colours of statuses and sections on a terminal.
    """
    form = form_of(options)
    if form == "json":
        print_json(value() if value else [*rows().records])
    elif form == "csv":
        text = csv_text(rows())
        if is_terminal():
            text = "\n".join(map(printable, text.split("\n")))
        # Click would remove escape sequences from a pipe: they are data.
        click.echo(text, nl=False, color=True)
    elif form == "markdown":
        for line in markdown:
            say(line)
    else:
        for line in table:
            click.echo(_coloured(line, colours))


def _coloured(line: str, colours: Mapping[str, str | None]) -> str:
    if isinstance(line, Heading):
        return styled(printable(line), sys.stdout, bold=True)
    label = _LABEL.match(line)
    colour = colours.get(label[1]) if label else None
    if label is None or colour is None:
        return printable(line)
    return styled(label[0], sys.stdout, fg=colour) + printable(line[label.end() :])


def print_rows(rows: Rows, options: Any, nothing: str, shown: Sequence[str] = ()) -> bool:
    """Print rows in the format that the options select; return whether there are any.

    Args:
        rows: texts, numbers and None.
        options: `as_json`, `as_csv`, `every`.
        nothing: note for standard error if there are no rows.
        shown: columns of the table and of Markdown; all by default.
    """
    records = [*rows.records]
    if not records:
        say_notes([nothing])
    if records or form_of(options) is not None:
        names = shown or rows.columns
        cells = [[_cell(record[name]) for name in names] for record in records]
        headings = [_HEADINGS.get(name) or name.replace("_", " ") for name in names]
        max_rows = most_rows(options)
        hidden_count = len(cells) - len(cells[:max_rows])
        more = more_rows(hidden_count)
        print_answer(
            options,
            lambda: Rows(rows.columns, records),
            chain(
                aligned(headings, cells[:max_rows], optional=headings[:0:-1]),
                ["", more] if hidden_count > 0 else [],
            ),
            markdown=markdown_table(headings, cells),
        )
    return bool(records)


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
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

    Args:
        headings: the columns.
        rows: texts; `NOTHING` for an empty cell.
        long: the last columns, with long texts; a column that does not fit goes below each row.
        optional: columns that a narrow terminal leaves out, the least useful first.
    """
    used = [at for at in range(len(headings)) if any(row[at] != NOTHING for row in rows)]
    sizes = {at: max(len(headings[at]), *(len(row[at]) for row in rows)) for at in used}
    max_width = width()
    below, left_out = list[int](), list[int]()

    def is_wide() -> bool:
        return (
            max_width is not None and sum(sizes.values()) + len(_GAP) * (len(sizes) - 1) > max_width
        )

    for at in (headings.index(name) for name in optional if name in headings):
        if at in sizes and is_wide():
            left_out.append(at)
            del sizes[at]
    for at in reversed(used):
        if at in sizes and headings[at] in long and is_wide():
            below.insert(0, at)
            del sizes[at]
    for number, row in enumerate((headings, *rows)):
        line = _GAP.join(row[at].ljust(size) for at, size in sizes.items()).rstrip()
        yield from wrapped(line) if number else map(Heading, wrapped(line))
        for at in below if number else ():
            if row[at] != NOTHING:
                yield from wrapped(f"{_INDENT}{headings[at]}: {row[at]}", _INDENT)
    if left_out:
        names = ", ".join(headings[at] for at in sorted(left_out))
        yield from ("", *wrapped(f"left out of this narrow table: {names}"))


def wrapped(line: str, indent: str = "") -> list[str]:
    """Return a line wrapped to the width of the terminal; continuation lines are indented."""
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


def _cell(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else str(value)


@contextmanager
def progress_bar(label: str = "Reading") -> Iterator[Callable[[float, int], None] | None]:
    """Yield a function that moves a progress bar on a terminal; None elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return

    def show_cursor() -> str:
        # Click hides the cursor while a bar moves.
        write_error("\x1b[?25h\n")
        return ""

    with (
        when_stopped(show_cursor),
        click.progressbar(length=1, label=label, file=sys.stderr) as bar,
    ):

        def move(done: float, total: int) -> None:
            # Click counts whole steps. The total may grow after the bar was full.
            bar.length, bar.finished = 1000 * total, False
            bar.update(int(1000 * done) - bar.pos)

        yield move
