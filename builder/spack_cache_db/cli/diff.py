"""The command `diff`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.options import (
    file_argument,
    markdown_option,
    names_in_file,
    narrowing_options,
)
from spack_cache_db.cli.row_output import Forms, form_of, print_answer
from spack_cache_db.errors import printable
from spack_cache_db.query.difference import Diff
from spack_cache_db.query.difference import diff as compare
from spack_cache_db.query.difference_output import as_csv, as_json, as_markdown, as_text

_COLOURS = {"removed": "red", "added": "green", "rebuilt": "yellow"}


def _printable(write: Callable[[Diff], str]) -> Callable[[Diff], str]:
    """Return a function whose text is printable; of a difference, it shows few of the values."""
    return lambda found: "\n".join(map(printable, write(found).split("\n")))


_FORMS = Forms(_printable(as_text), as_json, as_csv, _printable(as_markdown), _COLOURS)


@click.command()
@click.argument("old", shell_complete=names_in_file)
@click.argument("new", shell_complete=names_in_file)
@file_argument
@click.option("--package", metavar="NAME", help="Only this package.")
@narrowing_options("stack", "target", "host")
@markdown_option
def diff(
    old: str,
    new: str,
    file: Path,
    package: str | None,
    stack: str | None,
    target: str | None,
    host: str | None,
    **options: Any,
) -> None:
    """Show what changed between two releases.

    OLD and NEW are releases, or stacks of a release: develop:e4s.

    A configuration is rebuilt if both releases have it with different hashes. FILE must be built
    from indexes or mirrors to show why.

    Exit status: 0 if nothing changed, 1 if something did, 2 for an error.

    Example: spack-cache-db diff develop-2025-04-20 develop dist/spack-cache.db
    """
    form_of(options)
    found = compare(file, old, new, package=package, stack=stack, target=target, host=host)
    print_answer(found, _FORMS, options)
    sys.exit(0 if found.is_empty else 1)
