"""The command `retention`, and what it prints for people."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.cover import checked_retention, environment_paths, read_cover
from spack_cache_db.cli.options import (
    GivenPath,
    file_argument,
    flag,
    opened,
    shared_options,
    value_option,
)
from spack_cache_db.cli.output import form_of, print_json, print_rows, say
from spack_cache_db.errors import counted

if TYPE_CHECKING:
    from spack_cache_db.query.retention import Retention

_RULES = ("environment", "newest", "newer_than", "stack")


@click.command()
@file_argument
@click.option(
    "--environment",
    type=GivenPath(),
    multiple=True,
    metavar="PATH",
    help="Keep what an environment needs, or each environment of a folder. Repeatable.",
)
@click.option(
    "--newest",
    type=click.IntRange(1),
    metavar="N",
    help="Keep the newest N versions of each package.",
)
@value_option(
    "--newer-than",
    "DATE|DAYS",
    "Keep snapshots from this day on, or of the last DAYS days before the newest snapshot, and all "
    "releases without a date.",
)
@value_option("--stack", "NAME", "Keep the binaries in this stack. Repeatable.", multiple=True)
@value_option("--release", "NAME", "Release of the mirror, if the database has several releases.")
@flag("--keeplist", "Print the hashes that are kept, for `spack buildcache prune --keeplist`.")
@flag("--allow-missing", "Print the answer even if some specs of an environment are not kept.")
@shared_options("json", "csv", "all")
def retention(file: Path, release: str | None, **options: Any) -> None:
    """Show which binaries of a mirror can be pruned.

    A binary is kept if one of the rules --environment, --newest, --newer-than and --stack keeps it,
    or if a kept binary needs it at run time. FILE is a database of the mirror. Nothing is deleted.

    Exit status: 0 if all that is needed is kept, 1 if not, 2 for an error. Nothing is printed if
    nothing keeps some specs of an environment.

    Example: spack-cache-db retention dist/spack-cache.db --newest 2 --environment envs/
    """
    from spack_cache_db.query.names import scope_of

    form, allow_missing = form_of(options, "keeplist"), options["allow_missing"]
    if not any(options[name] for name in _RULES):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in _RULES)
        raise click.UsageError(f"no rule keeps a binary: give one or more of {names}")
    since = options["newer_than"]
    days = int(since) if since and since.isdecimal() and len(since) < len("20261125") else since
    reading = {"spack": None, "strict": not allow_missing}
    with opened(file) as lookups:
        scope = scope_of(lookups, release)
        covered = [
            read_cover(lookups, path, scope, {"release": release}, reading)
            for environment in options["environment"]
            for path in environment_paths(environment)[1]
        ]
        rules = options["newest"], days, options["stack"]
        result = checked_retention(lookups, covered, scope, *rules, allow_missing=allow_missing)
    if form == "keeplist":
        click.echo("\n".join(result.keep))
    elif form == "json":
        print_json(result.as_dict())
    else:
        if form is None:
            say(_totals(result))
        print_rows(result.rows, options, "")
    sys.exit(1 if result.missing and not allow_missing else 0)


def _totals(result: Retention) -> str:
    """Return a line with the number of binaries that each rule keeps, and the freed size."""
    reasons = Counter(binary.reason for binary in result.binaries if binary.reason)
    texts = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
    keep, prune = (
        counted(len(binaries), "binary", "binaries") for binaries in (result.keep, result.prune)
    )
    freed = f", which frees {result.freed_bytes / 1e6:,.1f} MB" if result.freed_bytes else ""
    unknown = counted(result.unknown_sizes, "size is", "sizes are")
    more = f"; {unknown} unknown" if result.unknown_sizes else ""
    return f"keep {keep} ({texts}); prune {prune}{freed}{more}"
