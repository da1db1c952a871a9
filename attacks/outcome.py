"""The outcome of one kind of attack, and the table of all outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.report import table

MOST_FAULTS = 10


@dataclass
class Outcome:
    """The attempts of one kind of attack, and the faults that they found.

    `waits` has the time that a polite visitor waited during an attempt; `harmless` has
    the attempts without faults.
    """

    kind: str
    tried: int = 0
    faults: list[str] = field(default_factory=list)
    note: str = ""
    waits: dict[str, str] = field(default_factory=dict)
    harmless: list[str] = field(default_factory=list)

    def judge(self, attempt: str, faults: Sequence[str]) -> None:
        """Count one attempt, with the faults that it found."""
        self.tried += 1
        self.harmless += [] if faults else [attempt[:160]]
        self.faults += [f"{attempt[:160]}: {fault[:300]}" for fault in faults]


def report(outcomes: Sequence[Outcome]) -> str:
    """Return the table of all kinds, and the first faults of each."""
    rows = [
        [
            outcome.kind,
            f"{outcome.tried:,}",
            "no" if outcome.faults else "yes",
            outcome.note,
        ]
        for outcome in outcomes
    ]
    lines = [table(["", "tried", "held", "measured"], rows)]
    waits = [
        [outcome.kind, attempt, wait]
        for outcome in outcomes
        for attempt, wait in outcome.waits.items()
    ]
    if waits:
        lines.append(
            "\n\n" + table(["", "during", "99 % of a polite visitor's waits"], waits)
        )
    for outcome in outcomes:
        lines += [
            f"\n{outcome.kind}: {fault}" for fault in outcome.faults[:MOST_FAULTS]
        ]
        if len(outcome.faults) > MOST_FAULTS:
            lines.append(
                f"\n{outcome.kind}: {len(outcome.faults) - MOST_FAULTS:,} more"
            )
    return "".join(lines)


def survived(outcomes: Sequence[Outcome]) -> str:
    """Return the attempts that a server without defences survived: they may test
    nothing.
    """
    lines = []
    for outcome in outcomes:
        harmed = f"{outcome.tried - len(outcome.harmless):,} of {outcome.tried:,} attempts did harm"
        lines += [
            f"{outcome.kind}: {harmed}",
            *(f"  harmless: {attempt}" for attempt in outcome.harmless),
        ]
    return "\n".join(lines)
