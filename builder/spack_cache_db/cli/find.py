"""The command `find`: a table of the binaries that satisfy a spec, and how to install
one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from spack_cache_db.cli.find_table import find_table
from spack_cache_db.cli.forms import fail, form_of, say
from spack_cache_db.cli.options import scope_from, shared_options
from spack_cache_db.cli.parameters import flag
from spack_cache_db.cli.search import Search, open_search
from spack_cache_db.cli.spec_words import SpecCommand
from spack_cache_db.cli.tables import most_rows, print_answer

if TYPE_CHECKING:
    from spack_cache_db.query.answers.planned import Chosen
    from spack_cache_db.query.commands.model import Commands
    from spack_cache_db.query.open.lookups import Lookups
    from spack_cache_db.query.rows import Rows


@click.command(cls=SpecCommand)
@flag("--hashes", "Show one row per binary, with its hash.")
@shared_options("release", "stack", "host", "here")
@flag("--explicit", "Only binaries that were installed explicitly.")
@flag("--stable", "Leave out branches, such as develop, and versions of git.")
@shared_options("spack")
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Show at most N configurations.",
)
@flag("--install", "Also print the commands that install one of them.")
@shared_options("json", "csv", "all")
def find(spec: str, file: Path, **options: Any) -> None:
    """Find the binaries that satisfy a spec.

    SPEC has Spack's own syntax, in one word or several. A pasted command
    (`spack install hdf5`) or line of Spack's output works as well. FILE is a database;
    if it was built from indexes, SPEC may name dependencies (^zlib, %cmake), namespaces
    and compiler flags.

    The version that Spack would install comes first.

    Exit status: 0 if something was found, 1 if not, 2 for an error. With --install,
    also 1 if a dependency has no binary, or if the mirror has lost the binary.

    Example: spack-cache-db find hdf5@1.14: +mpi %gcc@13 dist/spack-cache.db
    """
    from spack_cache_db.query.answers.find import found_part, found_rows

    form = form_of(options)
    hashes = options["hashes"]
    limit = options["limit"]
    is_install = options["install"]
    if is_install and form == "csv":
        fail(
            "--csv and --install exclude each other: give one of them, or --json and --install"
        )
    # A table on a terminal is cut, unless the user has said where.
    max_rows = None
    if limit is None and form is None:
        max_rows = most_rows(options)

    with open_search(file) as lookups:
        search = Search(lookups, spec, scope_from(options), options["spack"])
        question = search.question
        # Only the first configurations, which are printed, are read.
        part = slice(limit or max_rows)
        configurations = found_part(question, part, with_hashes=hashes)
        search.say_notes(is_found=bool(configurations))
        chosen = None
        if is_install and configurations:
            from spack_cache_db.query.answers.install import chosen_build

            chosen = chosen_build(lookups, question.results)

        def rows() -> Rows:
            return found_rows(configurations, hashes=hashes)

        def value_with_plan() -> dict[str, Any]:
            install = None if chosen is None else chosen.plan.as_dict()
            return {"found": list(rows().records), "install": install}

        # If nothing was found, people have read why, and programs get no rows.
        if configurations or form is not None:
            table = find_table(
                configurations,
                total=question.count(),
                max_rows=max_rows,
                hashes=hashes,
                # `trees` are the ids of installations.
                installations=lookups.release_names(lookups.trees()),
            )
            value = value_with_plan if is_install else None
            print_answer(options, rows, table, value=value)

        if is_install and configurations:
            _end_with_commands(lookups, chosen, form)
    sys.exit(0 if configurations else 1)


def _end_with_commands(
    lookups: Lookups, chosen: Chosen | None, form: str | None
) -> NoReturn:
    """Print the commands that install a binary, and end with their status.

    JSON has the commands already.

    Args:
        lookups: the database.
        chosen: the binary; None if none can be installed.
        form: the format of the answer.
    """
    if chosen is None:
        why = "no release lists these binaries, so they cannot be installed"
        fail(why, status=1)
    if form is None:
        has_machines = len(lookups.trees()) > 1
        say("")
        for line in _chosen_lines(chosen, has_machines=has_machines):
            say(line)
    # None means that the dependencies are not known.
    sys.exit(1 if chosen.commands.is_complete is False else 0)


def _chosen_lines(chosen: Chosen, *, has_machines: bool) -> Iterator[str]:
    """Yield lines to paste into a shell: what is installed, why, and the commands."""
    if chosen.commands.commands:
        # Only installed specs have a command that loads them.
        verb = "installs" if chosen.commands.load is None else "loads"
        yield f"# {verb} {chosen.build}"
    if chosen.reason is not None:
        yield f"# {chosen.reason}"
    yield from _command_lines(chosen.commands, has_machines=has_machines)


def _command_lines(commands: Commands, *, has_machines: bool) -> Iterator[str]:
    """Yield commands, with what to know about them as comments of a shell.

    Args:
        commands: the commands.
        has_machines: whether the database has several installations; then the names of
            these are printed.
    """
    # If several installations have the spec, each has its own commands.
    if commands.machines:
        for machine in commands.machines:
            yield from _command_lines(machine, has_machines=True)
        return

    # Where it is installed, or what else to know: `# on frontier: installed in /opt/x`.
    if commands.prefix:
        machine_name = f"on {commands.release}: " if has_machines else ""
        yield f"# {machine_name}{commands.note or 'installed'} in {commands.prefix}"
    elif commands.note:
        yield f"# {commands.note}"
    elif commands.load and has_machines:
        yield f"# on {commands.release}:"
    sentences = [commands.advice, *commands.needs, commands.missing, commands.size]
    for sentence in sentences:
        if sentence is not None:
            yield f"# {sentence}"

    yield from commands.commands[:-1]
    # Only the last command builds from source.
    if commands.builds:
        yield f"# {commands.builds}"
    yield from commands.commands[-1:]
    if commands.alternative:
        yield "# or, with Spack:"
        yield commands.alternative
