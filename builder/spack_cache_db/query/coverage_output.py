"""The answers for an environment, or for those of a folder: records, and what commands print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from textwrap import wrap
from typing import Any

from spack_cache_db.errors import counted
from spack_cache_db.query.answers import csv_text, json_text
from spack_cache_db.query.explanation import WhyNot
from spack_cache_db.records import Configuration

STATUSES = ("unanswerable", "none", "near", "unknown", "external", "binary", "installed")
"""The statuses of specs, in the order in which they are shown."""

OF_NODES = ("missing", "alike", "rebuilt")
"""The statuses of nodes of a lockfile that have no binary."""

_GAP = "  "
_WIDEST = 40
"""Columns that specs take in a table; an answer to a longer one stands behind it, or below."""

_SHORTEST = 30
"""Columns of an answer that is worth a column of its own."""


@dataclass(frozen=True, slots=True)
class CoveredSpec:
    """The answer for one spec that is asked for.

    Attributes:
        spec: the spec as it stands in the environment.
        status: `installed`, where an installed tree has it; `binary`; `near`, where leaving out one
            or two conditions finds some; `none`; `unknown`, where binaries satisfy all of it that
            the database shows; `external`, where Spack takes an external and nothing else; or
            `unanswerable`.
        line: where it stands, counted from 1; 0 where it stands in no text.
        query: the spec with what is required of it, as one would ask `find`.
        configurations: how many satisfy it.
        spec_count: how many specs these have.
        configuration: the newest of them, or the nearest where there is none.
        hash: the current spec of the newest configuration that satisfies it.
        why: why there is none; None where there is one, or nothing can be said.
        reasons: the same in sentences, or why it cannot be answered.
        corrected: the spec to type instead.
        group: the group of specs in which it stands.
        external: the environment's external that satisfies it.
        release: the first release that has that spec, an installed tree where one has it.
        mirror: the URL of the mirror that has it; None where nothing says it, or it is installed.
    """

    spec: str
    status: str
    line: int
    query: str
    configurations: int = 0
    spec_count: int = 0
    configuration: Configuration | None = None
    hash: str | None = None
    why: WhyNot | None = None
    reasons: tuple[str, ...] = ()
    corrected: str | None = None
    group: str = ""
    external: str = ""
    release: str | None = None
    mirror: str | None = None


@dataclass(frozen=True, slots=True)
class CoveredNode:
    """The answer for one node of a lockfile.

    Attributes:
        spec: the name and version of the node.
        status: `installed`; `binary`; `rebuilt`, where others have the same configuration and need
            the same to run; `alike`, where others have the same configuration only; or `missing`.
        hash: the node's own.
        is_root: whether it was asked for, and is no dependency alone.
        configuration: what the lockfile says of it.
        others: where its own hash has no binary, the first of those that are rebuilt or alike:
            what is current first, or what differs least.
        other_count: how many there are.
        differences: what the first that is alike needs otherwise.
        release: the first release that has the node's own hash, or else the first of the others.
        mirror: the URL of the mirror that has it; None where nothing says it, or it is installed.
    """

    spec: str
    status: str
    hash: str
    is_root: bool
    configuration: Configuration
    others: tuple[str, ...] = ()
    other_count: int = 0
    differences: tuple[str, ...] = ()
    release: str | None = None
    mirror: str | None = None


@dataclass(frozen=True, slots=True)
class Cover:
    """The answers for all specs of an environment, in its order.

    Attributes:
        specs: the answers; of a `spack.yaml`, those of lockfiles that it includes come last.
        is_lock: whether the environment is a lockfile.
        notes: what of it was left aside, and why.
        only: the statuses to show, all if there are none; totals are those of all answers.
        is_of_trees: whether the file has installed trees alone, and no build cache.
        others: the lines of a list that are not specs.
    """

    specs: tuple[CoveredSpec | CoveredNode, ...]
    is_lock: bool
    notes: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    is_of_trees: bool = False
    others: tuple[str, ...] = ()

    @property
    def binary(self) -> int:
        """How many have a binary, and are not installed."""
        return self.counted("binary")

    @property
    def available(self) -> int:
        """How many are installed or have a binary."""
        return self.counted("installed") + self.binary

    @property
    def total(self) -> int:
        """How many need one: all but externals."""
        return len(self.specs) - self.counted("external")

    def counted(self, status: str) -> int:
        """Return how many have a status."""
        return sum(each.status == status for each in self.specs)

    @property
    def rows(self) -> list[CoveredSpec | CoveredNode]:
        """The answers to show."""
        return [each for each in self.specs if not self.only or each.status in self.only]

    def as_dict(self) -> dict[str, Any]:
        """Return what `cover --json` prints."""
        counts = {"binary": self.binary, "total": self.total}
        if self.is_lock:
            counts |= {status: self.counted(status) for status in reversed(OF_NODES)}
        else:
            counts |= {status: self.counted(status) for status in STATUSES if status != "binary"}
            nodes = {status: self.counted(status) for status in OF_NODES}
            counts |= {status: count for status, count in nodes.items() if count}
        return {"specs": [*map(_record, self.rows)], **counts, "notes": [*self.notes]}


def _record(each: CoveredSpec | CoveredNode) -> dict[str, Any]:
    values = {field.name.removeprefix("is_"): getattr(each, field.name) for field in fields(each)}
    record = {
        name: [*value] if type(value) is tuple else value
        for name, value in values.items()
        if name != "why"
    }
    if isinstance(each, CoveredSpec):
        record |= {name: record[name] or None for name in ("line", "query", "group", "external")}
    return record | {"configuration": each.configuration and each.configuration._asdict()}


def cover_json(found: Cover) -> str:
    """Return the record as JSON."""
    return json_text(found.as_dict())


def cover_csv(found: Cover) -> str:
    """Return CSV, one line a spec; the columns are those of the JSON, a configuration in words."""
    return _csv([_csv_record(each) for each in found.rows], ("spec", "status"))


def _csv_record(each: CoveredSpec | CoveredNode) -> dict[str, Any]:
    """Return the record of one answer as a line of CSV has it."""
    return _record(each) | {"configuration": each.configuration and each.configuration.summary}


def _csv(records: list[dict[str, Any]], otherwise: Sequence[str]) -> str:
    """Return records as CSV; its columns are the keys of all, or `otherwise` if there are none."""
    names = [*dict.fromkeys(name for each in records for name in each)] or otherwise
    return csv_text(names, ([_cell(each.get(name)) for name in names] for each in records))


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return "; ".join(value)
    return int(value) if isinstance(value, bool) else value


def cover_markdown(found: Cover) -> str:
    """Return the total and a table in Markdown."""
    header = ["| status | spec | answer |", "| --- | --- | --- |"]
    rows = [
        f"| {each.status} | `` {_escaped(each.spec)} `` | {_escaped(answer(each))} |"
        for each in in_order(found.rows)
    ]
    return "\n".join([f"{total(found)}.", "", *header, *rows])


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def cover_table(found: Cover, width: int | None = None) -> str:
    """Return the totals and an aligned table; what lacks a binary stands first.

    An answer that several lines share stands at the first of them.

    Args:
        found: the cover.
        width: the longest line that is wanted; None for any. What is longer is wrapped.
    """
    specs = in_order(found.rows)
    lines = [total(found), *counts_told(found)]
    if not specs:
        return "\n".join(lines)
    first = max(len(each.status) for each in specs)
    second = min(max(len(each.spec) for each in specs), _WIDEST)
    lines.append("")
    before = None
    for each in specs:
        said = (each.status, answer(each))
        shown = "(the same)" if said == before and len(said[1]) > len("(the same)") else said[1]
        head = _GAP.join((each.status.ljust(first), each.spec.ljust(second)))
        lines += wrapped(head, shown, width)
        before = said
    return "\n".join(lines)


def statuses_told(found: Cover) -> str:
    """Return how many specs have each status that there is."""
    counts = [(status, found.counted(status)) for status in (*OF_NODES, *STATUSES)]
    return ", ".join(f"{status} {count}" for status, count in counts if count)


def counts_told(found: Cover) -> Iterator[str]:
    """Yield how many specs have each status, if it is more than one; and each group's total."""
    if "," in (told := statuses_told(found)):
        yield told
    groups = dict.fromkeys(each.group for each in found.specs if isinstance(each, CoveredSpec))
    for group in groups if len(groups) > 1 else ():
        own = [each for each in found.specs if isinstance(each, CoveredSpec)]
        part = Cover(tuple(each for each in own if each.group == group), is_lock=False)
        yield f"{group or 'no group'}: {part.available:,} of {part.total:,}"


def wrapped(head: str, text: str, width: int | None) -> list[str]:
    """Return a line, or several of at most `width` characters with what follows indented."""
    line = f"{head}{_GAP}{text}".rstrip()
    if width is None or len(line) <= width:
        return [line]
    column = len(head) + len(_GAP)
    if width - column >= _SHORTEST:
        first, *more = wrap(text, width - column)
        return [f"{head}{_GAP}{first}", *(" " * column + each for each in more)]
    indent = " " * 4
    return [
        *wrap(head.rstrip(), width, subsequent_indent=indent),
        *wrap(text, width, initial_indent=indent, subsequent_indent=indent),
    ]


def total(found: Cover) -> str:
    """Return how many are installed or have a binary, in words; of a lockfile the share as well."""
    have = "are installed" if found.is_of_trees else "have a binary"
    text = f"{found.available:,} of {found.total:,} specs {have}"
    if not found.is_of_trees and (installed := found.counted("installed")):
        text = f"{found.available:,} of {found.total:,} specs are installed or have a binary"
        text += f", {installed:,} of them installed"
    if externals := found.counted("external"):
        text += f"; {externals:,} more {'is' if externals == 1 else 'are'} external"
    if found.is_lock and found.total:
        text += f" ({found.available / found.total:.0%})"
    return text


def in_order(specs: Iterable[CoveredSpec | CoveredNode]) -> list[CoveredSpec | CoveredNode]:
    """Return what lacks a binary, then what has one, each in its order."""
    order = {status: place for place, status in enumerate((*OF_NODES, *STATUSES))}
    return sorted(specs, key=lambda each: order[each.status])


def answer(each: CoveredSpec | CoveredNode) -> str:
    """Return what there is to say of one answer, on one line."""
    place = f" in {each.release}" if each.release else ""
    if isinstance(each, CoveredNode):
        if not each.others:
            return f"/{each.hash}{place}" + (" (root)" if each.is_root else "")
        more = f" and {each.other_count - 1:,} more" if each.other_count > 1 else ""
        if each.status == "alike":
            differs = "; ".join(each.differences)
            return f"/{each.hash} is not /{each.others[0]}{more}{place}, which differs: {differs}"
        return f"/{each.hash} would be replaced by /{each.others[0]}{more}{place}"
    if each.status == "external":
        return each.external
    also = f"; or the external {each.external}" if each.external else ""
    if each.status in ("binary", "installed") and each.configuration is not None:
        return f"{each.configuration.summary} /{each.hash}{place}{also}"
    instead = (f"perhaps you mean: {each.corrected}",) if each.corrected else ()
    return " ".join("; ".join((*each.reasons, *instead)).split()) + also


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
    def whole(self) -> Cover:
        """The answers for all of them as one."""
        every = chain.from_iterable(cover.specs for _, cover in self.covers)
        return Cover(tuple(every), is_lock=False)


def folder_json(found: FolderCover) -> str:
    """Return JSON: the records of all environments, each with its path, and the totals."""
    records = [
        {"path": each.path, **(each.cover.as_dict() if each.cover else {"error": each.error})}
        for each in found.environments
    ]
    whole = found.whole
    return json_text({"environments": records, "binary": whole.binary, "total": whole.total})


def folder_csv(found: FolderCover) -> str:
    """Return CSV, one line a spec, with the path of its environment first."""
    records = [
        {"environment": path, **_csv_record(each)}
        for path, cover in found.covers
        for each in cover.rows
    ]
    return _csv(records, ("environment", "spec", "status"))


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
    whole, environments = found.whole, counted(len(found.environments), "environment")
    have = "are installed or have a binary" if whole.counted("installed") else "have a binary"
    return f"{whole.available:,} of {whole.total:,} specs {have}, in {environments}"


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
