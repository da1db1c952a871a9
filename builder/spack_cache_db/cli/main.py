"""The command `spack-cache-db`: the list of its commands, and messages for errors.

The module of a command is imported when the command is called, so that `--help` is
quick. For the same reason, `COMMANDS` repeats the first sentence of each command's
help; a test compares them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click

from spack_cache_db import __version__
from spack_cache_db.cli.forms import CommandError, fail
from spack_cache_db.cli.signals import end_full, heed_signals
from spack_cache_db.errors import (
    TRACEBACK,
    BuilderError,
    HistoryError,
    InputError,
    counted,
    printable,
    unexpected,
)


class Command(NamedTuple):
    """A command before it is imported.

    Attributes:
        module: the module of this package with the command, a function of its name:
            `export_static` for `export-static`.
        help: the line in the list of commands, which is the first sentence of the
            function's docstring.
        extra: the extra of `pyproject.toml` that it needs; None if it needs none.
    """

    module: str
    help: str
    extra: str | None = None


COMMANDS: Mapping[str, Command] = {
    "behind": Command(
        "behind", "List packages with binaries older than Spack's latest version."
    ),
    "build": Command(
        "build", "Build a database from pages, indexes and package data.", "build"
    ),
    "check": Command(
        "check", "Check pages, indexes and package data without building.", "build"
    ),
    "cover": Command("cover", "Show which specs of an environment have a binary."),
    "dependents": Command("dependents", "List what depends on a spec."),
    "deps": Command("deps", "List what a spec depends on."),
    "diff": Command(
        "diff", "Show what changed between two releases, or two databases."
    ),
    "export": Command(
        "export", "Write tables as Parquet or CSV, with descriptions.", "export"
    ),
    "export-static": Command(
        "site", "Write a site that any web server can serve.", "site"
    ),
    "fetch": Command(
        "fetch", "Download indexes and package data for `build`.", "fetch"
    ),
    "find": Command("find", "Find the binaries that satisfy a spec."),
    "history": Command(
        "history", "Show how many binaries of each release satisfy a spec."
    ),
    "info": Command("info", "Summarize the content and the sources of a database."),
    "releases": Command("releases", "List the releases of a database."),
    "retention": Command("retention", "Show which binaries of a mirror can be pruned."),
    "serve": Command("serve", "Serve a database with Datasette, read-only.", "site"),
    "site": Command("site", "Print the path of the folder with the site's files."),
    "stacks": Command("releases", "List the stacks of a database."),
    "verify": Command("verify", "Verify that a database matches its sources.", "build"),
}


OPTIONAL_PACKAGES = frozenset(
    {
        "a2wsgi",
        "datasette",
        "gunicorn",
        "httpx",
        "httpx_auth",
        "jinja2",
        "markupsafe",
        "msgspec",
        "numpy",
        "pyarrow",
        "sqlite_utils",
        "uvicorn",
        "zstandard",
    }
)
"""The packages that extras install, by the names of their modules."""


class _Commands(click.Group):
    """Imports a command when it is called, and turns errors into messages.

    Faults of the input and bugs of this program end with status 1, all other errors
    with 2.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, if there is one."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"spack_cache_db.cli.{COMMANDS[cmd_name].module}")
        function_name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, function_name)
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            rows = [(name, command.help) for name, command in COMMANDS.items()]
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; the error of an unknown one names the
        closest.
        """
        name = args[0]
        if name not in COMMANDS:
            from difflib import get_close_matches

            close = get_close_matches(name, COMMANDS, n=1)
            if close:
                message = f"No such command {name!r}. Did you mean {close[0]!r}?"
                raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and turn its errors into messages.

        `ctx.invoked_subcommand` is the name of the command, such as `build`.
        """
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            # Click's messages contain words of the command line, which may have control
            # characters.
            message = printable(error.format_message())
            raise click.UsageError(message, error.ctx) from None
        except InputError as error:
            click.echo(str(error), err=True)
            fail(_fault_count(ctx.invoked_subcommand, error), status=1)
        except BuilderError as error:
            fail(str(error))
        except (click.ClickException, click.exceptions.Exit, click.Abort, OSError):
            # Click handles its own exceptions, and `main` handles OSError.
            raise
        except Exception as error:
            if TRACEBACK in os.environ:
                raise
            if isinstance(error, UnicodeEncodeError):
                unreadable = _unreadable_word()
                if unreadable is not None:
                    fail(unreadable)
            if isinstance(error, ModuleNotFoundError):
                missing = _missing_extra(ctx.invoked_subcommand, error)
                if missing is not None:
                    fail(missing)
            fail(unexpected(error), status=1)


def _fault_count(command: str | None, error: InputError) -> str:
    """Return the line below the faults of the input, with what to do about them."""
    message = f"{counted(len(error.faults), 'fault')} in the input"
    if isinstance(error, HistoryError):
        message += (
            "; nothing was written. A database is never left out, because it may be the "
            "only copy of its releases: restore it from a copy. If you move it away, the "
            "next build begins a new history."
        )
    elif command == "build":
        message += "; nothing was written. Fix it, or leave it out with --keep-going."
    return message


def _unreadable_word() -> str | None:
    """Return a message about the first word of the command line that is not text.

    None if all of them are. Python keeps such bytes as surrogates, which are valid in
    paths, and in no spec or name.
    """
    for word in sys.argv[1:]:
        try:
            word.encode()
        except UnicodeEncodeError:
            return f"{word!r} is not UTF-8 text, expected a spec, a name or a path"
    return None


def _missing_extra(name: str | None, error: ModuleNotFoundError) -> str | None:
    """Return a message about a module that a command needs and that is not installed.

    None for a command without an extra: a missing module is a bug there.
    """
    command = COMMANDS.get(name or "")
    if command is None or command.extra is None:
        return None
    package = (error.name or "").partition(".")[0]
    if package in OPTIONAL_PACKAGES:
        advice = f"install the extra `{command.extra}`"
        return f"{name} needs {error.name}, which is not installed; {advice}"
    # A plugin of the site's owner needs it.
    return f"{name} loads a plugin that needs {error.name}, which is not installed"


def _show_tracebacks(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        # A variable, because worker processes inherit it.
        os.environ[TRACEBACK] = "1"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option(
    "--traceback",
    is_flag=True,
    expose_value=False,
    callback=_show_tracebacks,
    help="Print the traceback of an unexpected error.",
)
def cli() -> None:
    """Build one SQLite database from Spack build caches, search it, and serve it."""


def _replace_closed_streams() -> None:
    """Open the null device for each standard stream that is closed (`find hdf5 >&-`).

    Otherwise, the next file that is opened would have the number of that stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: PTH123, SIM115 - as long as Python
            setattr(sys, name, stream)


def _has_current_folder() -> bool:
    """Return whether the folder in which the command was called still exists."""
    try:
        os.getcwd()  # noqa: PTH109
    except OSError:
        return False
    return True


def main() -> NoReturn:
    """Run the command, and end the process with its exit status."""
    _replace_closed_streams()
    heed_signals()
    try:
        # Click raises SystemExit at the end of a command.
        cli(prog_name="spack-cache-db")
    except OSError as error:
        # It ends the process if standard output is full; any other error is a bug.
        end_full(error)
        if TRACEBACK in os.environ:
            raise
        if not _has_current_folder():
            message = (
                "the current folder does not exist any more: change to another one"
            )
            CommandError(message).show()
            raise SystemExit(2) from None
        CommandError(printable(unexpected(error)), status=1).show()
        raise SystemExit(1) from None
    raise SystemExit(0)
