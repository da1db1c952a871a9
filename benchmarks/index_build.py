"""Time the build of one index at the size of the site, and compare with its floor and
goals.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks import inputs
from benchmarks.build import Build, build
from benchmarks.measure import Run, median_of, run_module
from benchmarks.report import Measure, goals_table, stages_table


def report(folder: Path, records: int, runs: int, jobs: int | None) -> str:
    """Measure everything and return the tables."""
    index, file = inputs.index(folder, records), folder / "index.db"
    run_module("benchmarks.index_floor", [str(index)])  # Reads the file into memory.
    # Floor and build take turns, so that other load slows both down.
    pairs = [(_floor(index), build([index], file, jobs)) for _ in range(runs)]
    return _tables(index, pairs, build([index], file, jobs, memory=True).peak_bytes)


def _floor(index: Path) -> Run:
    return run_module("benchmarks.index_floor", [str(index)])


def _tables(index: Path, pairs: list[tuple[Run, Build]], peak: int) -> str:
    floor = median(decoding.seconds for decoding, _ in pairs)
    cpu = median(decoding.cpu_seconds for decoding, _ in pairs)
    ours = median_of([built for _, built in pairs])
    size = index.stat().st_size
    records, edges = map(int, pairs[0][0].output.split())
    measures = [
        Measure("floor: decode each record, one process", floor, "s", digits=2),
        Measure(f"build, median of {len(pairs)}", ours.seconds, "s", 9, digits=2),
        Measure("processor time of the build", ours.cpu_seconds, "s", digits=2),
        Measure("processor time, build ÷ floor", ours.cpu_seconds / cpu, "x", digits=1),
        Measure("build ÷ floor", ours.seconds / floor, "x", digits=1),
        Measure("peak memory, all processes", peak / 1e6, "MB", 600, digits=0),
        Measure("file ÷ index", 100 * ours.file_bytes / size, "%", 40),
    ]
    preamble = f"One index: {size / 1e6:,.0f} MB, {records:,} records, {edges:,} edges."
    return f"{preamble}\n\n{goals_table(measures)}{stages_table(ours.stages, ours.seconds)}"
