"""The command `diff`, and what it prints for people."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spack_cache_db.cli.junit import Case, write_junit
from spack_cache_db.cli.options import (
    file_argument,
    flag,
    junit_option,
    named,
    names_in_file,
    opened,
    shared_options,
)
from spack_cache_db.cli.output import form_of, print_answer, say_notes
from spack_cache_db.errors import counted

if TYPE_CHECKING:
    from spack_cache_db.query.changes import DatabaseDiff, Diff

_COLOURS = {
    "removed": "red",
    "added": "green",
    "grown": "yellow",
    "shrunk": "yellow",
    "rebuilt": "yellow",
}
MOST_LINES = 40
"""Lines of a section for people; JSON and CSV have all."""


@click.command()
@click.argument("old", shell_complete=names_in_file)
@click.argument("new", shell_complete=names_in_file)
@file_argument
@flag("--databases", "OLD and NEW are databases; compare their releases.", is_eager=True)
@named("--release", "NAME", "With --databases: only this release.", shell_complete=names_in_file)
@named("--package", "NAME", "Only this package.")
@shared_options("stack", "target", "host", "json", "csv", "markdown")
@junit_option
def diff(old: str, new: str, file: Path, **options: Any) -> None:
    """Show what changed between two releases, or two databases.

    OLD and NEW are releases, or stacks of a release, such as develop:e4s. With --databases, they
    are databases without FILE: each release that both have is compared.

    Of the configurations in both releases, the grown ones gained hashes, the shrunk ones lost
    hashes, and the rebuilt ones did both. If FILE was built from indexes or mirrors, the report
    also says which dependency caused the rebuilds.

    Exit status: 0 if nothing changed, 1 if something did or neither has a binary, 2 for an error.

    Example: spack-cache-db diff develop-2025-04-20 develop dist/spack-cache.db
    """
    from spack_cache_db.query.changes import DatabaseDiff, Delta, diff_databases
    from spack_cache_db.query.changes import diff as compared
    from spack_cache_db.query.names import read_spellings

    form = form_of(options)
    narrowing = {name: options[name] for name in ("package", "stack", "target", "host")}
    if options["databases"]:
        if click.get_current_context().get_parameter_source("file") is ParameterSource.COMMANDLINE:
            raise click.UsageError("--databases compares two databases: OLD and NEW, without FILE")
        found: Diff | DatabaseDiff = diff_databases(
            Path(old), Path(new), release=options["release"], **narrowing
        )
    elif options["release"]:
        raise click.UsageError("--release goes with --databases only")
    else:
        with opened(file) as lookups:
            names = (("side", old), ("side", new), *narrowing.items())
            say_notes(read_spellings(lookups).notes(names))
        found = compared(file, old, new, **narrowing)
    whole = (
        found
        if isinstance(found, DatabaseDiff)
        else DatabaseDiff(old, new, {found.new: found}, Delta((), ()))
    )
    is_compared = any(whole.names) or any(any(each.specs) for each in whole.releases.values())
    if not is_compared:
        nothing = f"neither {found.old} nor {found.new} has such a binary, so nothing is compared"
        say_notes([nothing])
    elif found.is_empty and form:
        say_notes(each.sentence for each in whole.releases.values())
    if options["junit"]:
        write_junit(options["junit"], "diff", _cases(whole))
    print_answer(
        options,
        lambda: found.rows,
        _text(whole, is_markdown=False),
        value=found.as_dict,
        markdown=_text(whole, is_markdown=True),
        colours=_COLOURS,
    )
    sys.exit(0 if found.is_empty and is_compared else 1)


def _text(whole: DatabaseDiff, *, is_markdown: bool) -> Iterator[str]:
    """Yield the lines of each release, and the releases that only one database has."""
    title_mark, line_mark = ("### ", "- ") if is_markdown else ("", "  ")
    for number, found in enumerate(whole.releases.values()):
        if is_markdown:
            yield from (f"## {found.old} → {found.new}", "")
        elif number:
            yield ""
        yield from _lines(found, title_mark, line_mark)
    mark = line_mark.strip(" ") and line_mark
    yield from (f"{mark}The release {name} {text}." for name, text in _only_in_one(whole))


def _only_in_one(whole: DatabaseDiff) -> Iterator[tuple[str, str]]:
    for names, path in zip(whole.names, (whole.new, whole.old), strict=True):
        yield from ((name, f"is only in {path}") for name in names)


def _cases(whole: DatabaseDiff) -> Iterator[Case]:
    """Yield a test case for each changed configuration, which fails if it has fewer binaries."""
    for release, found in whole.releases.items():
        if found.is_empty:
            yield Case(release, found.sentence)
        for change, configurations in found.by_change.items():
            for each in configurations:
                name = " ".join((each.configuration.summary, *each.configuration.variants))
                counts = f"{each.specs.removed:,} of its binaries removed, {each.specs.kept:,} kept"
                is_lost = change in ("removed", "shrunk")
                yield Case(release, name, failure=f"{change}: {counts}" if is_lost else "")
    lost = {*whole.names.removed}
    for name, text in _only_in_one(whole):
        yield Case(name, f"the release {name}", failure=text if name in lost else "")


def _lines(found: Diff, title_mark: str, line_mark: str) -> Iterator[str]:
    yield found.sentence
    for title, lines in _sections(found):
        yield from ("", title_mark + title)
        # Markdown has an empty line behind a heading.
        yield from [""] * bool(title_mark)
        yield from (line_mark + line for line in lines)


def _sections(found: Diff) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each part that has any, configurations last."""
    for change, configurations in found.by_change.items():
        if change in ("added", "removed"):
            packages, stacks = getattr(found.packages, change), getattr(found.stacks, change)
            versions = getattr(found.versions, change)
            yield from _section(f"Packages {change}", len(packages), packages)
            of_package: dict[str, list[str]] = {}
            for package, version in versions:
                of_package.setdefault(package, []).append(version)
            lines = [f"{package} {', '.join(names)}" for package, names in of_package.items()]
            yield from _section(f"Versions {change}", len(versions), lines)
            yield from _section(f"Stacks {change}", len(stacks), stacks)
        counts = Counter(each.configuration.package for each in configurations)
        lines = [f"{name}: {counted(count, 'configuration')}" for name, count in counts.items()]
        yield from _section(f"Configurations {change}", len(configurations), lines)
    causes = [
        f"{cause}: {counted(cause.configurations, 'configuration')}" for cause in found.causes or ()
    ]
    yield from _section("Causes of rebuilds", len(causes), causes)


def _section(title: str, total: int, lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    shown = [*lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(f"and {len(lines) - MOST_LINES:,} more: --json and --csv have all")
    if total:
        yield f"{title}: {total:,}", shown
