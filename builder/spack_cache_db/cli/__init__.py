"""The command line: one module a command, loaded when it is called. Click is known here alone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NoReturn

import click

from spack_cache_db.cli.stopping import end_full, heed_signals
from spack_cache_db.errors import BuilderError, InputError, printable

COMMANDS: Mapping[str, str | None] = {
    "build": "build",
    "check": "build",
    "cover": None,
    "fetch": "fetch",
    "find": None,
    "info": None,
    "serve": "site",
    "site": None,
    "verify": "build",
}
"""The commands, with the extra of `pyproject.toml` that each needs.

Each command is the function of that name in the module of that name.
"""


class _Group(click.Group):
    """Loads a command when it is called; errors are messages and exit status 1, no tracebacks."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, if there is one."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"{__name__}.{cmd_name}"), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and say what went wrong."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            # Click quotes what was given as it is: names of files, as a shell lists them.
            raise click.UsageError(printable(error.format_message()), error.ctx) from None
        except InputError as error:
            click.echo(str(error), err=True)
            count = len(error.faults)
            said = f"{count} fault{'' if count == 1 else 's'} in the input"
            if ctx.invoked_subcommand == "build":
                said += ", nothing was written. Mend it, or build what is good with --keep-going."
            raise click.ClickException(said) from None
        except BuilderError as error:
            raise click.ClickException(printable(str(error))) from None
        except ModuleNotFoundError as error:
            extra = COMMANDS.get(ctx.invoked_subcommand or "")
            if extra is None:
                raise
            raise click.ClickException(
                f"{ctx.invoked_subcommand} needs {error.name}, which is not installed; "
                f"install it with: pip install 'spack-cache-db[{extra}]'"
            ) from None


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spack-cache-db")
def cli() -> None:
    """Turn pages and indexes of Spack build caches into one SQLite file, and serve it."""


def main() -> NoReturn:
    """Run the command."""
    heed_signals()
    try:
        cli(prog_name="spack-cache-db")
    except OSError as error:
        end_full(error)
        raise
    raise SystemExit(0)
