"""The commands that look for a spec, `find` and `history`, and the tables that they
print.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.forms import CommandError, fail, form_of, say, say_notes
from spack_cache_db.cli.options import (
    SpecCommand,
    flag,
    opened,
    scope_from,
    shared_options,
)
from spack_cache_db.cli.tables import (
    NOTHING,
    Table,
    more_rows,
    most_rows,
    print_answer,
    wrapped,
)
from spack_cache_db.errors import counted
from spack_cache_db.model import Configuration

if TYPE_CHECKING:
    from spack_cache_db.query.answers.find import Found
    from spack_cache_db.query.answers.install import Chosen
    from spack_cache_db.query.commands.model import Commands
    from spack_cache_db.query.names.scope import Scope
    from spack_cache_db.query.open.lookups import Lookups
    from spack_cache_db.query.rows import Rows
    from spack_cache_db.query.stored.presence import FoundSpec


_WORDS = tuple(name for name in Configuration._fields if name != "variants")
"""The fields of a configuration that are one word."""
PROVIDED = "provided by the system"
GONE = "gone from its mirror"
_LONG = ("releases", "variants", "stacks", "differences", "module", PROVIDED, GONE)
"""The last columns of the table, with long texts."""
_OPTIONAL = ("last seen", "platform", "stacks", "releases")
"""The columns that a narrow terminal leaves out, the least useful first."""
_MOST_DIFFERENCES = 5
_PATH = re.compile(r".*\s([\w./-]+[./][\w/-]+)", re.DOTALL)
"""A text whose last word looks like a path."""


@click.command(cls=SpecCommand)
@flag("--hashes", "Show one row per binary, with its hash.")
@shared_options("release", "stack", "host", "here")
@flag("--explicit", "Only binaries that were installed explicitly.")
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
    also 1 if a
    dependency has no binary, or if the mirror has lost the binary.

    Example: spack-cache-db find hdf5@1.14: +mpi %gcc@13 dist/spack-cache.db
    """
    from spack_cache_db.query.answers.find import found_part, found_rows

    form = form_of(options)
    hashes = options["hashes"]
    limit = options["limit"]
    max_rows = most_rows(options)
    if options["install"] and form == "csv":
        fail(
            "--csv and --install exclude each other: give one of them, or --json and --install"
        )
    with open_search(file) as lookups:
        search = Search(lookups, spec, scope_from(options), options["spack"])
        question = search.question
        is_whole = limit is not None or form in ("json", "csv")
        part = slice(limit if is_whole else max_rows)
        configurations = found_part(question, part, with_hashes=hashes)
        search.say_notes(is_found=bool(configurations))
        chosen = None
        if options["install"] and configurations:
            from spack_cache_db.query.answers.install import chosen_build

            chosen = chosen_build(lookups, question.results)
        value = None
        if options["install"]:
            value = _value_with_plan(
                lambda: found_rows(configurations, hashes=hashes), chosen
            )
        if configurations or form in ("json", "csv"):
            print_answer(
                options,
                lambda: found_rows(configurations, hashes=hashes),
                find_table(
                    configurations,
                    question.count(),
                    max_rows if limit is None else None,
                    hashes=hashes,
                    installations=lookups.release_names(lookups.trees()),
                ),
                value=value,
            )
        if options["install"] and configurations:
            if chosen is None:
                fail(
                    "no release lists these binaries, so they cannot be installed",
                    status=1,
                )
            if form is None:
                has_machines = len(lookups.trees()) > 1
                lines = _install_lines(chosen.commands, has_machines=has_machines)
                for line in ("", *_chosen_lines(chosen), *lines):
                    say(line)
            sys.exit(1 if chosen.commands.is_complete is False else 0)
    sys.exit(0 if configurations else 1)


def _value_with_plan(
    rows: Callable[[], Rows], chosen: Chosen | None
) -> Callable[[], Any]:
    """Return a function that returns the JSON of `find --install`."""

    def value() -> dict[str, Any]:
        install = None if chosen is None else chosen.plan.as_dict()
        return {"found": list(rows().records), "install": install}

    return value


def _chosen_lines(chosen: Chosen) -> Iterator[str]:
    """Yield the build that the commands are for, and why it was chosen, as comments."""
    if chosen.commands.commands:
        verb = "installs" if chosen.commands.load is None else "loads"
        yield f"# {verb} {chosen.build}"
    if chosen.reason is not None:
        yield f"# {chosen.reason}"


def _install_lines(commands: Commands, *, has_machines: bool) -> Iterator[str]:
    """Yield commands as lines to paste, with what to know about them as comments.

    `has_machines` is true if the database has several installations: their names are
    printed.
    """
    # Each installation has its own commands.
    for machine in commands.machines:
        yield from _install_lines(machine, has_machines=True)
    if commands.machines:
        return
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
        yield from ("# or, with Spack:", commands.alternative)


@contextmanager
def open_search(file: Path) -> Iterator[Lookups]:
    """Open a database; a spec that cannot be parsed ends the command with an error."""
    from spack_cache_db.spack.lexer import QuerySyntaxError

    try:
        with opened(file) as lookups:
            yield lookups
    except QuerySyntaxError as error:
        last = _PATH.fullmatch(error.text)
        missing = (
            f"\nif {last[1]} is the database: there is no such file" if last else ""
        )
        # The second line of the message points at a column of the first.
        raise CommandError(str(error) + missing) from None


class Search:
    """A parsed spec of the command line, and its query for a database.

    Raises:
        UnsupportedQuery: the database cannot answer it; the message suggests another
            spec.
    """

    def __init__(
        self,
        lookups: Lookups,
        spec: str,
        scope: Scope,
        version: str | None = None,
    ) -> None:
        from spack_cache_db.query.answers.why_not import why_corrected
        from spack_cache_db.query.conditions.pages import UnsupportedQuery
        from spack_cache_db.query.match.question import Question
        from spack_cache_db.query.names.known import spec_in
        from spack_cache_db.query.names.spellings import read_spellings
        from spack_cache_db.spack.parser import parse_query

        conditions = scope.conditions(lookups)
        pasted = spec_in(lookups, spec, version)
        self.question = Question(lookups, parse_query(pasted.spec), conditions)
        spelled = read_spellings(lookups).notes(scope.names.items())
        self._notes = (*pasted.notes_on(spec), *spelled)
        try:
            self.question.check()
        except UnsupportedQuery as error:
            why = why_corrected(self.question)
            advice = why.advice() if why else ()
            raise UnsupportedQuery("; ".join((str(error), *advice))) from None

    def say_notes(self, *, is_found: bool) -> None:
        """Print how the spec and the names were read, and why nothing was found."""
        from spack_cache_db.query.answers.why_not import why_not

        say_notes((*self._notes, *self.question.notes))
        if is_found:
            say_notes(self.question.lost_note())
        else:
            say_notes(why_not(self.question).reasons())


def find_table(
    configurations: Sequence[Found],
    total: int | None = None,
    max_rows: int | None = None,
    *,
    hashes: bool,
    installations: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines of a table; values that all rows share are printed once, above
    it.

    Args:
        configurations: configurations to print, at least one.
        total: number of configurations that satisfy the spec; None if all are printed.
        max_rows: rows of the table; None for all.
        hashes: one row per binary instead of one per configuration.
        installations: names of the releases that are installations; all of them are
            printed.
    """
    from spack_cache_db.query.stored.configurations import shared_variants

    total = total or len(configurations)
    part = f"{len(configurations):,} of " if len(configurations) < total else ""
    specs = sum(row.spec_count for row in configurations)
    # An installation also has specs that are not binaries.
    singular, many = ("spec", "specs") if installations else ("binary", "binaries")
    yield f"{part}{counted(total, 'configuration')}, {counted(specs, singular, many)}"
    names, first = [*_WORDS], configurations[0]
    common = shared_variants([row.variants for row in configurations])
    if len(configurations) > 1:
        same = [
            name
            for name in _WORDS
            if len({getattr(row, name) for row in configurations}) == 1
        ]
        version = f"@{first.version}" if "version" in same else ""
        shared = [f"{first.package}{version}"] if "package" in same else []
        shared += [
            getattr(first, name) for name in same if name not in ("package", "version")
        ]
        shared += common
        if shared:
            yield from wrapped(f"all: {' '.join(shared)}")
        names = [name for name in _WORDS if name not in same or name == "version"]
    headings = [*names, "hash" if hashes else many, "last seen", *_LONG]
    rows = []
    for found in configurations:
        values = [getattr(found, name) for name in names]
        variants = " ".join(text for text in found.variants if text not in common)
        places: list[tuple[str, Any]] = [(f"{found.spec_count:,}", found)]
        if hashes:
            places = [(spec.hash, spec) for spec in found.specs or ()]
        for label, row in places:
            rows.append([*values, label, *_places(row, variants, installations)])
    yield ""
    table = Table(headings, rows[:max_rows], optional=_OPTIONAL, long=_LONG)
    yield from table.lines()
    hidden_count = total - len(configurations) + len(rows) - len(rows[:max_rows])
    if max_rows is not None and hidden_count:
        yield from ("", more_rows(hidden_count))


def _places(
    row: Found | FoundSpec, variants: str, installations: Sequence[str]
) -> list[str]:
    """Return the last columns of a row of the table, from `last seen`."""
    releases = [name for name in installations if name in row.releases] or row.releases[
        :1
    ]
    more = len(row.releases) - len(releases)
    differences: tuple[str, ...] = getattr(row, "differences", ())
    hidden = len(differences) - _MOST_DIFFERENCES
    cells = (
        row.last_seen,
        (" ".join(releases) or NOTHING) + (f" +{more}" if more > 0 else ""),
        variants,
        " ".join(row.stacks),
        ", ".join(
            (*differences[:_MOST_DIFFERENCES], *([f"and {hidden} more"] * (hidden > 0)))
        ),
        "" if row.is_external else _module(row),
        _provided(row) if row.is_external else "",
        "yes" if row.is_gone else "",
    )
    return [cell or NOTHING for cell in cells]


def _provided(row: Found | FoundSpec) -> str:
    """Return the prefix of an external, and the modules to load for it."""
    module = f"module load {_module(row)}" if row.modules else ""
    return ", ".join(filter(None, (row.prefix, module))) or "yes"


def _module(row: Found | FoundSpec) -> str:
    """Return the modules to load, with their folder if several folders have this
    module.
    """
    return " ".join(row.modules) + (f" in {row.module_tree}" if row.module_tree else "")
