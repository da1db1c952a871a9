"""What a command prints, and how it ends when a signal or a full output stops it.

A page is data, and a terminal obeys control characters, so they are printed as Python writes them.
Only what is printed here has colours.

A signal ends the process where it stands: an exception thrown into whatever runs at that moment
could be lost there, or end in a traceback. Who has begun something says beforehand how to tidy up.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from types import FrameType
from typing import IO, Any, NoReturn

import click

from spack_cache_db.errors import printable


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


def counted(number: int, word: str, words: str | None = None) -> str:
    """Return a number and its word, such as `1 page` and `2,000 pages`."""
    return f"{number:,} {word if number == 1 else words or f'{word}s'}"


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
