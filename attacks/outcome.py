"""The outcome of one kind of attack, and the table of all outcomes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.report import table

MOST_FAULTS = 10
"""Faults of one kind that the report shows."""
MOST_OF_ATTEMPT = 160
"""Characters of an attempt that are kept."""
MOST_OF_FAULT = 300
"""Characters of a fault that are kept."""

Attempt = TypeVar("Attempt")


@dataclass
class Outcome:
    """The attempts of one kind of attack, and the faults that they found.

    Attributes:
        kind: the name of the kind.
        tried: the number of attempts.
        faults: what did not hold.
        note: what was measured.
        waits: the time that a polite visitor waited, by attempt.
        harmless: the attempts without faults.
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
        title = attempt[:MOST_OF_ATTEMPT]
        if not faults:
            self.harmless.append(title)
        for fault in faults:
            self.faults.append(f"{title}: {fault[:MOST_OF_FAULT]}")


def until(seconds: float, attempts: Iterable[Attempt]) -> Iterator[Attempt]:
    """Yield attempts until they end or this time has passed, at least one."""
    end = time.monotonic() + seconds
    for attempt in attempts:
        yield attempt
        if time.monotonic() > end:
            return


def report(outcomes: Sequence[Outcome]) -> str:
    """Return the table of all kinds, and the first faults of each."""
    rows = []
    waits = []
    for outcome in outcomes:
        held = "no" if outcome.faults else "yes"
        rows.append([outcome.kind, f"{outcome.tried:,}", held, outcome.note])
        for attempt, wait in outcome.waits.items():
            waits.append([outcome.kind, attempt, wait])

    text = table(["", "tried", "held", "measured"], rows)
    if waits:
        head = ["", "during", "99 % of a polite visitor's waits"]
        text += f"\n\n{table(head, waits)}"

    for outcome in outcomes:
        for fault in outcome.faults[:MOST_FAULTS]:
            text += f"\n{outcome.kind}: {fault}"
        more_count = len(outcome.faults) - MOST_FAULTS
        if more_count > 0:
            text += f"\n{outcome.kind}: {more_count:,} more"
    return text


def survived(outcomes: Sequence[Outcome]) -> str:
    """Return the attempts that a server without defences survived.

    Such an attempt may test nothing.
    """
    lines = []
    for outcome in outcomes:
        harm_count = outcome.tried - len(outcome.harmless)
        lines.append(
            f"{outcome.kind}: {harm_count:,} of {outcome.tried:,} attempts did harm"
        )
        for attempt in outcome.harmless:
            lines.append(f"  harmless: {attempt}")
    return "\n".join(lines)
