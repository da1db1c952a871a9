"""The answers for an environment, as frozen records."""

from __future__ import annotations

from dataclasses import dataclass

from spack_cache_db.query.why_not.reasons import WhyNot
from spack_cache_db.records import Configuration


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
