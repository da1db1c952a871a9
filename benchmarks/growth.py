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
from base64 import b32encode
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from hashlib import blake2b
from pathlib import Path

import click

from benchmarks import indexes, inputs
from benchmarks.measure import FOLDER, run_module
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
        return list(_grown(mirrors, Path(name, "history.db"), records, nights))


def _grown(mirrors: Path, file: Path, records: int, nights: int) -> Iterator[Measure]:
    """Yield the time and the memory of each night, the size after the first one, and
    what each later one adds.
    """
    size = 0
    first_cpu = 0.0
    for night in range(nights):
        sources = [str(mirrors)]
        if night:
            build_again(mirrors / indexes.RELEASE, night)
            sources.append(str(file))
        day = FIRST_DAY + timedelta(days=night)
        run = run_module(
            "spack_cache_db",
            ["build", *sources, "--snapshot", day.isoformat(), "-o", str(file)],
            memory=True,
        )
        added = (file.stat().st_size - size) / 1e6
        size = file.stat().st_size
        name = f"night {night + 1}"
        yield Measure(name, run.seconds, "s")
        yield Measure(f"{name}: processor time", run.cpu_seconds, "s")
        yield Measure(f"{name}: peak memory", run.peak_bytes / 1e6, "MB", digits=0)
        if not night:
            first_cpu = run.cpu_seconds
            yield Measure(f"{name}: database", added, "MB")
            continue
        ratio = run.cpu_seconds / first_cpu
        yield Measure(f"{name}: processor time ÷ night 1", ratio, "x", digits=2)
        goal = GOAL * records / 15_000
        yield Measure(f"{name} adds", added, "MB", goal, digits=2)


def build_again(mirrors: Path, night: int) -> None:
    """Replace hashes in the indexes of all stacks, in one of `REBUILT` binaries.

    Only binaries that no other record needs are replaced. The index of all stacks
    contains their hashes twice: as the key of the record, and in the record.
    """
    whole = (mirrors / "root" / "index.json").read_text("utf-8")
    uses = Counter(_HASH.findall(whole))
    unneeded = sorted(dag_hash for dag_hash, count in uses.items() if count == 2)
    replaced = {}
    for dag_hash in unneeded[: len(uses) // REBUILT]:
        # 20 bytes are the 32 letters of a hash.
        digest = blake2b(f"{dag_hash} {night}".encode(), digest_size=20).digest()
        replaced[dag_hash] = b32encode(digest).decode().lower()

    def new_hash(match: re.Match[str]) -> str:
        return f'"{replaced.get(match[1], match[1])}"'

    for path in sorted(mirrors.glob("*/index.json")):
        text = path.read_text("utf-8")
        path.write_text(_HASH.sub(new_hash, text), "utf-8")


if __name__ == "__main__":
    main()
