"""The form of an answer: people, JSON, CSV or Markdown; notes and errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO, Any, NoReturn

import click

from spack_cache_db.errors import printable
from spack_cache_db.query.rows import json_text

_FORMS = ("json", "csv", "markdown")


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
    """Print faults of the input to standard error."""
    for fault in faults:
        click.echo(str(fault), err=True)


def print_json(value: Any) -> None:
    """Print plain values as JSON; escapes replace the control characters that JSON
    allows.
    """
    lines = json_text(value).split("\n")
    click.echo("\n".join(_escaped(line) for line in lines))


def _escaped(line: str) -> str:
    r"""Return a line of JSON with its escapes, such as `\\u007f`, for control
    characters.
    """
    import json

    if line.isprintable():
        return line
    characters = [
        character if character.isprintable() else json.dumps(character)[1:-1]
        for character in line
    ]
    return "".join(characters)


def styled(text: str, stream: IO[str], **style: Any) -> str:
    """Return text in a style of `click.style`, if the stream is a terminal without
    `NO_COLOR`.
    """
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
        label = styled("Error:", sys.stderr, fg="red")
        click.echo(f"{label} {self.message}", err=True)


def fail(message: str, status: int = 2) -> NoReturn:
    """End the command with an error in one line."""
    raise CommandError(printable(message), status)


def form_of(options: Any, *more: str) -> str | None:
    """Return the selected output format, None for a table; two formats are an error.

    `more` are the options of a command that are formats too, such as `keeplist`.
    """
    offered = {}
    for name in _FORMS:
        if f"as_{name}" in options:
            offered[name] = options[f"as_{name}"]
    for name in more:
        offered[name] = options[name]
    chosen = [name for name, is_given in offered.items() if is_given]
    if len(chosen) > 1:
        *others, last = [f"--{name}" for name in offered]
        fail(f"{', '.join(others)} and {last} exclude each other: give one of them")
    return chosen[0] if chosen else None
