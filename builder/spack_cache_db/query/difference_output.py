"""A difference between two releases as text: for a terminal, as Markdown, JSON and CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from spack_cache_db.query.difference import ChangedConfiguration, Changes, Diff
from spack_cache_db.query.serialization import csv_text, json_text
from spack_cache_db.records import Configuration

MOST_LINES = 40
"""So many lines of a section are shown on a terminal and in Markdown."""


class Section(NamedTuple):
    """One part of the report: what it lists, how many there are, a line for each."""

    title: str
    total: int
    lines: tuple[str, ...]


def as_json(found: Diff) -> str:
    """Return the difference as JSON."""
    return json_text(found.as_dict())


def as_csv(found: Diff) -> str:
    """Return CSV, one line per configuration that was added, removed or rebuilt."""
    names = ("change", *Configuration._fields, "kept", "added", "removed")
    changes = ((change, each.configuration, each.specs) for change, each in _changes(found))
    rows = (
        (change, *words, " ".join(variants), *specs)
        for change, (*words, variants), specs in changes
    )
    return csv_text(names, rows)


def as_text(found: Diff) -> str:
    """Return the report for a terminal."""
    lines = [sentence(found)]
    for title, total, shown in sections(found):
        lines += ["", f"{title}: {total:,}", *(f"  {line}" for line in _first(shown))]
    return "\n".join(lines)


def as_markdown(found: Diff) -> str:
    """Return the report for release notes and pull requests."""
    lines = [f"## {found.old} → {found.new}", "", sentence(found)]
    for title, total, shown in sections(found):
        lines += ["", f"### {title}: {total:,}", "", *(f"- {line}" for line in _first(shown))]
    return "\n".join(lines)


def sentence(found: Diff | Changes) -> str:
    """Return the totals as one sentence."""
    if found.is_empty:
        return f"{found.new} has the same {found.specs.kept:,} specs as {found.old}."
    kept, added, removed = found.specs
    was = "was" if len(found.rebuilt) == 1 else "were"
    return (
        f"From {found.old} to {found.new}, {removed:,} specs were removed, {added:,} added "
        f"and {kept:,} kept; {_many(len(found.rebuilt))} {was} rebuilt."
    )


def sections(found: Diff) -> tuple[Section, ...]:
    """Return what changed, part by part: what was removed first, then added, then rebuilt."""
    parts: list[Section] = []
    for change in ("removed", "added"):
        packages, stacks = getattr(found.packages, change), getattr(found.stacks, change)
        versions = getattr(found.versions, change)
        configurations = getattr(found.configurations, change)
        parts += [
            Section(f"Packages {change}", len(packages), packages),
            Section(f"Versions {change}", len(versions), _by_package(versions)),
            Section(f"Stacks {change}", len(stacks), stacks),
            Section(f"Configurations {change}", len(configurations), _counted(configurations)),
        ]
    causes = tuple(f"{cause}: {_many(cause.configurations)}" for cause in found.causes or ())
    parts.append(Section("Configurations rebuilt", len(found.rebuilt), _counted(found.rebuilt)))
    parts.append(Section("Causes of rebuilds", len(causes), causes))
    return tuple(each for each in parts if each.total)


def _changes(found: Diff) -> Iterator[tuple[str, ChangedConfiguration]]:
    for change, some in (
        ("removed", found.configurations.removed),
        ("added", found.configurations.added),
        ("rebuilt", found.rebuilt),
    ):
        for each in some:
            yield change, each


def _by_package(versions: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return a line for each package, with its versions."""
    found: dict[str, list[str]] = {}
    for package, version in versions:
        found.setdefault(package, []).append(version)
    return tuple(f"{package} {', '.join(some)}" for package, some in found.items())


def _counted(some: Sequence[ChangedConfiguration]) -> tuple[str, ...]:
    """Return a line for each package, with its number of configurations."""
    counts = Counter(each.configuration.package for each in some)
    return tuple(f"{package}: {_many(count)}" for package, count in counts.items())


def _many(count: int) -> str:
    return f"{count:,} configuration{'' if count == 1 else 's'}"


def _first(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"and {len(lines) - MOST_LINES:,} more: --json and --csv have all"
