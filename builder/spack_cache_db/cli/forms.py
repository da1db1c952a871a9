r"""What commands print: lines, notes, faults, errors and JSON, and in which format.

Answers go to standard output; notes, faults and errors go to standard error. Names and
messages come from files that other people wrote, and a terminal obeys control
characters: `printable` replaces them with escapes, such as `\x1b`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import IO, Any, NoReturn

import click

from spack_cache_db.errors import printable, series
from spack_cache_db.query.rows import json_text

_FORMATS = ("json", "csv", "markdown")
"""The formats that several commands have; without any of them, people get a table."""


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def say(line: str) -> None:
    """Print one line."""
    click.echo(printable(line))


def say_notes(notes: Iterable[str]) -> None:
    """Print notes to standard error."""
    label = styled("Note:", sys.stderr, fg="yellow")
    for note in notes:
        click.echo(f"{label} {printable(note)}", err=True)


def say_faults(faults: Iterable[object]) -> None:
    """Print faults of the input to standard error; the text of a fault is printable."""
    for fault in faults:
        click.echo(str(fault), err=True)


def print_json(value: Any) -> None:
    """Print plain values as JSON.

    JSON itself escapes characters below U+0020 only; a terminal also obeys some of the
    others, such as U+009B.
    """
    lines = json_text(value).split("\n")
    click.echo("\n".join(_escaped(line) for line in lines))


def _escaped(line: str) -> str:
    r"""Return a line of JSON with JSON's escapes for control characters: `\u009b`."""
    # Imported late, because the help of commands needs no JSON.
    import json

    if line.isprintable():
        return line
    escaped = ""
    for character in line:
        if character.isprintable():
            escaped += character
        else:
            escaped += json.dumps(character).strip('"')
    return escaped


def styled(text: str, stream: IO[str], **style: Any) -> str:
    """Return text in a style of `click.style`, if the stream is a terminal.

    The environment variable `NO_COLOR`, unless it is empty, forbids all styles
    (https://no-color.org).
    """
    if os.environ.get("NO_COLOR") or not stream.isatty():
        return text
    return click.style(text, **style)


class CommandError(click.ClickException):
    """An error that ends the command, which Click prints by `show`.

    Args:
        message: what is printed after `Error: `; its control characters are printed as
            they are.
        status: the exit status: 2 for most errors. Commands use 1 for an answer such as
            "nothing found", for faults of the input, and for a bug.
    """

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.exit_code = status  # type: ignore[misc]

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message to standard error, whatever `file` Click passes."""
        label = styled("Error:", sys.stderr, fg="red")
        click.echo(f"{label} {self.message}", err=True)


def fail(message: str, status: int = 2) -> NoReturn:
    """End the command with an error on one line; see `CommandError` for the status."""
    raise CommandError(printable(message), status)


def form_of(options: Mapping[str, Any], *more: str) -> str | None:
    """Return the output format that the options select, such as `json`.

    None means a table for people. Two formats end the command with an error.

    Args:
        options: the options of a command by name, of which `as_json`, `as_csv` and
            `as_markdown` are flags; a command may lack some of them.
        more: other options of the command that are formats too, such as `keeplist`.
    """
    is_given: dict[str, bool] = {}
    for name in _FORMATS:
        if f"as_{name}" in options:
            is_given[name] = options[f"as_{name}"]
    for name in more:
        is_given[name] = options[name]
    given = [name for name in is_given if is_given[name]]
    if len(given) > 1:
        flags = [f"--{name}" for name in is_given]
        all_flags = series(flags, most=len(flags))
        fail(f"{all_flags} exclude each other: give one of them")
    return given[0] if given else None
