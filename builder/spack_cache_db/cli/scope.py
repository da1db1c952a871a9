"""What `find` and `cover` share: options that narrow an answer, notes on it, and how they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import click

from spack_cache_db.cli.here import this_machine
from spack_cache_db.cli.terminal import say
from spack_cache_db.errors import printable

F = TypeVar("F", bound=Callable[..., Any])


class Failure(click.ClickException):
    """An error; status 1 says that something has no answer."""

    exit_code = 2


def fail(message: str) -> NoReturn:
    """End the command by an error in one line."""
    raise Failure(printable(message))


def scope_options(command: F) -> F:
    """Add what `find` and `cover` share."""
    for option in (
        click.option("--here", is_flag=True, help="Only what runs on this machine."),
        click.option("--host", help="Only what runs on this CPU target, such as zen3."),
        click.option("--stack", help="Only what is in this stack."),
        click.option("--release", help="Only what this release lists."),
    ):
        command = option(command)
    return command


def scope_names(options: dict[str, Any]) -> dict[str, str | None]:
    """Return the names that narrow an answer, as Python takes them; say what this machine is."""
    found = {name: options[name] for name in ("release", "stack", "host")}
    if not options["here"]:
        return found
    if options["host"]:
        raise click.UsageError("--here and --host exclude each other: give one of them")
    here = this_machine()
    known = ", ".join(value for value in (here.target, here.os, here.platform) if value)
    unknown = "".join(f"; {each}: any operating system is shown" for each in here.unknown)
    say_notes([f"this machine is {known}{unknown}"])
    return found | {"host": here.target, "os": here.os, "platform": here.platform}


def say_notes(notes: list[str] | tuple[str, ...]) -> None:
    """Print notes to standard error."""
    for note in notes:
        say(f"Note: {note}", err=True)
