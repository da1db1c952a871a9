"""The script of `benchmarks.script`, measured on a part of the pages: all of them would
take minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks import inputs
from benchmarks.measure import run_module
from tests.corpus import pages as corpus

SHARE = 0.05


@dataclass(frozen=True, slots=True)
class ScriptBuild:
    """One run of the script.

    Attributes:
        seconds: the time for all pages, which grows with their bytes.
        peak_bytes: the memory, which does not; 0 if it was not measured.
        share: the part of the pages that was measured.
    """

    seconds: float
    peak_bytes: int
    share: float


def script_build(
    folder: Path, scale: float, totals: corpus.Totals, *, memory: bool = False
) -> ScriptBuild:
    """Run the script on a part of the corpus of this scale, whose totals are given."""
    part_scale = max(scale * SHARE, corpus.SCALE.min or 0)
    pages, part = inputs.corpus(folder, part_scale, "usual")
    file = folder / "script.db"
    file.unlink(missing_ok=True)
    run = run_module("benchmarks.script", [str(pages), str(file)], memory=memory)
    share = part.page_bytes / totals.page_bytes
    return ScriptBuild(run.seconds / share, run.peak_bytes, share)
