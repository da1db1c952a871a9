"""Time the three nights of a database that grows: nothing is new, one snapshot is new,
and all pages are read again.

The newest snapshot of a corpus is the new one. A night that adds it gives the bytes of
a build from all pages, or the measurement fails.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median

from benchmarks import inputs
from benchmarks.build import Build, build
from benchmarks.floor import page_files
from benchmarks.measure import CommandFailedError, Run, median_of, run_module
from benchmarks.report import Measure, goals_table, stages_table
from spack_cache_db.releases import release_date

_FULL_BUILD_BEFORE = 6.95
"""Time of a full build ÷ that of the floor in November 2026, before nights were made
faster. A goal of 0.05 is that a night takes 5 % of it.
"""


def report(
    folder: Path, scale: float, variety: str, runs: int, jobs: int | None
) -> str:
    """Measure the nights of one corpus, and return the tables."""
    pages, _ = inputs.corpus(folder, scale, variety)
    old_pages, new_pages = _split(pages, folder / f"night-{pages.name}")
    old = folder / "old.db"
    file = folder / "night.db"
    build([old_pages], old, jobs)
    run_module("benchmarks.floor", [str(pages)])  # Reads the pages into memory.

    # Floor, full build and nights take turns, so that other load slows all of them.
    floors: list[Run] = []
    full: list[Build] = []
    unchanged: list[Build] = []
    added: list[Build] = []
    for _ in range(runs):
        floors.append(run_module("benchmarks.floor", [str(pages)]))
        full.append(build([pages], file, jobs))
        full_bytes = file.read_bytes()
        unchanged.append(build([pages], file, jobs, again=True))
        added.append(build([old, new_pages], file, jobs))
        if file.read_bytes() != full_bytes:
            raise CommandFailedError("a night gives other bytes than a full build")
    peak = build([old, new_pages], file, jobs, memory=True).peak_bytes

    floor = median(run.seconds for run in floors)
    measures = [
        Measure("floor: read and decode, one process", floor, "s", digits=2),
        *_measures("full build", full, floor),
        *_measures("nothing new", unchanged, floor, share=0.05),
        *_measures("one snapshot more", added, floor, share=0.35),
        Measure("peak memory of one snapshot more", peak / 1e6, "MB", 400, digits=0),
    ]
    night = median_of(added)
    stages = stages_table(night.stages, night.seconds)
    return f"{goals_table(measures)}\n\nThe night with one snapshot more:{stages}"


def _measures(
    name: str, builds: list[Build], floor: float, share: float | None = None
) -> list[Measure]:
    """Return the time of a night, alone and divided by that of the floor.

    Args:
        name: what the night does.
        builds: its runs.
        floor: the time of the floor.
        share: the goal, as a part of a full build in November 2026.
    """
    seconds = median_of(builds).seconds
    goal = None
    if share is not None:
        goal = round(share * _FULL_BUILD_BEFORE, 2)
    return [
        Measure(name, seconds, "s", digits=2),
        Measure(f"{name} ÷ floor", seconds / floor, "x", goal, digits=2),
    ]


def _split(pages: Path, folder: Path) -> tuple[Path, Path]:
    """Return two folders of links: to all releases but the newest snapshot, and to it.

    The pages have the same paths in them as in the corpus.
    """
    # A page is `<releases folder>/<release>/<package>/specs.md`.
    first_page = next(page_files(str(pages)))
    releases_folder = Path(first_page).parents[2]
    releases = [entry.name for entry in os.scandir(releases_folder)]
    newest = max(releases, key=lambda name: release_date(name) or "")

    # A link to each release, in one of the two folders.
    old = folder / "old"
    new = folder / "new"
    for name in releases:
        side = new if name == newest else old
        link = side / releases_folder.relative_to(pages) / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(releases_folder / name)
    return old, new
