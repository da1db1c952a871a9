"""The answers for the specs of an environment, as records and in words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from spack_cache_db.errors import counted
from spack_cache_db.query.explanation import WhyNot
from spack_cache_db.records import Configuration
from spack_cache_db.row_forms import Rows

STATUSES = ("unanswerable", "none", "near", "unknown", "external", "binary", "installed")
"""The statuses of specs, in the order in which they are shown."""

OF_NODES = ("missing", "alike", "rebuilt")
"""The statuses of nodes of a lockfile that have no binary."""


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
        is_of_trees: whether the file has installed trees alone, and no build cache.
        others: the lines of a list that are not specs.
    """

    specs: tuple[CoveredSpec | CoveredNode, ...]
    is_lock: bool
    notes: tuple[str, ...] = ()
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
    def sentence(self) -> str:
        """How many are installed or have a binary, in words; of a lockfile the share as well."""
        installed = self.counted("installed")
        is_one = self.available == 1 or self.total == 1
        text = f"{self.available:,} of {counted(self.total, 'spec')} "
        if self.is_of_trees:
            text += "is installed" if is_one else "are installed"
        elif installed:
            text += "is installed or has" if is_one else "are installed or have"
            text += f" a binary, {installed:,} of them installed"
        else:
            text += "has a binary" if is_one else "have a binary"
        if externals := self.counted("external"):
            text += f"; {externals:,} more {'is' if externals == 1 else 'are'} external"
        if self.is_lock and self.total:
            text += f" ({self.available / self.total:.0%})"
        return text

    @property
    def statuses(self) -> str:
        """How many specs have each status that there is, in words."""
        counts = [(status, self.counted(status)) for status in (*OF_NODES, *STATUSES)]
        return ", ".join(f"{status} {count}" for status, count in counts if count)

    @property
    def counts(self) -> tuple[str, ...]:
        """How many specs have each status, if there is more than one; and each group's total."""
        texts = [self.statuses] if "," in self.statuses else []
        specs = [each for each in self.specs if isinstance(each, CoveredSpec)]
        groups = dict.fromkeys(each.group for each in specs)
        for group in groups if len(groups) > 1 else ():
            part = Cover(tuple(each for each in specs if each.group == group), is_lock=False)
            texts.append(f"{group or 'no group'}: {part.available:,} of {part.total:,}")
        return tuple(texts)

    def as_dict(self) -> dict[str, Any]:
        """Return what `cover --json` prints."""
        counts = {"binary": self.binary, "total": self.total}
        if self.is_lock:
            counts |= {status: self.counted(status) for status in reversed(OF_NODES)}
        else:
            counts |= {status: self.counted(status) for status in STATUSES if status != "binary"}
            nodes = {status: self.counted(status) for status in OF_NODES}
            counts |= {status: count for status, count in nodes.items() if count}
        return {"specs": [*map(_record, self.specs)], **counts, "notes": [*self.notes]}

    @property
    def rows(self) -> Rows:
        """What `cover --csv` prints: the records of the JSON, a configuration as one text."""
        records = [
            _record(each) | {"configuration": each.configuration and each.configuration.summary}
            for each in self.specs
        ]
        columns = dict.fromkeys(name for record in records for name in record)
        return Rows([*columns] or ["spec", "status"], records)


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
