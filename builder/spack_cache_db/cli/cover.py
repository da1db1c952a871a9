"""The command `cover`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.options import (
    GivenPath,
    csv_option,
    file_argument,
    json_option,
    scope_names,
    scope_options,
    spack_option,
)
from spack_cache_db.cli.terminal import (
    fail,
    is_terminal,
    printable_json,
    printable_values,
    say_notes,
    width,
)
from spack_cache_db.environment_files import read_environment_file, surroundings
from spack_cache_db.environments.environment import Environment
from spack_cache_db.environments.formats import MAX_BYTES, read_environment
from spack_cache_db.errors import BuilderError
from spack_cache_db.machine import this_machine
from spack_cache_db.query.answers import scope_of
from spack_cache_db.query.connection import connected
from spack_cache_db.query.coverage import cover_environment
from spack_cache_db.query.coverage_output import (
    OF_NODES,
    STATUSES,
    Cover,
    cover_csv,
    cover_json,
    cover_markdown,
    cover_table,
)
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.spack.legacy_specs import Parser, parser_of


@click.command()
@click.argument("environment", type=GivenPath(), metavar="ENVIRONMENT")
@file_argument
@scope_options
@spack_option
@json_option
@csv_option
@click.option("--markdown", "as_markdown", is_flag=True, help="Write a Markdown table.")
@click.option(
    "--only",
    type=click.Choice([*STATUSES, *OF_NODES]),
    multiple=True,
    help="Show only specs with this status. Can be given several times.",
)
@click.option("--strict", is_flag=True, help="Fail if an included file is not here.")
def cover(environment: str, file: Path, **options: Any) -> None:
    """Show which specs of an environment have a binary.

    ENVIRONMENT is a spack.yaml, a spack.lock, or a list with one spec on each line; use - for
    standard input. Files that a spack.yaml includes are read, too. FILE is a database.

    The exit status is 0 if every spec has a binary, 1 if some have none, 2 for an error.

    Example: spack-cache-db cover spack.yaml dist/spack-cache.db --release develop
    """
    forms = [name for name in ("as_json", "as_csv", "as_markdown") if options[name]]
    if len(forms) > 1:
        fail("--json, --csv and --markdown exclude each other: give one of them")
    try:
        names = scope_names(options)
        parse = parser_of(options["spack"])
        read = _read(environment, names["host"], parse, is_strict=options["strict"])
        with connected(file) as conn:
            lookups = read_lookups(conn)
            found = cover_environment(conn, lookups, read, scope_of(lookups, **names))
    except BuilderError as error:
        fail(str(error))
    say_notes(found.notes)
    _print(replace(found, only=options["only"]), options)
    sys.exit(0 if found.binary == found.total else 1)


def _read(path: str, host: str | None, parse: Parser, *, is_strict: bool) -> Environment:
    """Return what an environment asks for, where its conditions ask for this machine or `host`."""
    machine = this_machine()
    machine = replace(machine, target=host or machine.target)
    if path != "-":
        return read_environment_file(Path(path), machine, parse, is_strict=is_strict)
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    around = surroundings(Path(), machine, parse, is_strict=is_strict)
    return read_environment(data, "standard input", surroundings=around)


def _print(found: Cover, options: dict[str, Any]) -> None:
    if options["as_json"]:
        click.echo(printable_json(cover_json(found)))
    elif options["as_csv"]:
        shown = printable_values(found) if is_terminal() else found
        click.echo(cover_csv(shown), nl=False, color=True)
    elif options["as_markdown"]:
        click.echo(cover_markdown(printable_values(found)))
    else:
        click.echo(cover_table(printable_values(found), width()))
