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
        if self.at_least:
            return self.value >= self.goal
        return self.value <= self.goal

    def cells(self) -> list[str]:
        """Return the row of the table: name, value, goal, and whether it is met."""
        value = f"{self.value:,.{self.digits}f} {self.unit}".strip()
        if self.goal is None:
            return [self.name, value, "", ""]
        sign = "≥" if self.at_least else "≤"
        goal = f"{sign} {self.goal:g} {self.unit}".strip()
        verdict = "yes" if self.met else "**no**"
        return [self.name, value, goal, verdict]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, the first column aligned left and the others right."""
    widths = [len(name) for name in head]
    for row in rows:
        widths = [max(pair) for pair in zip(widths, map(len, row), strict=True)]

    # The line below the head says how each column is aligned.
    rule = [":" + "-" * (widths[0] - 1)]
    for width in widths[1:]:
        rule.append("-" * (width - 1) + ":")

    lines = [_line(head, widths), _line(rule, widths)]
    lines += [_line(row, widths) for row in rows]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a line of a table."""
    texts = [cells[0].ljust(widths[0])]
    for cell, width in zip(cells[1:], widths[1:], strict=True):
        texts.append(cell.rjust(width))
    return f"| {' | '.join(texts)} |"


def goals_table(measures: Sequence[Measure]) -> str:
    """Return the table of measurements and goals."""
    rows = [measure.cells() for measure in measures]
    return table(["", "measured", "goal", "met"], rows)


def stages_table(stages: Mapping[str, float], seconds: float) -> str:
    """Return the table of a build's stages, or an empty text if it has none."""
    if not stages:
        return ""
    rows = []
    for name, time in stages.items():
        percent = 100 * time / seconds
        rows.append([name, f"{time:.2f} s", f"{percent:.0f} %"])
    return "\n\n" + table(["stage", "time", "of the build"], rows)


def write_section(file: Path, name: str, text: str) -> None:
    """Write `text` between the markers of section `name` in `file`; add missing
    markers.
    """
    begin = f"<!-- begin {name} -->"
    end = f"<!-- end {name} -->"
    old = "# Performance\n"
    if file.exists():
        old = file.read_text(encoding="utf-8")
    if begin not in old:
        old = f"{old.rstrip()}\n\n{begin}\n{end}\n"
    before, _, rest = old.partition(begin)
    _, _, after = rest.partition(end)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
