"""The command `cover`: which specs of an environment have a binary."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from spack_cache_db.cli.cover_folder import print_folder
from spack_cache_db.cli.cover_texts import (
    COLOURS,
    STATUSES,
    cover_markdown,
    cover_table,
    cover_value,
    shown,
    text_of,
)
from spack_cache_db.cli.databases import file_argument, opened
from spack_cache_db.cli.environments import Covered, environment_paths, read_cover
from spack_cache_db.cli.forms import fail, form_of, say_notes
from spack_cache_db.cli.junit import Case, write_junit
from spack_cache_db.cli.keep_list import checked_retention
from spack_cache_db.cli.options import (
    baseline_option,
    junit_option,
    scope_from,
    shared_options,
)
from spack_cache_db.cli.parameters import GivenPath, flag, value_option
from spack_cache_db.cli.tables import print_answer

if TYPE_CHECKING:
    from spack_cache_db.query.answers.covered import Cover
    from spack_cache_db.query.names.scope import Scope
    from spack_cache_db.query.open.lookups import Lookups


@click.command()
@click.argument("environment", type=GivenPath(), metavar="ENVIRONMENT")
@file_argument
@shared_options("release", "stack", "host", "here")
@value_option("--os", "NAME", "Only binaries for this operating system.")
@value_option("--platform", "NAME", "Only binaries for this platform, such as linux.")
@shared_options("spack", "json", "csv", "markdown")
@click.option(
    "--only",
    type=click.Choice(STATUSES),
    multiple=True,
    help="Show only specs with this status. Repeatable.",
)
@flag("--strict", "Fail if an included file cannot be found.")
@flag(
    "--keeplist",
    "Print the hashes that a mirror has to keep, for `spack buildcache prune --keeplist`.",
)
@flag(
    "--allow-missing",
    "With --keeplist: print the list even if some specs have no binary.",
)
@baseline_option
@junit_option
def cover(environment: str, file: Path, **options: Any) -> None:
    """Show which specs of an environment have a binary.

    ENVIRONMENT is a spack.yaml, a spack.lock, output of Spack, a list with one spec per
    line, or a folder of environments; - is standard input. Files that a spack.yaml
    includes are read as well. FILE is a database.

    A binary counts if Spack can install it with all that it links and runs, and if
    Spack's solver reuses it under the settings of the environment.

    Exit status: 0 if every spec has a binary, 1 if some have none, 2 for an error. With
    --baseline, 1 only if some specs had a binary in the older database, and have none.
    With --keeplist, nothing is printed if a spec has neither a binary nor an external.

    Example: spack-cache-db cover spack.yaml dist/spack-cache.db --release develop
    """
    from spack_cache_db.query.answers.cover import opened_baseline
    from spack_cache_db.query.answers.retention import Rules

    allow_missing = options["allow_missing"]
    is_keeplist = _is_keeplist(options)
    # An included file that is not found may need more binaries.
    if is_keeplist and not allow_missing:
        options["strict"] = True

    # Read the environments, and ask the database.
    scope = scope_from(options)
    is_folder, paths = environment_paths(environment)
    with opened(file) as lookups, opened_baseline(options["baseline"], scope) as older:
        # A name that the database does not have is an error, before any note.
        conditions = scope.conditions(lookups)
        say_notes(_notes_on_names(lookups, scope))
        covered = [read_cover(lookups, path, scope, options, older) for path in paths]
        if is_keeplist:
            retention = checked_retention(
                lookups, covered, conditions, Rules(), allow_missing=allow_missing
            )
            click.echo("\n".join(retention.keep))
            sys.exit(1 if retention.missing and not allow_missing else 0)

    # Print the answers for a folder.
    if options["junit"]:
        write_junit(options["junit"], "cover", _cases(covered))
    only = options["only"]
    if is_folder:
        total = print_folder(environment, covered, options)
        if any(read.cover is None for read in covered):
            sys.exit(2)
        if not total.specs:
            say_notes(["the environments have no specs"])
        _end(total, only)

    # Print the answers for one environment.
    answer = covered[0].cover
    if answer is None:
        fail(covered[0].error)
    say_notes(answer.notes)
    print_answer(
        options,
        lambda: shown(answer, only).rows,
        cover_table(answer, only),
        value=lambda: cover_value(answer, only),
        markdown=cover_markdown(answer, only),
        colours=COLOURS,
    )
    _end(answer, only)


def _is_keeplist(options: Mapping[str, Any]) -> bool:
    """Return whether to print a keep list instead of the answers.

    Options that do not go together end the command with an error.
    """
    is_keeplist = form_of(options, "keeplist") == "keeplist"
    if options["allow_missing"] and not is_keeplist:
        raise click.UsageError("--allow-missing goes with --keeplist only")
    if is_keeplist and (options["baseline"] or options["junit"]):
        raise click.UsageError("--keeplist goes with neither --baseline nor --junit")
    return is_keeplist


def _notes_on_names(lookups: Lookups, scope: Scope) -> list[str]:
    """Return notes on names that the database spells differently, and on an operating
    system or a platform that it does not have.
    """
    from spack_cache_db.query.names.scope import hint
    from spack_cache_db.query.names.spellings import read_spellings

    spellings = read_spellings(lookups)
    notes = spellings.notes(scope.names.items())
    for kind, noun in (("os", "operating system"), ("platform", "platform")):
        name = scope.names[kind]
        # The values of the column `os` or `platform` of configurations.
        values = sorted(lookups.words[kind].values())
        if name is not None and spellings.canonical(kind, name) not in values:
            names = ", ".join(values) or "none"
            close = hint(name, values, f"the database has {names}")
            notes.append(f"no binary was built for the {noun} {name!r}; {close}")
    return notes


def _cases(covered: Iterable[Covered]) -> Iterator[Case]:
    """Yield a test case for each spec.

    A spec without a binary fails. With a baseline, only a lost one fails, and the
    others are skipped.
    """
    for path, answer, error in covered:
        if answer is None:
            yield Case(path, path, failure=error)
            continue
        for spec in answer.specs:
            text = f"{spec.status}: {text_of(spec)}"
            if spec.missing:
                text += f"\nmissing: {', '.join(spec.missing)}"
            if spec.is_met:
                yield Case(path, spec.title)
            elif answer.baseline and spec.status != "lost":
                yield Case(path, spec.title, skipped=text)
            else:
                yield Case(path, spec.title, failure=text)


def _end(answer: Cover, only: Sequence[str]) -> NoReturn:
    """End with the status of the answers; a note says if none has a status in `only`.

    The status is that of all specs, also if only some are printed.
    """
    if answer.specs and not shown(answer, only).specs:
        say_notes([f"no spec has the status {' or '.join(only)}"])
    is_good = answer.available == answer.total
    if answer.baseline:
        is_good = answer.counted("lost") == 0
    sys.exit(0 if answer.specs and is_good else 1)
