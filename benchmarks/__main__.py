"""`python -m benchmarks`: time builds at the size of the site, and compare with the
goals.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import click

from benchmarks import index_build, inputs, nights
from benchmarks.build import Build, build
from benchmarks.measure import CommandFailedError, Run, median_of, run_module
from benchmarks.options import folder_option, runs_option, scale_option
from benchmarks.report import (
    NOTES,
    Measure,
    goals_table,
    stages_table,
    table,
    write_section,
)
from benchmarks.script_build import script_build
from tests.corpus import pages as corpus


class Goals(NamedTuple):
    """The time of a build ÷ that of the floor, and its size in percent of the pages."""

    time: float
    size: float


GOALS = {
    "usual": Goals(time=3.5, size=15),
    "high": Goals(time=3.5, size=17),
}
"""The goals of each variety."""


@click.command()
@scale_option
@click.option(
    "--variety",
    "varieties",
    type=corpus.VARIETY,
    multiple=True,
    default=[*GOALS],
    show_default=True,
    help="How much the specs of a package differ.",
)
@click.option(
    "--large",
    type=corpus.SCALE,
    multiple=True,
    help="Also build a corpus of this scale, once.",
)
@click.option(
    "--records",
    default=150_000,
    show_default=True,
    type=click.IntRange(0),
    help="Records of the index; 0 leaves it out.",
)
@click.option(
    "--nights/--no-nights",
    "with_nights",
    default=True,
    show_default=True,
    help="Also build from the database of the night before.",
)
@runs_option
@click.option(
    "--jobs", type=int, help="Worker processes of the build.  [default: as build]"
)
@folder_option
@click.option(
    "--write", is_flag=True, help="Write the tables into benchmarks/NOTES.md."
)
def main(
    scale: float,
    varieties: tuple[str, ...],
    large: tuple[float, ...],
    records: int,
    with_nights: bool,
    runs: int,
    jobs: int | None,
    folder: Path,
    write: bool,
) -> None:
    """Compare the build with the floor, the script, and its goals."""
    try:
        texts = {}
        for variety in varieties:
            name = f"build table, {variety} variety"
            texts[name] = report(folder, scale, variety, runs, jobs)
        if with_nights:
            texts["night table"] = nights.report(folder, scale, "usual", runs, jobs)
        if large:
            texts["scale table"] = larger_report(folder, [scale, *large], jobs)
        if records:
            texts["index table"] = index_build.report(folder, records, runs, jobs)
    except CommandFailedError as error:
        raise click.ClickException(str(error)) from error
    for name, text in texts.items():
        click.echo(f"{text}\n")
        if write:
            write_section(NOTES, name, text)


def report(
    folder: Path, scale: float, variety: str, runs: int, jobs: int | None
) -> str:
    """Measure everything on one corpus and return the tables."""
    pages, totals = inputs.corpus(folder, scale, variety)
    file = folder / "bench.db"

    # Floor and build take turns, so that other load slows both down.
    floors: list[Run] = []
    builds: list[Build] = []
    for _ in range(runs):
        floors.append(_floor(pages))
        builds.append(build([pages], file, jobs))
    ours = median_of(builds)
    peak = build([pages], file, jobs, memory=True).peak_bytes

    measures = _build_measures(floors, ours, GOALS[variety].time)
    share = 100 * ours.file_bytes / totals.page_bytes
    measures += [
        Measure("peak memory, all processes", peak / 1e6, "MB", 600, digits=0),
        Measure("file ÷ pages", share, "%", GOALS[variety].size),
    ]
    if variety == "usual":
        measures += _script_measures(folder, scale, totals, ours)
    stages = stages_table(ours.stages, ours.seconds)
    return f"{_preamble(totals, runs)}\n\n{goals_table(measures)}{stages}"


def _build_measures(floors: list[Run], ours: Build, goal: float) -> list[Measure]:
    """Return the times of the build, beside those of the floor."""
    floor = median(run.seconds for run in floors)
    floor_cpu = median(run.cpu_seconds for run in floors)
    ratio = ours.seconds / floor
    # Processor time depends less on other load on the machine than wall time does.
    cpu_ratio = ours.cpu_seconds / floor_cpu
    after_reading = (ours.seconds - ours.stages.get("read", 0)) / floor
    name = f"build, median of {len(floors)}"
    return [
        Measure("floor: read and decode, one process", floor, "s", digits=2),
        Measure(name, ours.seconds, "s", digits=2),
        Measure("processor time, build ÷ floor", cpu_ratio, "x", 6, digits=2),
        Measure("build ÷ floor", ratio, "x", goal, digits=2),
        Measure("after reading ÷ floor", after_reading, "x", 1.2, digits=2),
    ]


def _script_measures(
    folder: Path, scale: float, totals: corpus.Totals, ours: Build
) -> list[Measure]:
    """Return the time of the script, and how much longer it takes than the build."""
    script = script_build(folder, scale, totals)
    name = f"script, from {script.share:.3f} of the pages"
    ratio = script.seconds / ours.seconds
    return [
        Measure(name, script.seconds, "s", digits=0),
        Measure("script ÷ build", ratio, "x", 40, at_least=True),
    ]


def larger_report(folder: Path, scales: Sequence[float], jobs: int | None) -> str:
    """Build a corpus of each scale once, and return the table that compares them."""
    head = [""]
    columns = []
    for scale in scales:
        head.append(f"scale {scale:g}")
        columns.append(_scale_column(folder, scale, jobs))
    rows = []
    for name in columns[0]:
        cells = [column[name] for column in columns]
        rows.append([name, *cells])
    return table(head, rows)


def _scale_column(folder: Path, scale: float, jobs: int | None) -> dict[str, str]:
    """Build a corpus of one scale, and return the cells of its column by their row."""
    pages, totals = inputs.corpus(folder, scale, "usual")
    _floor(pages)  # Reads the pages into memory.
    ours = build([pages], folder / "large.db", jobs, memory=True)
    sizes = {
        "pages": f"{totals.pages:,}",
        "size of the pages": f"{totals.page_bytes / 1e9:.2f} GB",
        "listings": f"{totals.listings:,}",
        "specs": f"{totals.specs:,}",
    }
    costs = {
        "file": f"{ours.file_bytes / 1e6:,.0f} MB",
        "memory, all processes": f"{ours.peak_bytes / 1e9:.2f} GB",
        "processor time": f"{ours.cpu_seconds:,.0f} s",
    }
    for name, seconds in ours.stages.items():
        costs[f"time: {name}"] = f"{seconds:,.1f} s"
    return sizes | costs


def _floor(pages: Path) -> Run:
    """Time the floor with the pages in the cache of the system."""
    run_module("benchmarks.floor", [str(pages)])
    return run_module("benchmarks.floor", [str(pages)])


def _preamble(totals: corpus.Totals, runs: int) -> str:
    """Return the size of a corpus and the machine in words."""
    megabytes = totals.page_bytes / 1e6
    counts = (
        f"{totals.pages:,} pages, {megabytes:,.0f} MB, {totals.listings:,} listings"
    )
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    return (
        f"{counts}, {totals.specs:,} specs; medians of {runs};"
        f" {machine}, SQLite {sqlite3.sqlite_version}."
    )


if __name__ == "__main__":
    main()
