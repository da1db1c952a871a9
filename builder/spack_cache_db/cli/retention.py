"""The command `retention`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.forms import form_of, print_json, say, say_notes
from spack_cache_db.cli.options import (
    GivenPath,
    file_argument,
    flag,
    opened,
    shared_options,
    value_option,
)
from spack_cache_db.cli.tables import print_rows
from spack_cache_db.errors import counted

if TYPE_CHECKING:
    from spack_cache_db.query.answers.retention import Retention


_RULES = ("environment", "newest", "newer_than", "keep_stack")
"""The options of `retention` that keep binaries."""


@click.command()
@file_argument
@value_option(
    "--environment",
    "PATH",
    "Keep what an environment needs, or each environment of a folder. Repeatable.",
    type=GivenPath(),
    multiple=True,
)
@value_option(
    "--newest",
    "N",
    "Keep the newest N versions of each package.",
    type=click.IntRange(1),
)
@value_option(
    "--newer-than",
    "DATE|DAYS",
    "Keep snapshots from this day on, or of the last DAYS days before the newest snapshot, and all "
    "releases without a date.",
)
@value_option(
    "--keep-stack",
    "NAME",
    "Keep the binaries in this stack. Repeatable.",
    multiple=True,
)
@value_option(
    "--release", "NAME", "Release of the mirror, if the database has several releases."
)
@value_option("--stack", "NAME", "Only binaries in this stack of the mirror.")
@flag(
    "--keeplist",
    "Print the hashes that are kept, for `spack buildcache prune --keeplist`.",
)
@flag(
    "--allow-missing",
    "Print the answer even if some specs of an environment are not kept.",
)
@shared_options("json", "csv", "all")
def retention(
    file: Path, release: str | None, stack: str | None, **options: Any
) -> None:
    """Show which binaries of a mirror can be pruned.

    A binary is kept if one of the rules --environment, --newest, --newer-than and
    --keep-stack keeps it, or if a kept binary needs it at run time. FILE is a database
    of the mirror. Nothing is deleted.

    Exit status: 0 if every needed binary is kept, 1 if not, 2 for an error. Without
    --allow-missing, nothing is printed if a spec of an environment has no binary.

    Example: spack-cache-db retention dist/spack-cache.db --newest 2 --environment envs/
    """
    from spack_cache_db.cli.cover import (
        checked_retention,
        environment_paths,
        read_cover,
    )
    from spack_cache_db.query.answers.retention import MOST_NAMED
    from spack_cache_db.query.names.scope import Scope

    form, allow_missing = form_of(options, "keeplist"), options["allow_missing"]
    if not any(options[name] for name in _RULES):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in _RULES)
        raise click.UsageError(f"no rule keeps a binary: give one or more of {names}")
    since = options["newer_than"]
    days = (
        int(since)
        if since and since.isdecimal() and len(since) < len("20261125")
        else since
    )
    reading = {"spack": None, "strict": not allow_missing}
    with opened(file) as lookups:
        scope = Scope(release=release, stack=stack)
        conditions = scope.conditions(lookups)
        covered = [
            read_cover(lookups, path, scope, reading)
            for environment in options["environment"]
            for path in environment_paths(environment)[1]
        ]
        rules = options["newest"], days, options["keep_stack"]
        result = checked_retention(
            lookups, covered, conditions, *rules, allow_missing=allow_missing
        )
    if result.incomplete:
        shown = "; ".join(result.incomplete[:MOST_NAMED])
        more = len(result.incomplete) - MOST_NAMED
        say_notes(
            [
                f"kept, but not complete: {shown}"
                + (f"; and {more:,} more" if more > 0 else "")
            ]
        )
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
    """Return a line with the number of binaries that each rule keeps, and the freed
    size.
    """
    reasons = Counter(binary.reason for binary in result.binaries if binary.reason)
    texts = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
    keep, prune = (
        counted(len(binaries), "binary", "binaries")
        for binaries in (result.keep, result.prune)
    )
    freed = (
        f", which frees {result.freed_bytes / 1e6:,.1f} MB"
        if result.freed_bytes
        else ""
    )
    unknown = counted(result.unknown_sizes, "size is", "sizes are")
    more = f"; {unknown} unknown" if result.unknown_sizes else ""
    return f"keep {keep} ({texts}); prune {prune}{freed}{more}"
