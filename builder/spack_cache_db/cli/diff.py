"""The command `diff`: what changed between two releases, or two databases."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spack_cache_db.cli.databases import file_argument, names_in_file, opened
from spack_cache_db.cli.diff_specs import print_spec_diff
from spack_cache_db.cli.diff_texts import COLOURS, cases, markdown, text
from spack_cache_db.cli.forms import form_of, say_notes
from spack_cache_db.cli.junit import write_junit
from spack_cache_db.cli.options import junit_option, shared_options
from spack_cache_db.cli.parameters import flag, value_option
from spack_cache_db.cli.tables import print_answer

if TYPE_CHECKING:
    from spack_cache_db.query.answers.diff_databases import DatabaseDiff
    from spack_cache_db.query.answers.diff_result import Diff

_NARROWING = ("package", "stack", "target", "host")
"""The options that narrow the comparison to some binaries."""


def _not_a_database(ctx: click.Context, parameter: click.Parameter, new: str) -> str:
    """Return the argument NEW; raise UsageError if it is a database and should not be.

    Without it, the message would be on FILE, which is not what is wrong.
    """
    if ctx.resilient_parsing or ctx.params.get("databases") or not _is_database(new):
        return new
    if _is_database(ctx.params["old"]):
        raise click.UsageError(
            "OLD and NEW are databases: compare them with --databases"
        )
    raise click.UsageError(f"Missing argument 'NEW': {new} is the database")


def _is_database(word: str) -> bool:
    """Return whether a word of the command line is the path of a database."""
    from spack_cache_db.database_file import is_database

    # A word may be too long for a path: unlike `Path.is_file`, this does not raise.
    return os.path.isfile(word) and is_database(Path(word))  # noqa: PTH113


@click.command()
@click.argument("old", shell_complete=names_in_file)
@click.argument("new", shell_complete=names_in_file, callback=_not_a_database)
@file_argument
@flag(
    "--databases", "OLD and NEW are databases; compare their releases.", is_eager=True
)
@value_option(
    "--release",
    "NAME",
    "With --databases: only this release.",
    shell_complete=names_in_file,
)
@value_option("--package", "NAME", "Only this package.")
@shared_options("stack", "target", "host", "json", "csv", "markdown")
@junit_option
def diff(old: str, new: str, file: Path, **options: Any) -> None:
    """Show what changed between two releases, or two databases.

    OLD and NEW are releases, or stacks of a release, such as develop:e4s. With
    --databases, they are databases without FILE: each release that both have is
    compared. If both have a slash, they are hashes, such as /2feova4 or hdf5/2feova4:
    the two binaries are compared, with their dependencies.

    Configurations in both releases are grown (gained hashes), shrunk (lost hashes) or
    rebuilt (both). If FILE was built from indexes or mirrors, the report names the
    dependencies that caused the rebuilds. Between two installations, or two stacks of a
    release, nothing is removed or added: the report says which side has what.

    Exit status: 0 if nothing changed, 1 if something did or neither side has a binary,
    2 for an error.

    Example: spack-cache-db diff develop-2025-04-20 develop dist/spack-cache.db
    """
    from spack_cache_db.query.answers.diff_databases import diff_databases

    form = form_of(options)
    narrowing = {name: options[name] for name in _NARROWING}
    # No name of a release or a stack has a slash.
    if "/" in old and "/" in new and not options["databases"]:
        _check_options_of_hashes(options)
        print_spec_diff(file, old, new, options)

    # Two releases are printed as two databases with one release, but their JSON and CSV
    # are those of the release alone.
    result: Diff | DatabaseDiff
    if options["databases"]:
        source = click.get_current_context().get_parameter_source("file")
        # A database that the environment names does not count.
        if source is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                "--databases compares two databases: OLD and NEW, without FILE"
            )
        databases = diff_databases(
            Path(old), Path(new), release=options["release"], **narrowing
        )
        result = databases
    elif options["release"]:
        raise click.UsageError("--release goes with --databases only")
    else:
        result = _release_diff(file, old, new, narrowing)
        databases = _as_databases(old, new, result)

    is_compared = _has_binaries(databases)
    if not is_compared:
        sides = f"neither {result.old} nor {result.new}"
        say_notes([f"{sides} has such a binary, so nothing is compared"])
    elif result.is_empty and form:
        # The table has these sentences itself.
        say_notes(release.sentence for release in databases.releases.values())
    if options["junit"]:
        write_junit(options["junit"], "diff", cases(databases))
    print_answer(
        options,
        lambda: result.rows,
        text(databases),
        value=result.as_dict,
        markdown=markdown(databases),
        colours=COLOURS,
    )
    sys.exit(0 if result.is_empty and is_compared else 1)


def _check_options_of_hashes(options: dict[str, Any]) -> None:
    """Raise UsageError for an option that two hashes do not have."""
    for name in (*_NARROWING, "release", "junit"):
        if options[name]:
            raise click.UsageError(f"--{name} goes with releases, not with hashes")


def _release_diff(
    file: Path, old: str, new: str, narrowing: dict[str, str | None]
) -> Diff:
    """Return the difference of two releases, with notes on names that are respelled."""
    from spack_cache_db.query.answers.diff import diff as compared
    from spack_cache_db.query.names.spellings import read_spellings

    with opened(file) as lookups:
        names = (("side", old), ("side", new), *narrowing.items())
        say_notes(read_spellings(lookups).notes(names))
    return compared(file, old, new, **narrowing)


def _as_databases(old: str, new: str, release_diff: Diff) -> DatabaseDiff:
    """Return a difference of two databases that both have only this release."""
    from spack_cache_db.query.answers.diff_databases import DatabaseDiff
    from spack_cache_db.query.answers.diff_result import Delta

    no_names: Delta[str] = Delta((), ())
    return DatabaseDiff(old, new, {release_diff.new: release_diff}, no_names)


def _has_binaries(databases: DatabaseDiff) -> bool:
    """Return whether one side has a release of its own, or a binary in a common one."""
    if any(databases.names):
        return True
    return any(any(release.specs) for release in databases.releases.values())
