"""The command `find`, its table, and the search that `history` shares."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.databases import opened
from spack_cache_db.cli.forms import CommandError, fail, form_of, say, say_notes
from spack_cache_db.cli.options import scope_from, shared_options
from spack_cache_db.cli.parameters import flag
from spack_cache_db.cli.spec_words import SpecCommand
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
"""Differences of a binary that a row has."""
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
    also 1 if a dependency has no binary, or if the mirror has lost the binary.

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
        # A table that is cut needs only its own rows.
        is_whole = limit is not None or form in ("json", "csv")
        part = slice(limit if is_whole else max_rows)
        configurations = found_part(question, part, with_hashes=hashes)
        search.say_notes(is_found=bool(configurations))
        chosen = None
        if options["install"] and configurations:
            from spack_cache_db.query.answers.install import chosen_build

            chosen = chosen_build(lookups, question.results)

        def rows() -> Rows:
            return found_rows(configurations, hashes=hashes)

        def value_with_plan() -> dict[str, Any]:
            install = None if chosen is None else chosen.plan.as_dict()
            return {"found": list(rows().records), "install": install}

        if configurations or form in ("json", "csv"):
            table = find_table(
                configurations,
                total=question.count(),
                max_rows=max_rows if limit is None else None,
                hashes=hashes,
                installations=lookups.release_names(lookups.trees()),
            )
            value = value_with_plan if options["install"] else None
            print_answer(options, rows, table, value=value)
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
        message = str(error)
        path = _PATH.fullmatch(error.text)
        if path:
            # The second line of the message points at a column of the first.
            message += f"\nif {path[1]} is the database: there is no such file"
        raise CommandError(message) from None


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
    # An installation also has specs that are not binaries.
    singular, plural = ("spec", "specs") if installations else ("binary", "binaries")
    yield _summary(configurations, total, singular, plural)

    # Values that all rows share stand above the table; the version stands in it too.
    common_variants = shared_variants([row.variants for row in configurations])
    names = list(_WORDS)
    if len(configurations) > 1:
        same = [name for name in _WORDS if _is_same(configurations, name)]
        shared = _shared_values(configurations[0], same, common_variants)
        if shared:
            yield from wrapped(f"all: {' '.join(shared)}")
        names = [name for name in _WORDS if name not in same or name == "version"]

    # A row is a configuration, or a binary with its hash.
    rows = []
    for found in configurations:
        words = [getattr(found, name) for name in names]
        own = [text for text in found.variants if text not in common_variants]
        variants = " ".join(own)
        if hashes:
            for spec in found.specs or ():
                cells = _presence_cells(spec, variants, installations, spec.differences)
                rows.append([*words, spec.hash, *cells])
        else:
            cells = _presence_cells(found, variants, installations)
            rows.append([*words, f"{found.spec_count:,}", *cells])
    headings = [*names, "hash" if hashes else plural, "last seen", *_LONG]
    shown = rows[:max_rows]
    yield ""
    yield from Table(headings, shown, optional=_OPTIONAL, long=_LONG).lines()
    hidden_count = total - len(configurations) + len(rows) - len(shown)
    if max_rows is not None and hidden_count:
        yield ""
        yield more_rows(hidden_count)


def _summary(
    configurations: Sequence[Found], total: int, singular: str, plural: str
) -> str:
    """Return a line such as `50 of 120 configurations, 61 binaries`."""
    count = len(configurations)
    part = f"{count:,} of " if count < total else ""
    specs = sum(row.spec_count for row in configurations)
    found = counted(total, "configuration")
    return f"{part}{found}, {counted(specs, singular, plural)}"


def _is_same(configurations: Sequence[Found], name: str) -> bool:
    values = {getattr(row, name) for row in configurations}
    return len(values) == 1


def _shared_values(
    first: Found, same: Sequence[str], variants: Sequence[str]
) -> list[str]:
    """Return the values of the fields `same`, the package and its version as one."""
    shared = []
    if "package" in same:
        version = f"@{first.version}" if "version" in same else ""
        shared.append(f"{first.package}{version}")
    for name in same:
        if name not in ("package", "version"):
            shared.append(getattr(first, name))
    return [*shared, *variants]


def _presence_cells(
    row: Found | FoundSpec,
    variants: str,
    installations: Sequence[str],
    differences: Sequence[str] = (),
) -> list[str]:
    """Return the last columns of a row of the table, from `last seen`."""
    # All installations, or else the first release; and the number of others.
    releases = [name for name in installations if name in row.releases]
    if not releases:
        releases = list(row.releases[:1])
    release_text = " ".join(releases) or NOTHING
    hidden_count = len(row.releases) - len(releases)
    if hidden_count > 0:
        release_text += f" +{hidden_count}"
    shown_differences = list(differences[:_MOST_DIFFERENCES])
    hidden_count = len(differences) - len(shown_differences)
    if hidden_count > 0:
        shown_differences.append(f"and {hidden_count} more")
    cells = (
        row.last_seen,
        release_text,
        variants,
        " ".join(row.stacks),
        ", ".join(shown_differences),
        "" if row.is_external else _module(row),
        _provided(row) if row.is_external else "",
        "yes" if row.is_gone else "",
    )
    return [cell or NOTHING for cell in cells]


def _provided(row: Found | FoundSpec) -> str:
    """Return the prefix of an external, and the modules to load for it."""
    texts = []
    if row.prefix:
        texts.append(row.prefix)
    if row.modules:
        texts.append(f"module load {_module(row)}")
    return ", ".join(texts) or "yes"


def _module(row: Found | FoundSpec) -> str:
    """Return the modules to load, with their folder if several folders have this
    module.
    """
    modules = " ".join(row.modules)
    return f"{modules} in {row.module_tree}" if row.module_tree else modules
