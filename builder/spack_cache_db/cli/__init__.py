"""The command line. Each command is loaded when it is called; only this room uses Click."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click

from spack_cache_db.cli.terminal import FaultyInput, UnexpectedError, end_full, fail, heed_signals
from spack_cache_db.errors import (
    TRACEBACK,
    BuilderError,
    InputError,
    counted,
    printable,
    unexpected,
)


class Command(NamedTuple):
    """Where a command is: its module here, and the extra of `pyproject.toml` that it needs."""

    module: str
    extra: str | None = None


COMMANDS: Mapping[str, Command] = {
    "behind": Command("contents"),
    "build": Command("build", "build"),
    "check": Command("build", "build"),
    "cover": Command("cover"),
    "dependents": Command("contents"),
    "deps": Command("contents"),
    "diff": Command("contents"),
    "export-static": Command("serve"),
    "fetch": Command("fetch", "fetch"),
    "find": Command("find"),
    "history": Command("find"),
    "info": Command("contents"),
    "releases": Command("contents"),
    "serve": Command("serve", "site"),
    "site": Command("serve"),
    "stacks": Command("contents"),
    "verify": Command("build", "build"),
}
"""The commands. Each is the function of that name, with `_` for `-`, in its module."""


class _Commands(click.Group):
    """Loads a command when it is called; errors are messages without a traceback.

    The same fault has the same status in every command: faults of the input and bugs of this
    program 1, all others 2.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, if there is one."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"{__name__}.{COMMANDS[cmd_name].module}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; of an unknown one, name the closest."""
        close = get_close_matches(args[0], COMMANDS, n=1)
        if args[0] in COMMANDS or not close:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"No such command {args[0]!r}. Did you mean {close[0]!r}?", ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and say what went wrong."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            # Click quotes what was given as it is: names of files, as a shell lists them.
            raise click.UsageError(printable(error.format_message()), error.ctx) from None
        except InputError as error:
            click.echo(str(error), err=True)
            said = f"{counted(len(error.faults), 'fault')} in the input"
            if ctx.invoked_subcommand == "build":
                said += "; nothing was written. Fix it, or leave it out with --keep-going."
            raise FaultyInput(said) from None
        except BuilderError as error:
            fail(str(error))
        except (click.ClickException, click.exceptions.Exit, click.Abort, OSError):
            raise
        except Exception as error:
            if TRACEBACK in os.environ:
                raise
            if missing := _missing_extra(ctx.invoked_subcommand, error):
                fail(missing)
            raise UnexpectedError(printable(unexpected(error))) from None


def _missing_extra(command: str | None, error: Exception) -> str | None:
    """Return what to install if a command lacks what its extra would install, otherwise None."""
    called = COMMANDS.get(command or "")
    if not isinstance(error, ModuleNotFoundError) or called is None or called.extra is None:
        return None
    return (
        f"{command} needs {error.name}, which is not installed; "
        f"install it with: pip install 'spack-cache-db[{called.extra}]'"
    )


def _show_tracebacks(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        # Processes that read the input inherit it.
        os.environ[TRACEBACK] = "1"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spack-cache-db")
@click.option(
    "--traceback",
    is_flag=True,
    expose_value=False,
    callback=_show_tracebacks,
    help="Print the traceback of an unexpected error.",
)
def cli() -> None:
    """Build one SQLite database from Spack build caches, search it, and serve it."""


def main() -> NoReturn:
    """Run the command."""
    heed_signals()
    try:
        cli(prog_name="spack-cache-db")
    except OSError as error:
        end_full(error)
        if TRACEBACK in os.environ:
            raise
        UnexpectedError(printable(unexpected(error))).show()
        raise SystemExit(UnexpectedError.exit_code) from None
    raise SystemExit(0)
