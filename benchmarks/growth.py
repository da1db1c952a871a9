"""Measure the nights of a database that is built from indexes, and how it grows with
each of them: `python -m benchmarks.growth`.

The first night has the stacks of `benchmarks.indexes`. On each later one, a hundredth
of the binaries have other hashes, as if they had been built again. Nothing depends on
these, so all others stay the same.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import click

from benchmarks import indexes, inputs
from benchmarks.measure import FOLDER, Run, run_module
from benchmarks.report import NOTES, Measure, goals_table, write_section

FIRST_DAY = date(2026, 11, 1)
REBUILT = 100
"""One of so many binaries is built again in a night."""
GOAL = 0.4
"""Megabytes that a snapshot of 15,000 binaries may add."""
_HASH = re.compile(r'"([a-z2-7]{32})"')


@click.command()
@click.option("--records", default=150_000, show_default=True, help="Binaries.")
@click.option("--nights", default=3, show_default=True, help="Snapshots to build.")
@click.option("--folder", default=FOLDER, type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help="Write the table into benchmarks/NOTES.md.")
def main(records: int, nights: int, folder: Path, write: bool) -> None:
    """Build a history of several nights, and compare its growth with the goal."""
    measures = report(folder, records, nights)
    text = goals_table(measures)
    click.echo(text)
    if write:
        write_section(NOTES, "index night table", text)
    if not all(measure.met for measure in measures):
        raise SystemExit(1)


def report(folder: Path, records: int, nights: int) -> list[Measure]:
    """Build a history of several nights in a folder that is removed afterwards, and
    return what was measured.
    """
    inputs.index(folder, records)
    with tempfile.TemporaryDirectory() as name:
        mirrors = Path(name, "mirrors")
        shutil.copytree(folder / f"indexes-{records}", mirrors)
        return _grown(mirrors, Path(name, "history.db"), records, nights)


def _grown(mirrors: Path, file: Path, records: int, nights: int) -> list[Measure]:
    """Return the time and the memory of each night, the size after the first one, and
    what each later one adds.
    """
    # The first night, from the indexes alone.
    first = _built(mirrors, file, night=0)
    size = file.stat().st_size
    measures = _costs("night 1", first)
    measures.append(Measure("night 1: database", size / 1e6, "MB"))

    # Each later night adds to the database of the one before.
    goal = GOAL * records / 15_000
    for night in range(1, nights):
        build_again(mirrors / indexes.RELEASE, night)
        run = _built(mirrors, file, night)
        added = file.stat().st_size - size
        size += added
        name = f"night {night + 1}"
        ratio = run.cpu_seconds / first.cpu_seconds
        measures += _costs(name, run)
        measures += [
            Measure(f"{name}: processor time ÷ night 1", ratio, "x", digits=2),
            Measure(f"{name} adds", added / 1e6, "MB", goal, digits=2),
        ]
    return measures


def _built(mirrors: Path, file: Path, night: int) -> Run:
    """Build the snapshot of a night, from the database too if there is one."""
    sources = [str(mirrors)]
    if night > 0:
        sources.append(str(file))
    day = FIRST_DAY + timedelta(days=night)
    options = ["--snapshot", day.isoformat(), "-o", str(file)]
    return run_module("spack_cache_db", ["build", *sources, *options], memory=True)


def _costs(name: str, run: Run) -> list[Measure]:
    """Return the time and the memory of a night."""
    megabytes = run.peak_bytes / 1e6
    return [
        Measure(name, run.seconds, "s"),
        Measure(f"{name}: processor time", run.cpu_seconds, "s"),
        Measure(f"{name}: peak memory", megabytes, "MB", digits=0),
    ]


def build_again(mirrors: Path, night: int) -> None:
    """Replace hashes in the indexes of all stacks, in one of `REBUILT` binaries.

    Only binaries that no other record needs are replaced. The index of all stacks
    contains their hashes twice: as the key of the record, and in the record.
    """
    whole = (mirrors / "root" / "index.json").read_text("utf-8")
    uses = Counter(_HASH.findall(whole))
    unneeded = sorted(dag_hash for dag_hash, count in uses.items() if count == 2)
    count = len(uses) // REBUILT
    new_hashes = {}
    for dag_hash in unneeded[:count]:
        new_hashes[dag_hash] = indexes.hash_of(f"{dag_hash} {night}")

    def quoted_hash(match: re.Match[str]) -> str:
        dag_hash = match[1]
        return f'"{new_hashes.get(dag_hash, dag_hash)}"'

    for path in sorted(mirrors.glob("*/index.json")):
        text = path.read_text("utf-8")
        path.write_text(_HASH.sub(quoted_hash, text), "utf-8")


if __name__ == "__main__":
    main()
