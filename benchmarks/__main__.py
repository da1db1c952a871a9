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

GOALS = {"usual": (3.5, 15), "high": (3.5, 17)}
"""By variety: the build's time ÷ the floor's, and the database in percent of the
pages.
"""


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
        texts = {
            f"build table, {variety} variety": report(
                folder, scale, variety, runs, jobs
            )
            for variety in varieties
        }
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
    most_time, most_bytes = GOALS[variety]
    file = folder / "bench.db"
    pairs = [(_floor(pages), build([pages], file, jobs)) for _ in range(runs)]
    floor = median(decoding.seconds for decoding, _ in pairs)
    cpu = median(decoding.cpu_seconds for decoding, _ in pairs)
    ours = median_of([built for _, built in pairs])
    peak = build([pages], file, jobs, memory=True).peak_bytes
    after_reading = ours.seconds - ours.stages.get("read", 0)
    measures = [
        Measure("floor: read and decode, one process", floor, "s", digits=2),
        Measure(f"build, median of {runs}", ours.seconds, "s", digits=2),
        # Processor time depends less on other load on the machine than wall time does.
        Measure(
            "processor time, build ÷ floor", ours.cpu_seconds / cpu, "x", 6, digits=2
        ),
        Measure("build ÷ floor", ours.seconds / floor, "x", most_time, digits=2),
        Measure("after reading ÷ floor", after_reading / floor, "x", 1.2, digits=2),
        Measure("peak memory, all processes", peak / 1e6, "MB", 600, digits=0),
        Measure(
            "file ÷ pages", 100 * ours.file_bytes / totals.page_bytes, "%", most_bytes
        ),
        *(_script(folder, scale, totals, ours) if variety == "usual" else []),
    ]
    stages = stages_table(ours.stages, ours.seconds)
    return f"{_preamble(totals, runs)}\n\n{goals_table(measures)}{stages}"


def larger_report(folder: Path, scales: Sequence[float], jobs: int | None) -> str:
    """Build a corpus of each scale once, and return the table that compares them."""
    columns = [_scale_column(folder, scale, jobs) for scale in scales]
    head = ["", *(f"scale {scale:g}" for scale in scales)]
    return table(
        head, [[name, *(column[name] for column in columns)] for name in columns[0]]
    )


def _scale_column(folder: Path, scale: float, jobs: int | None) -> dict[str, str]:
    pages, totals = inputs.corpus(folder, scale, "usual")
    _floor(pages)
    ours = build([pages], folder / "large.db", jobs, memory=True)
    return {
        "pages": f"{totals.pages:,}",
        "size of the pages": f"{totals.page_bytes / 1e9:.2f} GB",
        "listings": f"{totals.listings:,}",
        "specs": f"{totals.specs:,}",
        "file": f"{ours.file_bytes / 1e6:,.0f} MB",
        "memory, all processes": f"{ours.peak_bytes / 1e9:.2f} GB",
        "processor time": f"{ours.cpu_seconds:,.0f} s",
        **{
            f"time: {name}": f"{seconds:,.1f} s"
            for name, seconds in ours.stages.items()
        },
    }


def _floor(pages: Path) -> Run:
    """Time the floor with the pages in the cache of the system.

    The floor and the build run in turn, so that other load on the machine slows both
    down.
    """
    run_module("benchmarks.floor", [str(pages)])
    return run_module("benchmarks.floor", [str(pages)])


def _script(
    folder: Path, scale: float, totals: corpus.Totals, ours: Build
) -> list[Measure]:
    script = script_build(folder, scale, totals)
    name = f"script, from {script.share:.3f} of the pages"
    ratio = script.seconds / ours.seconds
    return [
        Measure(name, script.seconds, "s", digits=0),
        Measure("script ÷ build", ratio, "x", 40, at_least=True),
    ]


def _preamble(totals: corpus.Totals, runs: int) -> str:
    return (
        f"{totals.pages:,} pages, {totals.page_bytes / 1e6:,.0f} MB, {totals.listings:,} listings,"
        f" {totals.specs:,} specs; medians of {runs}; {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}."
    )


if __name__ == "__main__":
    main()
