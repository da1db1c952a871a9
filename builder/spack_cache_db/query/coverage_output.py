"""The answers for an environment: as records, and as a table, JSON, CSV and Markdown. Pure text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from spack_cache_db.query.explanation import WhyNot, in_words
from spack_cache_db.records import Configuration

_GAP = "  "


@dataclass(frozen=True, slots=True)
class CoveredSpec:
    """The answer for one spec that is asked for.

    Attributes:
        spec: the spec as it stands in the environment.
        status: `binary`; `near`, where leaving out one or two conditions finds some; `none`; or
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


@dataclass(frozen=True, slots=True)
class CoveredNode:
    """The answer for one node of a lockfile.

    Attributes:
        spec: the name and version of the node.
        status: `binary`; `rebuilt`, where there are only others of the same configuration; or
            `missing`.
        hash: the node's own.
        is_root: whether it was asked for, and is no dependency alone.
        configuration: what the lockfile says of it.
        others: the first hashes of the same configuration, what is current first, where its own
            has no binary.
        other_count: how many there are.
    """

    spec: str
    status: str
    hash: str
    is_root: bool
    configuration: Configuration
    others: tuple[str, ...] = ()
    other_count: int = 0


@dataclass(frozen=True, slots=True)
class Cover:
    """The answers for all specs of an environment, in its order; `notes` what was left aside."""

    specs: tuple[CoveredSpec, ...] | tuple[CoveredNode, ...]
    is_lock: bool
    notes: tuple[str, ...] = ()

    @property
    def binary(self) -> int:
        """How many have a binary."""
        return self.counted("binary")

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.specs)

    def counted(self, status: str) -> int:
        """Return how many have a status."""
        return sum(each.status == status for each in self.specs)


def cover_record(found: Cover) -> dict[str, Any]:
    """Return a cover as plain values, as it is written in JSON."""
    counts = {"binary": found.binary, "total": found.total}
    if found.is_lock:
        counts |= {status: found.counted(status) for status in ("rebuilt", "missing")}
    else:
        counts |= {status: found.counted(status) for status in ("near", "none", "unanswerable")}
    return {"specs": [*map(_record, found.specs)], **counts, "notes": [*found.notes]}


def _record(each: CoveredSpec | CoveredNode) -> dict[str, Any]:
    words = each.configuration._asdict() if each.configuration else None
    if isinstance(each, CoveredNode):
        return {
            "spec": each.spec,
            "status": each.status,
            "hash": each.hash,
            "root": each.is_root,
            "configuration": words,
            "others": [*each.others],
            "other_count": each.other_count,
        }
    return {
        "spec": each.spec,
        "status": each.status,
        "line": each.line or None,
        "query": each.query or None,
        "configurations": each.configurations,
        "spec_count": each.spec_count,
        "configuration": words,
        "hash": each.hash,
        "reasons": [*each.reasons],
        "corrected": each.corrected,
    }


def cover_json(found: Cover) -> str:
    """Return the record as JSON."""
    return json.dumps(cover_record(found), indent=2, ensure_ascii=False)


def cover_csv(found: Cover) -> str:
    """Return CSV, one line a spec; the columns are those of the JSON, a configuration in words."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    records = [*map(_record, found.specs)]
    names = [*records[0]] if records else ["spec", "status"]
    writer.writerow(names)
    for record in records:
        words = record["configuration"]
        shown = in_words(Configuration(**words)) if words else None
        cells = record | {"configuration": shown}
        writer.writerow(_cell(cells[name]) for name in names)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return "; ".join(value)
    return int(value) if isinstance(value, bool) else value


def cover_markdown(found: Cover) -> str:
    """Return the total and a table in Markdown."""
    header = ["| status | spec | answer |", "| --- | --- | --- |"]
    rows = [
        f"| {each.status} | `` {_escaped(each.spec)} `` | {_escaped(answer(each))} |"
        for each in in_order(found.specs)
    ]
    return "\n".join([f"{total(found)}.", "", *header, *rows])


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def cover_table(found: Cover, width: int | None = None) -> str:
    """Return the total and an aligned table; what lacks a binary stands first.

    Args:
        found: the cover.
        width: the longest line that is wanted; None for any.
    """
    rows = [(each.status, each.spec, answer(each)) for each in in_order(found.specs)]
    if not rows:
        return total(found)
    first, second = (max(len(row[place]) for row in rows) for place in (0, 1))
    lines = (
        _GAP.join((status.ljust(first), spec.ljust(second), said)).rstrip()
        for status, spec, said in rows
    )
    fitted = (
        line if width is None or len(line) <= width else f"{line[: width - 1]}…" for line in lines
    )
    return "\n".join([total(found), "", *fitted])


def total(found: Cover) -> str:
    """Return how many have a binary, in words; of a lockfile the share as well."""
    text = f"{found.binary:,} of {found.total:,} specs have a binary"
    if not found.is_lock or not found.total:
        return text
    rebuilt = found.counted("rebuilt")
    share = f"{text} ({found.binary / found.total:.0%})"
    return (
        f"{share}; of {rebuilt:,} there are others of the same configuration" if rebuilt else share
    )


def in_order(
    specs: Iterable[CoveredSpec] | Iterable[CoveredNode],
) -> list[CoveredSpec | CoveredNode]:
    """Return what lacks a binary, then what has one, each in its order."""
    return sorted(specs, key=lambda each: each.status == "binary")


def answer(each: CoveredSpec | CoveredNode) -> str:
    """Return what there is to say of one answer, on one line."""
    if isinstance(each, CoveredNode):
        if not each.others:
            return f"/{each.hash}" + (" (root)" if each.is_root else "")
        more = f" and {each.other_count - 1:,} more" if each.other_count > 1 else ""
        return f"/{each.hash} would be replaced by /{each.others[0]}{more}"
    if each.status == "binary" and each.configuration is not None:
        return f"{in_words(each.configuration)} /{each.hash}"
    instead = (f"perhaps you mean: {each.corrected}",) if each.corrected else ()
    return " ".join("; ".join((*each.reasons, *instead)).split())
