"""The database that a command reads: its argument FILE, and how it is opened.

FILE may be left out. Then the environment variable `SPACK_CACHE_DB` names the database,
or it is the only one in `dist/` and the current folder.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spack_cache_db.cli.parameters import F, GivenPath
from spack_cache_db.errors import DatabaseError

if TYPE_CHECKING:
    from spack_cache_db.query.open.lookups import Lookups

FILE_VARIABLE = "SPACK_CACHE_DB"
"""The environment variable with the path of the default database."""

_SEARCHED = ("dist", ".")
"""The folders in which the only database is the default one."""


def file_argument(command: F) -> F:
    """Add the argument FILE, a database, which may be left out."""
    return click.argument(
        "file",
        type=GivenPath(path_type=Path),
        required=False,
        envvar=FILE_VARIABLE,
        callback=_given_or_only,
    )(command)


def _given_or_only(
    ctx: click.Context, parameter: click.Parameter, file: Path | None
) -> Path | None:
    """Return the path that was given, or that of the only database."""
    return file or only_database(ctx)


def only_database(ctx: click.Context) -> Path | None:
    """Return the only database in `dist/` and the current folder.

    None if the command needs no FILE: while a shell completes a word, and for
    `diff --databases`.

    Raises:
        UsageError: there is none, or there are several.
    """
    # Click sets `resilient_parsing` while a shell completes a word.
    if ctx.resilient_parsing or ctx.params.get("databases"):
        return None
    from spack_cache_db.database_file import is_database

    databases = []
    for folder in _SEARCHED:
        for path in sorted(Path(folder).glob("*.db")):
            if is_database(path):
                databases.append(path)
    if len(databases) != 1:
        count = f"there are {len(databases)}" if databases else "there is none"
        raise click.UsageError(
            f"Missing argument 'FILE': {count} in dist/ and the current folder. "
            f"Give the path of a database, or set {FILE_VARIABLE}.",
            ctx,
        )
    return databases[0]


def opened(file: Path) -> AbstractContextManager[Lookups]:
    """Open a database, and return its small tables as a context.

    The function of this name in `query` is imported late, because it is slow to import.
    """
    from spack_cache_db.query.open.lookups import opened

    return opened(file)


def names_in_file(
    ctx: click.Context, parameter: click.Parameter, begun: str
) -> list[str]:
    """Return names of a database that a shell offers for a word.

    These are releases, stacks, targets, maintainers or tags, depending on the option
    or argument. The database is a file that was typed before the word, or else
    `spack-cache.db` in the current folder.

    Args:
        ctx: the command.
        parameter: the option or argument to which the word belongs.
        begun: the beginning of the word.
    """
    # Click stops parsing at an option without a value, and leaves the arguments that it
    # has not read in `args`; the last one is nearest to the word.
    typed = [ctx.params.get("file"), *reversed(ctx.args), "spack-cache.db"]
    files = [Path(word) for word in typed if word and Path(word).is_file()]
    if not files:
        return []
    try:
        with opened(files[0]) as lookups:
            names = _names(lookups, parameter.name)
    except DatabaseError:
        return []
    return [name for name in names if name.startswith(begun)]


def _names(lookups: Lookups, parameter: str | None) -> list[str]:
    """Return the stacks, targets, maintainers or tags of a database for the options of
    these names.

    All others take a release: --release, and the arguments OLD and NEW of `diff`.
    """
    if parameter == "stack":
        return [stack.name for stack in lookups.stacks.values()]
    from spack_cache_db.query.stored.recipe_facts import packages_with

    if parameter in ("maintainer", "tag"):
        return list(packages_with(lookups, parameter))
    if parameter in ("host", "target"):
        return sorted(lookups.families)
    return [release.name for release in lookups.releases.values()]
