"""The command `cover`: an environment in, its specs with and without a binary out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.input import GivenPath
from spack_cache_db.cli.scope import fail, say_notes, scope_names, scope_options
from spack_cache_db.cli.terminal import is_terminal, printable_json, printable_values, width
from spack_cache_db.environments.formats import MAX_BYTES, read_environment
from spack_cache_db.errors import BuilderError
from spack_cache_db.query.cover.output import as_csv, as_json, as_markdown, as_table
from spack_cache_db.query.cover.records import Cover
from spack_cache_db.query.cover.steps import cover_environment, read_file
from spack_cache_db.query.find import scope_of
from spack_cache_db.query.lookups import read_lookups
from spack_cache_db.query.open import connected


@click.command()
@click.argument("environment", type=GivenPath(), metavar="ENVIRONMENT")
@click.argument("file", type=GivenPath(path_type=Path))
@scope_options
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@click.option("--csv", "as_csv_", is_flag=True, help="Print as CSV.")
@click.option("--markdown", "as_markdown_", is_flag=True, help="Print as a table in Markdown.")
def cover(environment: str, file: Path, **options: Any) -> None:
    """Say which specs of ENVIRONMENT have a binary in FILE.

    ENVIRONMENT is a spack.yaml, a spack.lock, or a list of one spec a line; - reads standard input.
    Exit status 0 if all have one, 1 if some lack one, 2 for an error.

    Example: spack-cache-db cover spack.yaml dist/spack-cache.db --release develop
    """
    forms = [name for name in ("as_json_", "as_csv_", "as_markdown_") if options[name]]
    if len(forms) > 1:
        fail("--json, --csv and --markdown exclude each other: give one of them")
    try:
        if environment == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
            read = read_environment(data, "standard input")
        else:
            read = read_file(Path(environment))
        names = scope_names(options)
        with connected(file) as conn:
            lookups = read_lookups(conn)
            found = cover_environment(conn, lookups, read, scope_of(lookups, **names))
    except BuilderError as error:
        fail(str(error))
    say_notes(found.notes)
    _print(found, options)
    sys.exit(0 if found.binary == found.total else 1)


def _print(found: Cover, options: dict[str, Any]) -> None:
    if options["as_json_"]:
        click.echo(printable_json(as_json(found)))
    elif options["as_csv_"]:
        shown = printable_values(found) if is_terminal() else found
        click.echo(as_csv(shown), nl=False, color=True)
    elif options["as_markdown_"]:
        click.echo(as_markdown(printable_values(found)))
    else:
        click.echo(as_table(printable_values(found), width()))
