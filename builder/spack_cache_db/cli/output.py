"""Prints answers as tables, JSON, CSV, Markdown or JUnit; notes, errors and progress; and signals.

Names and messages come from files that other people wrote, and a terminal obeys control
characters, so their escapes are printed instead. A signal ends the process at once: an exception
raised at an arbitrary point could be lost there.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import IO, Any, NamedTuple, NoReturn

import click

from spack_cache_db.errors import OutputError, counted, printable, reason
from spack_cache_db.query.rows import Rows, csv_text, json_text

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

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_cleanups: list[Callable[[], str]] = []


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

    JSON is `value`, the records of `rows` by default; CSV has the rows; `table` and `markdown` are
    lines. `colours` are those of statuses and sections on a terminal.
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


def print_rows(rows: Rows, options: Any, nothing: str, columns: Sequence[str] = ()) -> bool:
    """Print rows in the format that the options select; return whether there are any.

    The note `nothing` goes to standard error if there are none. Tables and Markdown have only
    `columns`, all by default.
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
        more = ("", more_rows(len(cells) - len(printed))) if len(printed) < len(cells) else ()
        print_answer(
            options,
            lambda: Rows(rows.columns, records),
            (*table, *more),
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

    The last columns may be `long`: they go below each row if they do not fit. A narrow terminal
    leaves out `optional` columns, the least useful first.
    """
    used = [at for at in range(len(headings)) if any(row[at] != NOTHING for row in rows)]
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
    """Return a line wrapped to the width of the terminal; continuation lines are indented."""
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


class Case(NamedTuple):
    """One test case of a report; it passed if `failure` and `skipped` are empty."""

    group: str
    name: str
    failure: str = ""
    skipped: str = ""


def write_junit(path: Path, suite: str, cases: Iterable[Case]) -> None:
    """Write a report in JUnit's XML, which CI systems show."""
    from html import escape

    def element(case: Case) -> str:
        group, name = (escape(printable(text)) for text in case[:2])
        start = f'<testcase classname="{group}" name="{name}"'
        for tag, text in (("failure", case.failure), ("skipped", case.skipped)):
            if text:
                return f'{start}><{tag} message="{escape(printable(text))}"/></testcase>'
        return f"{start}/>"

    if path.suffix != ".xml":
        raise OutputError(f"{path}: cannot be a report; --junit takes a name that ends in .xml")
    every = [*cases]
    counts = f'failures="{sum(bool(case.failure) for case in every)}"'
    counts += f' skipped="{sum(bool(case.skipped) for case in every)}"'
    name = f'name="spack-cache-db {suite}" tests="{len(every)}" {counts}'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {name}>"]
    lines += [f"<testsuite {name}>", *map(element, every), "</testsuite>", "</testsuites>"]
    try:
        path.write_text("\n".join((*lines, "")), encoding="utf-8")
    except OSError as error:
        advice = "name a file in a folder that exists for --junit"
        raise OutputError(f"{path}: cannot be written: {reason(error)}; {advice}") from None


def heed_signals() -> None:
    """Let signals end this process; ignored signals (`nohup`) stay ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    # Python's tracker of processes that are not forked would warn of each semaphore it removes.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")


@contextmanager
def when_stopped(cleanup: Callable[[], str]) -> Iterator[None]:
    """Call `cleanup` if a signal ends the process within this context.

    It returns a text for the message. It runs between any two steps of the program, and must
    neither print nor import anything.
    """
    _cleanups.append(cleanup)
    try:
        yield
    finally:
        _cleanups.remove(cleanup)


def write_error(text: str) -> None:
    """Write to standard error without Python's buffers."""
    with suppress(OSError):
        os.write(2, text.encode())


def end_full(error: OSError) -> None:
    """End with status 2 if standard output is full; errors of files have a name.

    Python would try to write the buffer at its exit, and print a traceback.
    """
    if error.errno in _FULL and error.filename is None:
        write_error(f"Error: the output cannot be written: {error.strerror}\n")
        os._exit(2)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for other in SIGNALS:
        # A second signal does not wait for the cleanups.
        if signal.getsignal(other) is _end:
            signal.signal(other, signal.SIG_DFL)
    texts = [f"Error: stopped by {signal.Signals(number).name}"]
    texts += filter(None, [cleanup() for cleanup in reversed(_cleanups)])
    write_error("; ".join(texts) + "\n")
    # End by the signal itself, so that a shell or a script sees it (bash manual, 3.7.5).
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    # The first process of a container survives signals that it does not handle.
    os._exit(128 + number)
