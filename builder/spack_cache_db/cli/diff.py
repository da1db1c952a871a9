"""The command `diff`, and what it prints for people."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spack_cache_db.cli.databases import file_argument, names_in_file, opened
from spack_cache_db.cli.forms import form_of, say_notes
from spack_cache_db.cli.junit import Case, write_junit
from spack_cache_db.cli.options import junit_option, shared_options
from spack_cache_db.cli.parameters import flag, value_option
from spack_cache_db.cli.tables import print_answer
from spack_cache_db.errors import counted
from spack_cache_db.query.rows import grouped

if TYPE_CHECKING:
    from spack_cache_db.query.answers.diff import Diff
    from spack_cache_db.query.answers.diff_databases import DatabaseDiff

_COLOURS = {
    "removed": "red",
    "added": "green",
    "grown": "yellow",
    "shrunk": "yellow",
    "rebuilt": "yellow",
}
MOST_LINES = 40
"""Lines of a section in the table and in Markdown; JSON and CSV have all."""


@click.command()
@click.argument("old", shell_complete=names_in_file)
@click.argument("new", shell_complete=names_in_file)
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
    compared.

    Configurations in both releases are grown (gained hashes), shrunk (lost hashes) or
    rebuilt (both). If FILE was built from indexes or mirrors, the report names the
    dependencies that caused the rebuilds. Between two installations, or two stacks of a
    release, nothing is removed or added: the report says which side has what.

    Exit status: 0 if nothing changed, 1 if something did or neither side has a binary,
    2 for an error.

    Example: spack-cache-db diff develop-2025-04-20 develop dist/spack-cache.db
    """
    from spack_cache_db.query.answers.diff import Delta
    from spack_cache_db.query.answers.diff import diff as compared
    from spack_cache_db.query.answers.diff_databases import DatabaseDiff, diff_databases
    from spack_cache_db.query.names.spellings import read_spellings

    form = form_of(options)
    narrowing = {name: options[name] for name in ("package", "stack", "target", "host")}
    if options["databases"]:
        source = click.get_current_context().get_parameter_source("file")
        if source is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                "--databases compares two databases: OLD and NEW, without FILE"
            )
        databases = diff_databases(
            Path(old), Path(new), release=options["release"], **narrowing
        )
        result: Diff | DatabaseDiff = databases
    elif options["release"]:
        raise click.UsageError("--release goes with --databases only")
    else:
        with opened(file) as lookups:
            names = (("side", old), ("side", new), *narrowing.items())
            say_notes(read_spellings(lookups).notes(names))
        # One release is printed as a database with one release.
        release_diff = compared(file, old, new, **narrowing)
        names_of_releases: Delta[str] = Delta((), ())
        releases = {release_diff.new: release_diff}
        databases = DatabaseDiff(old, new, releases, names_of_releases)
        result = release_diff

    is_compared = _has_binaries(databases)
    if not is_compared:
        nothing = f"neither {result.old} nor {result.new} has such a binary, so nothing is compared"
        say_notes([nothing])
    elif result.is_empty and form:
        say_notes(release.sentence for release in databases.releases.values())
    if options["junit"]:
        write_junit(options["junit"], "diff", _cases(databases))
    print_answer(
        options,
        lambda: result.rows,
        _text(databases),
        value=result.as_dict,
        markdown=_markdown(databases),
        colours=_COLOURS,
    )
    sys.exit(0 if result.is_empty and is_compared else 1)


def _has_binaries(databases: DatabaseDiff) -> bool:
    """Return whether a side has a release of its own, or a binary in a common one."""
    if any(databases.names):
        return True
    return any(any(release.specs) for release in databases.releases.values())


def _text(databases: DatabaseDiff) -> Iterator[str]:
    """Yield the lines of each release, and the releases that only one database has."""
    for number, release_diff in enumerate(databases.releases.values()):
        if number:
            yield ""
        yield release_diff.sentence
        for title, lines in _sections(release_diff):
            yield ""
            yield title
            for line in lines:
                yield f"  {line}"
    for name, text in _only_in_one(databases):
        yield f"The release {name} {text}."


def _markdown(databases: DatabaseDiff) -> Iterator[str]:
    """Yield the same in Markdown, with an empty line after each heading."""
    for release_diff in databases.releases.values():
        yield f"## {release_diff.old} → {release_diff.new}"
        yield ""
        yield release_diff.sentence
        for title, lines in _sections(release_diff):
            yield from ("", f"### {title}", "")
            for line in lines:
                yield f"- {line}"
    for name, text in _only_in_one(databases):
        yield f"- The release {name} {text}."


def _only_in_one(databases: DatabaseDiff) -> Iterator[tuple[str, str]]:
    """Yield the releases that only one database has, and a text: `is only in a.db`."""
    for name in databases.names.added:
        yield name, f"is only in {databases.new}"
    for name in databases.names.removed:
        yield name, f"is only in {databases.old}"


def _cases(databases: DatabaseDiff) -> Iterator[Case]:
    """Yield a test case for each changed configuration, which fails if it has fewer
    binaries.
    """
    for release, release_diff in databases.releases.items():
        if release_diff.is_empty:
            yield Case(release, release_diff.sentence)
        for change, configurations in release_diff.by_change.items():
            # Beside each other, neither side has lost anything.
            is_loss = change in ("removed", "shrunk") and not release_diff.place
            for row in configurations:
                configuration = row.configuration
                name = " ".join((configuration.summary, *configuration.variants))
                counts = f"{row.specs.removed:,} of its binaries removed, {row.specs.kept:,} kept"
                failure = f"{change}: {counts}" if is_loss else ""
                yield Case(release, name, failure)
    lost = set(databases.names.removed)
    for name, text in _only_in_one(databases):
        yield Case(name, f"the release {name}", failure=text if name in lost else "")


def _sections(release_diff: Diff) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each part that has any, configurations last."""
    for change, configurations in release_diff.by_change.items():
        words = release_diff.words[change]
        if change in ("added", "removed"):
            packages = getattr(release_diff.packages, change)
            versions = getattr(release_diff.versions, change)
            stacks = getattr(release_diff.stacks, change)
            yield from _section(f"Packages {words}", len(packages), packages)
            lines = []
            for package, names in grouped(versions).items():
                lines.append(f"{package} {', '.join(names)}")
            yield from _section(f"Versions {words}", len(versions), lines)
            yield from _section(f"Stacks {words}", len(stacks), stacks)
        counts = Counter(row.configuration.package for row in configurations)
        lines = [
            f"{package}: {counted(count, 'configuration')}"
            for package, count in counts.items()
        ]
        yield from _section(f"Configurations {words}", len(configurations), lines)

    lines = []
    for cause in release_diff.causes or ():
        lines.append(f"{cause}: {counted(cause.configurations, 'configuration')}")
    title = "Dependencies that differ" if release_diff.place else "Causes of rebuilds"
    yield from _section(title, len(lines), lines)


def _section(
    title: str, total: int, lines: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield a section with its first lines; nothing if it has none."""
    if total == 0:
        return
    shown = list(lines[:MOST_LINES])
    hidden_count = len(lines) - len(shown)
    if hidden_count:
        shown.append(f"and {hidden_count:,} more: --json and --csv have all")
    yield f"{title}: {total:,}", shown
