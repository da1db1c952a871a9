"""The answers for all environments of a folder: one report, as a table, JSON, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from spack_cache_db.query.coverage_output import (
    Cover,
    cover_markdown,
    csv_of_records,
    csv_record,
    statuses_told,
    wrapped,
)
from spack_cache_db.query.serialization import json_text

_GAP = "  "


@dataclass(frozen=True, slots=True)
class EnvironmentCover:
    """The answers for one environment; None, and an error, if it cannot be read."""

    path: str
    cover: Cover | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class FolderCover:
    """The answers for the environments of a folder, in the order of their paths."""

    environments: tuple[EnvironmentCover, ...]

    @property
    def covers(self) -> list[tuple[str, Cover]]:
        """The environments that can be read, each with its path."""
        return [(each.path, each.cover) for each in self.environments if each.cover is not None]

    @property
    def binary(self) -> int:
        """How many specs have a binary, and are not installed."""
        return sum(cover.binary for _, cover in self.covers)

    @property
    def available(self) -> int:
        """How many specs are installed or have a binary."""
        return sum(cover.available for _, cover in self.covers)

    @property
    def total(self) -> int:
        """How many specs need one."""
        return sum(cover.total for _, cover in self.covers)


def folder_json(found: FolderCover) -> str:
    """Return JSON: the records of all environments, each with its path, and the totals."""
    records = [
        {"path": each.path, **(each.cover.as_dict() if each.cover else {"error": each.error})}
        for each in found.environments
    ]
    counts = {"binary": found.binary, "total": found.total}
    return json_text({"environments": records, **counts})


def folder_csv(found: FolderCover) -> str:
    """Return CSV, one line a spec, with the path of its environment first."""
    records = (
        {"environment": path, **csv_record(each)}
        for path, cover in found.covers
        for each in cover.rows
    )
    return csv_of_records(records, ("environment", "spec", "status"))


def folder_markdown(found: FolderCover) -> str:
    """Return the totals of all environments as a table, then the table of each."""
    header = ["| environment | binaries | |", "| --- | ---: | --- |"]
    rows = [f"| `{path}` | {numbers} | {said} |" for path, numbers, said in _lines(found)]
    parts = ["\n".join([f"{_total(found)}.", "", *header, *rows])]
    parts += [f"## {path}\n\n{cover_markdown(cover)}" for path, cover in found.covers]
    return "\n\n".join(parts)


def folder_table(found: FolderCover, width: int | None = None) -> str:
    """Return the total, and a line for each environment with its numbers.

    Args:
        found: the answers.
        width: the longest line that is wanted; None for any. What is longer is wrapped.
    """
    lines = [*_lines(found)]
    first, second = (max((len(line[at]) for line in lines), default=0) for at in (0, 1))
    table = chain.from_iterable(
        wrapped(_GAP.join((path.ljust(first), numbers.rjust(second))), said, width)
        for path, numbers, said in lines
    )
    return "\n".join([_total(found), "", *table])


def _total(found: FolderCover) -> str:
    count = len(found.environments)
    of = "1 environment" if count == 1 else f"{count:,} environments"
    is_installed = found.available > found.binary
    have = "are installed or have a binary" if is_installed else "have a binary"
    return f"{found.available:,} of {found.total:,} specs {have}, in {of}"


def _lines(found: FolderCover) -> Iterator[tuple[str, str, str]]:
    """Yield the path of each environment, its numbers, and how many specs have each status."""
    for each in found.environments:
        if each.cover is None:
            yield each.path, "-", f"cannot be read: {_one_line(each.error.splitlines())}"
        else:
            numbers = f"{each.cover.available:,} of {each.cover.total:,}"
            yield each.path, numbers, statuses_told(each.cover)


def _one_line(lines: Iterable[str]) -> str:
    return "; ".join(" ".join(line.split()) for line in lines)
