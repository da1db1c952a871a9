"""The command `diff`, and what it prints for people."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.options import file_argument, named, names_in_file, opened, shared_options
from spack_cache_db.cli.output import form_of, print_answer, say_notes
from spack_cache_db.errors import counted

if TYPE_CHECKING:
    from spack_cache_db.query.changes import Diff

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
@named("--package", "NAME", "Only this package.")
@shared_options("stack", "target", "host", "json", "csv", "markdown")
def diff(old: str, new: str, file: Path, **options: Any) -> None:
    """Show what changed between two releases.

    OLD and NEW are releases, or stacks of a release, such as develop:e4s.

    Of the configurations in both releases, the grown ones gained hashes, the shrunk ones lost
    hashes, and the rebuilt ones did both. If FILE was built from indexes or mirrors, the report
    also says which dependency caused the rebuilds.

    Exit status: 0 if nothing changed, 1 if something did or neither has a binary, 2 for an error.

    Example: spack-cache-db diff develop-2025-04-20 develop dist/spack-cache.db
    """
    from spack_cache_db.query.changes import diff as compared
    from spack_cache_db.query.changes import sentence
    from spack_cache_db.query.names import read_spellings

    form = form_of(options)
    narrowing = {name: options[name] for name in ("package", "stack", "target", "host")}
    with opened(file) as lookups:
        names = (("side", old), ("side", new), *narrowing.items())
        say_notes(read_spellings(lookups).notes(names))
    found = compared(file, old, new, **narrowing)
    is_compared = any(found.specs)
    if not is_compared:
        nothing = f"neither {found.old} nor {found.new} has such a binary, so nothing is compared"
        say_notes([nothing])
    elif found.is_empty and form:
        say_notes([sentence(found)])
    print_answer(
        options,
        lambda: found.rows,
        _lines(found, [sentence(found)], "", "  "),
        value=found.as_dict,
        markdown=_lines(
            found, [f"## {found.old} → {found.new}", "", sentence(found)], "### ", "- "
        ),
        colours=_COLOURS,
    )
    sys.exit(0 if found.is_empty and is_compared else 1)


def _lines(found: Diff, head: list[str], title_mark: str, line_mark: str) -> Iterator[str]:
    yield from head
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
