"""What `diff` prints for people: text, Markdown and test cases.

```
From develop-2025-04-20 to develop, 0 binaries were removed, 401 added and 12 kept; …

Packages added: 3
  py-mpi4py
  py-pdm-backend
  py-safetensors

Configurations added: 19
  py-mpi4py: 7 configurations
```

The difference of two databases has such a text for each release that both have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spack_cache_db.cli.junit import Case
from spack_cache_db.errors import counted
from spack_cache_db.query.rows import grouped

if TYPE_CHECKING:
    from spack_cache_db.query.answers.diff_databases import DatabaseDiff
    from spack_cache_db.query.answers.diff_result import ChangedConfiguration, Diff

COLOURS = {
    "removed": "red",
    "added": "green",
    "grown": "yellow",
    "shrunk": "yellow",
    "rebuilt": "yellow",
}
"""The colours of titles with these words on a terminal."""

MOST_LINES = 40
"""Most lines of a section; JSON and CSV have all."""


def text(databases: DatabaseDiff) -> Iterator[str]:
    """Yield the lines of each release, and the releases that only one database has."""
    for number, release_diff in enumerate(databases.releases.values()):
        if number > 0:
            yield ""
        yield release_diff.sentence
        for title, lines in _sections(release_diff):
            yield ""
            yield title
            for line in lines:
                yield f"  {line}"
    for name, where in _only_in_one(databases):
        yield f"The release {name} {where}."


def markdown(databases: DatabaseDiff) -> Iterator[str]:
    """Yield the same in Markdown, with an empty line after each heading."""
    for release_diff in databases.releases.values():
        yield f"## {release_diff.old} → {release_diff.new}"
        yield ""
        yield release_diff.sentence
        for title, lines in _sections(release_diff):
            yield from ("", f"### {title}", "")
            for line in lines:
                yield f"- {line}"
    for name, where in _only_in_one(databases):
        yield f"- The release {name} {where}."


def cases(databases: DatabaseDiff) -> Iterator[Case]:
    """Yield a test case for each changed configuration, and for each release that only
    one database has.

    A case fails if something is lost: binaries of a configuration, or the release.
    """
    for release, release_diff in databases.releases.items():
        if release_diff.is_empty:
            yield Case(release, release_diff.sentence)
        for change, configurations in release_diff.by_change.items():
            # Of two installations, or two stacks of a release, neither is the older
            # one, so nothing is lost: they have a `place`.
            is_loss = change in ("removed", "shrunk") and not release_diff.place
            for row in configurations:
                failure = _loss(change, row) if is_loss else ""
                yield Case(release, _full_name(row), failure)
    lost_releases = databases.names.removed
    for name, where in _only_in_one(databases):
        failure = where if name in lost_releases else ""
        yield Case(name, f"the release {name}", failure)


def _full_name(row: ChangedConfiguration) -> str:
    """Return a configuration with its variants, on one line."""
    configuration = row.configuration
    return " ".join((configuration.summary, *configuration.variants))


def _loss(change: str, row: ChangedConfiguration) -> str:
    removed = f"{row.specs.removed:,} of its binaries removed"
    return f"{change}: {removed}, {row.specs.kept:,} kept"


def _only_in_one(databases: DatabaseDiff) -> Iterator[tuple[str, str]]:
    """Yield the releases that only one database has, and a text: `is only in a.db`."""
    for name in databases.names.added:
        yield name, f"is only in {databases.new}"
    for name in databases.names.removed:
        yield name, f"is only in {databases.old}"


def _sections(release_diff: Diff) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each section that has any.

    A change, such as `added`, has up to four sections: packages, versions and stacks,
    and then configurations. The causes of rebuilds come last.
    """
    for change, configurations in release_diff.by_change.items():
        # `added`, or `only on derecho` if neither side is the older one.
        words = release_diff.words[change]
        if change in ("added", "removed"):
            packages = getattr(release_diff.packages, change)
            versions = getattr(release_diff.versions, change)
            stacks = getattr(release_diff.stacks, change)
            version_lines = []
            for package, names in grouped(versions).items():
                version_lines.append(f"{package} {', '.join(names)}")
            yield from _section(f"Packages {words}", len(packages), packages)
            yield from _section(f"Versions {words}", len(versions), version_lines)
            yield from _section(f"Stacks {words}", len(stacks), stacks)

        package_lines = []
        counts = Counter(row.configuration.package for row in configurations)
        for package, count in counts.items():
            package_lines.append(f"{package}: {counted(count, 'configuration')}")
        title = f"Configurations {words}"
        yield from _section(title, len(configurations), package_lines)

    # None if there were too many configurations to compare.
    causes = release_diff.causes or ()
    cause_lines = []
    for cause in causes:
        cause_lines.append(f"{cause}: {counted(cause.configurations, 'configuration')}")
    title = "Dependencies that differ" if release_diff.place else "Causes of rebuilds"
    yield from _section(title, len(causes), cause_lines)


def _section(
    title: str, total: int, lines: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield a title with its number, and the first lines; nothing if there are none.

    Args:
        title: such as `Packages added`.
        total: the number in the title: of versions, of which a line may have several.
        lines: the lines, of which at most `MOST_LINES` are printed.
    """
    if total == 0:
        return
    shown = list(lines[:MOST_LINES])
    hidden_count = len(lines) - len(shown)
    if hidden_count:
        shown.append(f"and {hidden_count:,} more: --json and --csv have all")
    yield f"{title}: {total:,}", shown
