"""What `find` and `cover` share: options that narrow an answer, notes on it, and how they fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from spack_cache_db.cli.here import this_machine
from spack_cache_db.cli.terminal import say
from spack_cache_db.errors import DatabaseError, printable
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.query.open import connected

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
        click.option(
            "--host",
            help="Only what runs on this CPU target, such as zen3.",
            shell_complete=_names,
        ),
        click.option("--stack", help="Only what is in this stack.", shell_complete=_names),
        click.option("--release", help="Only what this release lists.", shell_complete=_names),
    ):
        command = option(command)
    return command


def _names(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the releases, stacks or targets of the file whose names begin so.

    The file is the one before this option, else `spack-cache.db` in this folder.
    """
    # An option that lacks its value ends Click's parsing: arguments are still in `args` then.
    file = ctx.params.get("file") or next(iter(ctx.args[1:]), "spack-cache.db")
    try:
        with connected(Path(file)) as conn:
            lookups = read_lookups(conn)
    except DatabaseError:
        return []
    names: dict[str | None, list[str]] = {
        "release": [each.name for each in lookups.releases.values()],
        "stack": [each.name for each in lookups.stacks.values()],
        "host": sorted(lookups.families),
    }
    return [name for name in names[parameter.name] if name.startswith(begun)]


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
