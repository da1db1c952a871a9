"""The command `retention`: which binaries of a mirror its rules keep."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.databases import file_argument, opened
from spack_cache_db.cli.environments import environment_paths, read_cover
from spack_cache_db.cli.forms import form_of, print_json, say, say_notes
from spack_cache_db.cli.keep_list import checked_retention
from spack_cache_db.cli.options import shared_options
from spack_cache_db.cli.parameters import GivenPath, flag, value_option
from spack_cache_db.cli.tables import print_rows
from spack_cache_db.errors import bytes_text, counted

if TYPE_CHECKING:
    from spack_cache_db.query.answers.retention import Retention


_RULES = ("environment", "newest", "newer_than", "keep_stack")
"""The options that keep binaries; at least one is required."""


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
    from spack_cache_db.query.answers.retention import Rules
    from spack_cache_db.query.names.scope import Scope

    form = form_of(options, "keeplist")
    allow_missing = options["allow_missing"]
    if not any(options[name] for name in _RULES):
        flags = [f"--{name.replace('_', '-')}" for name in _RULES]
        expected = f"give one or more of {', '.join(flags)}"
        raise click.UsageError(f"no rule keeps a binary: {expected}")
    rules = Rules(
        newest=options["newest"],
        newer_than=_day_or_days(options["newer_than"]),
        keep_stacks=options["keep_stack"],
    )

    # Specs are those of today's Spack. An included file that is missing may need more
    # binaries, so it is a fault.
    reading = {"spack": None, "strict": not allow_missing}
    with opened(file) as lookups:
        scope = Scope(release=release, stack=stack)
        conditions = scope.conditions(lookups)
        covered = []
        for environment in options["environment"]:
            _, paths = environment_paths(environment)
            for path in paths:
                covered.append(read_cover(lookups, path, scope, reading))
        result = checked_retention(
            lookups, covered, conditions, rules, allow_missing=allow_missing
        )

    _say_incomplete(result)
    if form == "keeplist":
        click.echo("\n".join(result.keep))
    elif form == "json":
        print_json(result.as_dict())
    else:
        # The table begins with the totals; CSV is only rows.
        if form is None:
            say(_totals(result))
        print_rows(result.rows, options, "")
    sys.exit(1 if result.missing and not allow_missing else 0)


def _day_or_days(text: str | None) -> str | int | None:
    """Return a day such as `2026-11-25` or `20261125` as text, or a number of days."""
    if text and text.isdecimal() and len(text) < len("20261125"):
        return int(text)
    return text


def _say_incomplete(result: Retention) -> None:
    """Print a note on the first binaries that are kept but lack a dependency."""
    from spack_cache_db.query.answers.retention import MOST_NAMED

    texts = list(result.incomplete[:MOST_NAMED])
    hidden_count = len(result.incomplete) - len(texts)
    if hidden_count:
        texts.append(f"and {hidden_count:,} more")
    if texts:
        say_notes([f"kept, but not complete: {'; '.join(texts)}"])


def _totals(result: Retention) -> str:
    """Return how many binaries each rule keeps, and the size of the others.

    Such as `keep 12 binaries (newest 10, needed 2); prune 3 binaries, which frees 9.5
    MB`.
    """
    keep = counted(len(result.keep), "binary", "binaries")
    prune = counted(len(result.prune), "binary", "binaries")
    # A binary that is pruned has no reason to be kept.
    reasons = Counter(binary.reason for binary in result.binaries if binary.reason)
    texts = [f"{reason} {count:,}" for reason, count in reasons.items()]
    line = f"keep {keep} ({', '.join(texts)}); prune {prune}"
    if result.freed_bytes:
        line += f", which frees {bytes_text(result.freed_bytes)}"
    if result.unknown_sizes:
        line += f"; {counted(result.unknown_sizes, 'size is', 'sizes are')} unknown"
    return line
