"""The options that several commands share: the database, the input, output formats, filters."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from spack_cache_db.cli.terminal import say_notes
from spack_cache_db.errors import DatabaseError
from spack_cache_db.machine import this_machine
from spack_cache_db.query.connection import opened
from spack_cache_db.sources import DEFAULT_MAX_PAGE_SIZE, is_database

F = TypeVar("F", bound=Callable[..., Any])


class ByteSize(click.ParamType[int]):
    """Bytes, with an optional K, M or G (powers of 1024)."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number of bytes."""
        if isinstance(value, int):
            return value
        number, unit = str(value)[:-1], str(value)[-1:].upper()
        factor = {"K": 2**10, "M": 2**20, "G": 2**30}.get(unit)
        digits = number if factor else str(value)
        if not digits.isdecimal() or int(digits) < 1:
            self.fail(
                f"{value!r} is not a size, expected bytes such as 500000, 64M or 1G", param, ctx
            )
        return int(digits) * (factor or 1)


class GivenPath(click.Path):
    """A path of at least one character: an empty one is a variable of a script that is not set."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path."""
        if value == "":
            self.fail("it is empty, expected a path", param, ctx)
        return super().convert(value, param, ctx)


def file_argument(command: F) -> F:
    """Add FILE, a database; it may be left out where there is only one."""
    return click.argument(
        "file",
        type=GivenPath(path_type=Path),
        required=False,
        envvar="SPACK_CACHE_DB",
        callback=_database,
    )(command)


def _database(ctx: click.Context, parameter: click.Parameter, given: Path | None) -> Path | None:
    """Return the database that is given, or the only one of this program in `dist/` or here."""
    if given is not None or ctx.resilient_parsing:
        return given
    here = (path for folder in ("dist", ".") for path in sorted(Path(folder).glob("*.db")))
    found = [path for path in here if is_database(path)]
    if len(found) != 1:
        seen = f"there are {len(found)}" if found else "there is none"
        raise click.UsageError(
            f"Missing argument 'FILE': {seen} in dist/ and the current folder. "
            "Give the path of a database, or set SPACK_CACHE_DB.",
            ctx,
        )
    return found[0]


def json_option(command: F) -> F:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def csv_option(command: F) -> F:
    """Add `--json` and `--csv`."""
    return json_option(click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")(command))


def markdown_option(command: F) -> F:
    """Add `--json`, `--csv` and `--markdown`."""
    return csv_option(
        click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown.")(command)
    )


def rows_options(command: F) -> F:
    """Add `--json`, `--csv` and `--all`: see `terminal.print_rows`."""
    return csv_option(all_option(command))


def all_option(command: F) -> F:
    """Add `--all`."""
    return click.option("--all", "every", is_flag=True, help="Show all rows; a terminal shows 50.")(
        command
    )


def input_options(command: F) -> F:
    """Add what `build`, `check` and `verify` share."""
    for option in (
        click.argument("paths", nargs=-1, type=GivenPath(), metavar="PATH...", callback=_given),
        json_option,
        click.option(
            "--max-page-size",
            type=ByteSize(),
            default=f"{DEFAULT_MAX_PAGE_SIZE >> 20}M",
            show_default=True,
            help="Refuse larger pages (bytes, or 64M, 1G).",
        ),
        click.option(
            "--jobs",
            type=click.IntRange(1),
            metavar="N",
            default=lambda: os.cpu_count() or 1,
            show_default="number of cores",
            help="Number of processes that read the input.",
        ),
        click.option(
            "--stack", metavar="NAME", help="Stack of the indexes and mirrors; else their folder."
        ),
        click.option(
            "--release",
            metavar="NAME",
            help="Release of the indexes and mirrors; else their folder.",
        ),
    ):
        command = option(command)
    return command


def _given(
    ctx: click.Context, parameter: click.Parameter, paths: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the paths; there is at least one, unless `build --example` names its own."""
    if not paths and not ctx.params.get("example"):
        raise click.MissingParameter(ctx=ctx, param=parameter)
    return paths


_NARROWING = {
    "release": ("NAME", "Only binaries in this release."),
    "stack": ("NAME", "Only binaries in this stack."),
    "target": ("CPU", "Only binaries built for this CPU, such as x86_64_v3."),
    "host": ("CPU", "Only binaries that run on this CPU, such as zen3."),
}


def narrowing_options(*names: str) -> Callable[[F], F]:
    """Add options that narrow an answer to what a file has, each completed in a shell."""

    def add(command: F) -> F:
        for name in reversed(names):
            metavar, text = _NARROWING[name]
            command = click.option(
                f"--{name}", metavar=metavar, help=text, shell_complete=names_in_file
            )(command)
        return command

    return add


def scope_options(command: F) -> F:
    """Add what `find` and `cover` share: what narrows an answer."""
    here = click.option("--here", is_flag=True, help="Only binaries that run on this machine.")
    return narrowing_options("release", "stack", "host")(here(command))


def spack_option(command: F) -> F:
    """Add `--spack`: how specs are read."""
    return click.option(
        "--spack", metavar="VERSION", help="Read specs as this version of Spack does, such as 0.23."
    )(command)


def names_in_file(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the releases, stacks or targets that begin so, for completion in a shell.

    They are those of the file before this word, or else of `spack-cache.db` in this folder.
    """
    # An option that lacks its value ends Click's parsing: arguments are still in `args` then.
    typed = [ctx.params.get("file"), *reversed(ctx.args), "spack-cache.db"]
    file = next((Path(each) for each in typed if each and Path(each).is_file()), None)
    if file is None:
        return []
    try:
        with opened(file) as lookups:
            names = {
                "stack": [each.name for each in lookups.stacks.values()],
                "host": sorted(lookups.families),
                "target": sorted(lookups.families),
            }
            releases = [each.name for each in lookups.releases.values()]
    except DatabaseError:
        return []
    return [name for name in names.get(str(parameter.name), releases) if name.startswith(begun)]


def scope_names(options: dict[str, Any]) -> dict[str, str | None]:
    """Return the names that narrow an answer, as Python takes them; say what this machine is."""
    found = {name: options[name] for name in ("release", "stack", "host")}
    if not options["here"]:
        return found
    if options["host"]:
        raise click.UsageError("--here and --host exclude each other: give one of them")
    machine = this_machine()
    known = ", ".join(value for value in (machine.target, machine.os, machine.platform) if value)
    unknown = "".join(f"; {each}: any operating system is shown" for each in machine.unknown)
    say_notes([f"this machine is {known}{unknown}"])
    return found | {"host": machine.target, "os": machine.os, "platform": machine.platform}
