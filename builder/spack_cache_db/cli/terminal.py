"""What a command prints: aligned tables, Markdown, JSON or CSV; and how a signal ends it.

A page is data, and a terminal obeys control characters, so they are printed as Python writes them.
Only what is printed here has colours.

A signal ends the process where it stands: an exception thrown into whatever runs at that moment
could be lost there, or end in a traceback. Who has begun something says beforehand how to tidy up.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from functools import partial
from textwrap import wrap
from types import FrameType, MappingProxyType
from typing import IO, Any, NamedTuple, NoReturn

import click

from spack_cache_db.errors import counted, printable
from spack_cache_db.query.answers import csv_text, json_text


def is_terminal() -> bool:
    """Return whether standard output is a terminal; it may be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int | None:
    """Return the width of the terminal; what goes into a pipe or a file is not shortened."""
    if not is_terminal() and "COLUMNS" not in os.environ:
        return None
    return shutil.get_terminal_size().columns


def say(line: str) -> None:
    """Print one line, its control characters as Python writes them."""
    click.echo(printable(line))


def styled(text: str, *, err: bool = False, **style: Any) -> str:
    """Return printable text in a style, on a terminal where nobody set `NO_COLOR`.

    Args:
        text: what is printed.
        err: it goes to standard error.
        style: as `click.style` takes it.
    """
    stream = sys.stderr if err else sys.stdout
    # https://no-color.org: any value but the empty one.
    if os.environ.get("NO_COLOR") or stream is None or not stream.isatty():
        return text
    return click.style(text, **style)


def say_notes(notes: Iterable[str]) -> None:
    """Print notes to standard error."""
    for note in notes:
        click.echo(f"{styled('Note:', err=True, fg='yellow')} {printable(note)}", err=True)


class CommandError(click.ClickException):
    """What ends a command: its message, and status 2.

    Status 1 is an answer: nothing is found, something differs, the input has faults.
    """

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message to standard error."""
        click.echo(f"{styled('Error:', err=True, fg='red')} {self.message}", err=True)


class FaultyInput(CommandError):
    """The input has faults, which are printed already."""

    exit_code = 1


class UnexpectedError(CommandError):
    """A bug of this program."""

    exit_code = 1


def fail(message: str) -> NoReturn:
    """End the command by an error in one line."""
    raise CommandError(printable(message))


def printable_json(text: str) -> str:
    """Return JSON that says the same, without control characters.

    JSON itself leaves some of them as they are in a text (RFC 8259, 7).
    """
    return "\n".join(
        "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)
        for line in text.split("\n")
    )


def printable_values(value: Any) -> Any:
    """Return a record, or a tuple, with every text in it as `printable` gives it."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        parts = map(printable_values, value)
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if is_dataclass(value) and not isinstance(value, type):
        texts = {each.name: printable_values(getattr(value, each.name)) for each in fields(value)}
        return replace(value, **texts)
    return value


MOST_ROWS = 50
"""So many rows are shown on a terminal, unless all are asked for."""

NOTHING = "-"
_GAP = "  "
_INDENT = " " * 4


_FORMS = ("json", "csv", "markdown")


_HEAD = re.compile(r"(?:\S+ )?(\w+)(?=  |:)")
"""The beginning of a line of a table: a status, or what a section is about."""


class Forms(NamedTuple):
    """What writes an answer in each form that its command offers.

    `table` and `markdown` give printable text. `colours` are those of the last words of the
    beginnings of lines, on a terminal.
    """

    table: Callable[[Any], str]
    json: Callable[[Any], str]
    csv: Callable[[Any], str]
    markdown: Callable[[Any], str] | None = None
    colours: Mapping[str, str] = MappingProxyType({})


def form_of(options: Any, *others: str) -> str | None:
    """Return the form that is asked for, None for a table; end the command if there are several.

    Args:
        options: those of the command, `as_json` and the like.
        others: options that no form goes with.
    """
    offered = {name: options[f"as_{name}"] for name in _FORMS if f"as_{name}" in options}
    offered |= {name: options[name] for name in others}
    given = [name for name, is_given in offered.items() if is_given]
    if len(given) > 1:
        *most, last = (f"--{name}" for name in offered)
        fail(f"{', '.join(most)} and {last} exclude each other: give one of them")
    return given[0] if given else None


def print_answer(found: Any, forms: Forms, options: Any) -> None:
    """Print an answer in the form that the options ask for."""
    form = form_of(options)
    if form == "json":
        click.echo(printable_json(forms.json(found)))
    elif form == "csv":
        print_csv(forms.csv, found)
    elif form == "markdown" and forms.markdown:
        click.echo(forms.markdown(found))
    else:
        for line in forms.table(found).split("\n"):
            click.echo(_coloured(line, forms.colours))


def _coloured(line: str, colours: Mapping[str, str]) -> str:
    head = _HEAD.match(line)
    if head is None or head[1] not in colours:
        return line
    return styled(head[0], fg=colours[head[1]]) + line[head.end() :]


def print_rows(
    names: Sequence[str], rows: Iterable[tuple[Any, ...]], options: Any, nothing: str
) -> bool:
    """Print rows as the options say (see `options.rows_options`); return whether there are any.

    Args:
        names: the columns.
        rows: texts, numbers and None.
        options: `as_json`, `as_csv`, `every`.
        nothing: why there are no rows, in a sentence for standard error.
    """
    found = tuple(rows)
    if not found:
        say_notes([nothing])
    if found or form_of(options) is not None:
        forms = Forms(
            lambda rows: _table(names, rows, most_rows(options)),
            lambda rows: json_text([dict(zip(names, row, strict=True)) for row in rows]),
            partial(csv_text, names),
            lambda rows: _markdown(names, rows),
        )
        print_answer(found, forms, options)
    return bool(found)


def _table(names: Sequence[str], rows: Sequence[tuple[Any, ...]], most: int | None) -> str:
    cells = [[_cell(each) for each in row] for row in rows[:most]]
    lines = [*aligned([name.replace("_", " ") for name in names], cells, width())]
    if most is not None and len(rows) > most:
        lines += ["", more_rows(len(rows) - most)]
    return "\n".join(lines)


def _markdown(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> str:
    """Return rows as a table in Markdown; what would be markup there is text."""
    lines = [[name.replace("_", " ") for name in names], ["---"] * len(names)]
    lines += [
        [_cell(each).replace("|", "\\|").replace("<", "&lt;") for each in row] for row in rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def print_csv(as_csv: Callable[[Any], str], found: Any) -> None:
    """Print an answer as CSV: its very texts to a pipe, printable ones to a terminal."""
    shown = printable_values(found) if is_terminal() else found
    # Click would take escape sequences out of what goes into a pipe: here they are data.
    click.echo(as_csv(shown), nl=False, color=True)


def most_rows(options: Any) -> int | None:
    """Return how many rows a table has at most; None for any number."""
    return MOST_ROWS if is_terminal() and not options["every"] else None


def more_rows(count: int) -> str:
    """Return what stands below a table that leaves out some rows."""
    return f"{counted(count, 'more row')}: --all shows all"


def aligned(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, long: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of a table; a column in which all rows have nothing is left out.

    Args:
        names: the columns.
        rows: printable texts; `NOTHING` where there is none.
        width: the longest line that is wanted; None for any. What is longer is wrapped.
        long: the columns of long texts, the last ones. As many of them as do not fit beside the
            others stand below each row.
    """
    used = [at for at in range(len(names)) if any(row[at] != NOTHING for row in rows)]
    sizes = {at: max(len(names[at]), *(len(row[at]) for row in rows)) for at in used}
    below: list[int] = []
    while width is not None and sum(sizes.values()) + len(_GAP) * (len(sizes) - 1) > width:
        if names[used[-1 - len(below)]] not in long:
            break
        below.insert(0, used[-1 - len(below)])
        del sizes[below[0]]
    for number, row in enumerate((names, *rows)):
        line = _GAP.join(row[at].ljust(size) for at, size in sizes.items()).rstrip()
        lines = wrapped(line, width)
        yield from lines if number else (styled(each, bold=True) for each in lines)
        for at in below if number else ():
            if row[at] != NOTHING:
                yield from wrapped(f"{_INDENT}{names[at]}: {row[at]}", width, _INDENT)


def wrapped(line: str, width: int | None, indent: str = "") -> list[str]:
    """Return a line, or several of at most `width` characters; what follows is indented more."""
    if width is None or len(line) <= width:
        return [line]
    return wrap(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent + _INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _cell(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else str(printable_values(value))


class ProgressBar:
    """A progress bar on a terminal, nothing in a pipe. Gives the function that moves it."""

    def __init__(self, label: str = "Reading") -> None:
        self._label = label

    def __enter__(self) -> Callable[[float, int], None] | None:
        self._bar: Any = None
        self._end = ExitStack()
        return self._move if sys.stderr and sys.stderr.isatty() else None

    def _move(self, done: float, total: int) -> None:
        # Click counts in whole steps.
        done, total = int(1000 * done), 1000 * total
        if self._bar is None:
            self._end.enter_context(when_stopped(_show_cursor))
            self._bar = click.progressbar(length=total, label=self._label, file=sys.stderr)
            self._end.enter_context(self._bar)
        # A total that grows: what was all of it need not be any longer.
        self._bar.length, self._bar.finished = total, False
        self._bar.update(done - self._bar.pos)

    def __exit__(self, *error: object) -> None:
        self._end.close()


def _show_cursor() -> str:
    # Click hides it while a bar moves.
    write_error("\x1b[?25h\n")
    return ""


def documents_read(pages: int, indexes: int, records: int, packages: int) -> list[str]:
    """Return what was read, counted: pages, indexes with their records, entries of package data."""
    found = [counted(pages, "page")] if pages or not (indexes or packages) else []
    if indexes:
        found += [counted(indexes, "index", "indexes"), counted(records, "record")]
    if packages:
        found.append(counted(packages, "package entry", "package entries"))
    return found


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_begun: list[Callable[[], str]] = []


def heed_signals() -> None:
    """Let a signal end this process in good order, as long as it lives.

    Signals that whoever started it ignores (`nohup`) stay ignored.
    """
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _end)
    # Where processes are not forked, Python has another one that removes their semaphores after
    # them, and warns of each.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")


@contextmanager
def when_stopped(tidy: Callable[[], str]) -> Iterator[None]:
    """Have `tidy` called if a signal ends what is begun here.

    Args:
        tidy: returns what is to be said, or nothing. It is called between any two steps of the
            program, maybe while something is printed: it prints and loads nothing itself.
    """
    _begun.append(tidy)
    try:
        yield
    finally:
        _begun.remove(tidy)


def write_error(text: str) -> None:
    """Write to standard error past what is being printed, if it takes anything at all."""
    # Where it was closed, its number may be that of a file by now.
    if sys.stderr is not None:
        with suppress(OSError):
            os.write(2, text.encode())


def end_full(error: OSError) -> None:
    """If an error is that of an output which takes no more, say so and end with status 2.

    Status 1 has a meaning of its own elsewhere. The errors of files name the file. What is left to
    be written is given up: Python would try again at its end, and complain.
    """
    if error.errno in _FULL and error.filename is None:
        write_error(f"Error: the output cannot be written: {error.strerror}\n")
        os._exit(2)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for each in SIGNALS:
        # A second one does not wait.
        if signal.getsignal(each) is _end:
            signal.signal(each, signal.SIG_DFL)
    said = [f"Error: stopped by {signal.Signals(number).name}"]
    said += filter(None, [tidy() for tidy in reversed(_begun)])
    write_error("; ".join(said) + "\n")
    # By the signal itself, so that whoever started it can tell (bash manual, 3.7.5).
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    # The first process of a container is not ended by signals that it does not handle.
    os._exit(128 + number)
