"""One answer of ours beside what Spack did, and the table of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.report import table

MOST_LINES = 25
"""Last lines of Spack's output that are shown for a wrong answer."""


@dataclass(frozen=True, slots=True)
class Check:
    """One answer of ours, and what Spack did.

    Attributes:
        question: what was asked, of which database.
        answer: ours, in a few words.
        seen: what Spack did, in a few words.
        is_right: whether the two agree.
        evidence: what we printed and what Spack printed.
    """

    question: str
    answer: str
    seen: str
    is_right: bool
    evidence: str = ""

    @property
    def verdict(self) -> str:
        """Whether the two agree, in a word."""
        return "right" if self.is_right else "WRONG"

    @property
    def both(self) -> str:
        """Our answer, and what Spack did."""
        return f"{self.answer}; {self.seen}"


def report(checks: Sequence[Check]) -> str:
    """Return a table of all answers, and the evidence for those that are wrong."""
    rows = []
    evidence = ""
    for check in checks:
        rows.append([check.question, check.answer, check.seen, check.verdict])
        if not check.is_right:
            evidence += f"\n\n{check.question}: {check.answer}, but {check.seen}\n"
            evidence += check.evidence
    return table(["", "our answer", "Spack", ""], rows) + evidence


def quoted(lines: Iterable[str], prompt: str = "  ") -> str:
    """Return the last lines of a text, indented."""
    last = list(lines)[-MOST_LINES:]
    return "\n".join(f"{prompt}{line}" for line in last)
