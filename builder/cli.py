"""The command line. Only this module knows Click."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from .build import Report
from .build import build as build_database
from .build import check as check_pages
from .cli_find import find
from .errors import BuilderError, InputError
from .info import describe
from .serve import datasette_command
from .serve import site as prepared_site
from .sources import DEFAULT_MAX_PAGE_SIZE

F = TypeVar("F", bound=Callable[..., Any])


class _ByteSize(click.ParamType[int]):
    """Bytes, with an optional K, M or G (powers of 1024)."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        number, unit = str(value)[:-1], str(value)[-1:].upper()
        factor = {"K": 2**10, "M": 2**20, "G": 2**30}.get(unit)
        digits = number if factor else str(value)
        if not digits.isdecimal() or int(digits) < 1:
            self.fail(f"{value!r} is no size, expected bytes such as 500000, 64M or 1G", param, ctx)
        return int(digits) * (factor or 1)


def _input_options(command: F) -> F:
    """Add what `build` and `check` share."""
    for option in (
        click.argument("paths", nargs=-1, required=True, metavar="PATH..."),
        click.option(
            "--jobs",
            type=click.IntRange(1),
            default=lambda: os.cpu_count() or 1,
            show_default="the machine's cores",
            help="Processes that read pages.",
        ),
        click.option(
            "--max-page-size",
            type=_ByteSize(),
            default=DEFAULT_MAX_PAGE_SIZE,
            show_default="64M",
            help="Refuse larger pages (bytes, or 64M, 1G).",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the report as JSON."),
    ):
        command = option(command)
    return command


class _Group(click.Group):
    """A group whose commands' errors are messages and exit status 1, never tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            click.echo(str(error), err=True)
            count = _count(len(error.faults), "fault")
            raise click.ClickException(
                f"{count} in the input, nothing was written. "
                "Mend the pages, or build the good ones with --keep-going."
            ) from None
        except BuilderError as error:
            raise click.ClickException(str(error)) from None


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spack-cache-db")
def cli() -> None:
    """Turn Spack build-cache pages into one SQLite file, and serve it with Datasette."""


cli.add_command(find)


@cli.command()
@_input_options
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The database to write; replaced only by a whole one.",
)
@click.option(
    "--keep-going", is_flag=True, help="Build the good pages, record the rest in problems."
)
def build(
    paths: tuple[str, ...],
    output: Path,
    jobs: int,
    max_page_size: int,
    keep_going: bool,
    as_json: bool,
) -> None:
    """Build a database from PATHs: pages, folders of pages, or .tar(.gz|.zst) and .zip archives.

    Example: spack-cache-db build pages/ -o dist/spack-cache.db
    """
    with _Bar() as progress:
        report = build_database(
            paths,
            output,
            jobs=jobs,
            keep_going=keep_going,
            max_page_size=max_page_size,
            progress=progress,
        )
    for fault in report.faults:
        click.echo(str(fault), err=True)
    if as_json:
        click.echo(json.dumps({**report.as_dict(), "output": str(output)}, indent=2))
    else:
        click.echo(_totals(report, output))


@cli.command()
@_input_options
def check(paths: tuple[str, ...], jobs: int, max_page_size: int, as_json: bool) -> None:
    """Say what is wrong with PATHs without building: faults (exit status 1) and problems."""
    with _Bar() as progress:
        faults, problems = check_pages(
            paths, jobs=jobs, max_page_size=max_page_size, progress=progress
        )
    if as_json:
        report = {"faults": [*map(str, faults)], "problems": [*map(str, problems)]}
        click.echo(json.dumps(report, indent=2))
    else:
        for problem in problems:
            click.echo(str(problem))
        for fault in faults:
            click.echo(str(fault), err=True)
        click.echo(f"{_count(len(faults), 'fault')}, {_count(len(problems), 'problem')}")
    sys.exit(1 if faults else 0)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def info(file: Path, as_json: bool) -> None:
    """Say what is in FILE, from where, and its schema version."""
    described = describe(file)
    if as_json:
        click.echo(json.dumps(described, indent=2))
        return
    width = max(map(len, described))
    for name, value in described.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {count:,}" for key, count in value.items())
        text = f"{value:,}" if isinstance(value, int) else ("-" if value is None else value)
        click.echo(f"{name.replace('_', ' '):<{width}}  {text}")


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Port to listen on.",
)
@click.option("--no-sql", is_flag=True, help="Refuse SQL that visitors type; canned queries stay.")
def serve(file: Path, host: str, port: int, no_sql: bool) -> None:
    """Serve FILE with Datasette, read-only, until interrupted."""
    with prepared_site(file) as folder:
        command = datasette_command(folder, host=host, port=port, sql=not no_sql)
        sys.exit(_run(command))


def _run(command: list[str]) -> int:
    """Run a command to its end; what ends this process ends that one."""
    process = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            return max(process.wait(), 0)
        except KeyboardInterrupt:
            continue


class _Bar:
    """A progress bar on a terminal, nothing in a pipe. Gives the function that moves it."""

    def __enter__(self) -> Callable[[int, int], None] | None:
        self._bar: Any = None
        return self._move if sys.stderr.isatty() else None

    def _move(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = click.progressbar(length=total, label="Reading", file=sys.stderr)
            self._bar.__enter__()
        self._bar.update(done - self._bar.pos)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*error)


def _totals(report: Report, output: Path) -> str:
    counted = ", ".join(
        _count(number, word)
        for number, word in (
            (report.pages, "page"),
            (report.listings, "listing"),
            (report.specs, "spec"),
            (report.configurations, "configuration"),
            (report.problems, "problem"),
        )
    )
    return f"{output}: {counted}, {report.file_size / 1e6:.1f} MB in {report.seconds:.1f} s"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def main() -> NoReturn:
    """Run the command."""
    cli(prog_name="spack-cache-db")
    raise SystemExit(0)
