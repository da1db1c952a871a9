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
    index = inputs.index(folder, records)
    file = folder / "index.db"
    _decode(index)  # Reads the file into memory.

    # Floor and build take turns, so that other load slows both down.
    floors: list[Run] = []
    builds: list[Build] = []
    for _ in range(runs):
        floors.append(_decode(index))
        builds.append(build([index], file, jobs))
    peak = build([index], file, jobs, memory=True).peak_bytes

    floor_seconds = median(run.seconds for run in floors)
    floor_cpu = median(run.cpu_seconds for run in floors)
    ours = median_of(builds)
    ratio = ours.seconds / floor_seconds
    cpu_ratio = ours.cpu_seconds / floor_cpu
    index_bytes = index.stat().st_size
    share = 100 * ours.file_bytes / index_bytes
    measures = [
        Measure("floor: decode each record, one process", floor_seconds, "s", digits=2),
        Measure(f"build, median of {runs}", ours.seconds, "s", 9, digits=2),
        Measure("processor time of the build", ours.cpu_seconds, "s", digits=2),
        Measure("processor time, build ÷ floor", cpu_ratio, "x", digits=1),
        Measure("build ÷ floor", ratio, "x", digits=1),
    ]
    measures += [
        Measure("peak memory, all processes", peak / 1e6, "MB", 600, digits=0),
        Measure("file ÷ index", share, "%", 40),
    ]

    # The floor prints what it has decoded.
    record_count, edge_count = map(int, floors[0].output.split())
    counts = f"{record_count:,} records, {edge_count:,} edges"
    preamble = f"One index: {index_bytes / 1e6:,.0f} MB, {counts}."
    stages = stages_table(ours.stages, ours.seconds)
    return f"{preamble}\n\n{goals_table(measures)}{stages}"


def _decode(index: Path) -> Run:
    return run_module("benchmarks.index_floor", [str(index)])
