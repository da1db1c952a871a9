"""Tables of measurements and goals, for the terminal and NOTES.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NOTES = Path(__file__).parent / "NOTES.md"


@dataclass(frozen=True, slots=True)
class Measure:
    """One measurement; `goal` is its maximum, or its minimum if `at_least`."""

    name: str
    value: float
    unit: str = ""
    goal: float | None = None
    at_least: bool = False
    digits: int = 1

    @property
    def met(self) -> bool:
        """Whether the goal is reached; always true without a goal."""
        if self.goal is None:
            return True
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def cells(self) -> list[str]:
        """Return the row of the table."""
        sign = "≥" if self.at_least else "≤"
        goal = "" if self.goal is None else f"{sign} {self.goal:g} {self.unit}".strip()
        verdict = "" if self.goal is None else "yes" if self.met else "**no**"
        return [
            self.name,
            f"{self.value:,.{self.digits}f} {self.unit}".strip(),
            goal,
            verdict,
        ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, the first column aligned left and the others right."""
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first = cells[0].ljust(widths[0])
        numbers = [
            cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)
        ]
        return f"| {' | '.join([first, *numbers])} |"

    rule = [
        ":" + "-" * (widths[0] - 1),
        *("-" * (width - 1) + ":" for width in widths[1:]),
    ]
    return "\n".join([line(head), f"| {' | '.join(rule)} |", *map(line, rows)])


def goals_table(measures: Sequence[Measure]) -> str:
    """Return the table of measurements and goals."""
    return table(
        ["", "measured", "goal", "met"], [measure.cells() for measure in measures]
    )


def stages_table(stages: Mapping[str, float], seconds: float) -> str:
    """Return the table of a build's stages, or an empty text if it has none."""
    if not stages:
        return ""
    rows = [
        [name, f"{time:.2f} s", f"{100 * time / seconds:.0f} %"]
        for name, time in stages.items()
    ]
    return "\n\n" + table(["stage", "time", "of the build"], rows)


def write_section(file: Path, name: str, text: str) -> None:
    """Write `text` between the markers of section `name` in `file`; add missing
    markers.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    old = file.read_text(encoding="utf-8") if file.exists() else "# Performance\n"
    if begin not in old:
        old = f"{old.rstrip()}\n\n{begin}\n{end}\n"
    before, _, section = old.partition(begin)
    after = section.partition(end)[2]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
