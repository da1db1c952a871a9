"""The command `diff`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.options import csv_option, file_argument, json_option, names_in_file
from spack_cache_db.cli.terminal import fail, printable_json, say
from spack_cache_db.errors import BuilderError
from spack_cache_db.query import difference_output
from spack_cache_db.query.difference import diff as compare

FORMATS = ("json", "csv", "markdown")


@click.command()
@click.argument("old", shell_complete=names_in_file)
@click.argument("new", shell_complete=names_in_file)
@file_argument
@click.option("--stack", help="Only what is in this stack.", shell_complete=names_in_file)
@click.option("--package", help="Only this package.")
@click.option(
    "--target",
    metavar="CPU",
    help="Only what was built for this CPU, such as x86_64_v3.",
    shell_complete=names_in_file,
)
@click.option(
    "--host",
    metavar="CPU",
    help="Only what runs on this CPU, such as zen3.",
    shell_complete=names_in_file,
)
@json_option
@csv_option
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown for release notes.")
def diff(old: str, new: str, file: Path, **options: Any) -> None:
    """Show what changed between two releases.

    OLD and NEW are releases, or stacks of a release: develop:e4s.

    A configuration is rebuilt if both releases have it with different hashes. FILE must be built
    from indexes or mirrors to show why.

    Exit status: 0 if nothing changed, 1 if something did, 2 for an error.

    Example: spack-cache-db diff develop-2025-04-20 develop dist/spack-cache.db
    """
    given = [name for name in FORMATS if options.pop(f"as_{name}")]
    if len(given) > 1:
        fail("--json, --csv and --markdown exclude each other: give one of them")
    try:
        found = compare(file, old, new, **options)
    except BuilderError as error:
        fail(str(error))
    match given:
        case ["json"]:
            click.echo(printable_json(difference_output.as_json(found)))
        case ["csv"]:
            # Click would take escape sequences out of what goes into a pipe: here they are data.
            click.echo(difference_output.as_csv(found), nl=False, color=True)
        case _:
            text = (
                difference_output.as_markdown(found) if given else difference_output.as_text(found)
            )
            for line in text.split("\n"):
                say(line)
    sys.exit(0 if found.is_empty else 1)
