"""The outcome of one kind of attack, and the table of all outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.report import table

MOST_TOLD = 10


@dataclass
class Outcome:
    """How much one kind of attack tried, and what did not hold.

    `waits` has, by what was tried, how long a polite visitor waited meanwhile; `harmless` has the
    attempts after which nothing was wrong.
    """

    kind: str
    tried: int = 0
    faults: list[str] = field(default_factory=list)
    note: str = ""
    waits: dict[str, str] = field(default_factory=dict)
    harmless: list[str] = field(default_factory=list)

    def judge(self, what: str, faults: Sequence[str]) -> None:
        """Count one attempt, with what is wrong with its result."""
        self.tried += 1
        self.harmless += [] if faults else [what[:160]]
        self.faults += [f"{what[:160]}: {fault[:300]}" for fault in faults]


def report(outcomes: Sequence[Outcome]) -> str:
    """Return the table of all kinds, and the first faults of each."""
    rows = [
        [each.kind, f"{each.tried:,}", "no" if each.faults else "yes", each.note]
        for each in outcomes
    ]
    lines = [table(["", "tried", "held", "measured"], rows)]
    waits = [[each.kind, what, wait] for each in outcomes for what, wait in each.waits.items()]
    if waits:
        lines.append("\n\n" + table(["", "while others do", "99 % of another's"], waits))
    for each in outcomes:
        lines += [f"\n{each.kind}: {fault}" for fault in each.faults[:MOST_TOLD]]
        if len(each.faults) > MOST_TOLD:
            lines.append(f"\n{each.kind}: {len(each.faults) - MOST_TOLD:,} more")
    return "".join(lines)


def survived(outcomes: Sequence[Outcome]) -> str:
    """Return the attempts that a server without defences survived: they may test nothing."""
    lines = []
    for each in outcomes:
        harmed = f"{each.tried - len(each.harmless):,} of {each.tried:,} attempts did harm"
        lines += [f"{each.kind}: {harmed}", *(f"  harmless: {what}" for what in each.harmless)]
    return "\n".join(lines)
