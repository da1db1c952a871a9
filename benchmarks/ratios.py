"""Ratios of a build to its floor that must not grow: `python -m benchmarks.ratios`.

Small inputs are read and built in this process, in turn with their floor. The least processor time
of some rounds counts, because other load on the machine only adds to it. The command fails if a
ratio is more than a tenth above the one in `ratios.json`, which `--write` writes anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from benchmarks import floor, index_floor, inputs
from benchmarks.measure import FOLDER
from benchmarks.report import Measure, goals_table
from spack_cache_db import build
from spack_cache_db.build import Input, pipeline
from spack_cache_db.build.workers import uncollected

SCALE, RECORDS = 0.05, 20_000
MOST_GROWTH = 1.1
STORED = Path(__file__).with_name("ratios.json")


@click.command()
@click.option("--rounds", default=8, show_default=True, type=click.IntRange(1))
@click.option("--dir", "folder", type=click.Path(path_type=Path), default=FOLDER, show_default=True)
@click.option("--write", is_flag=True, help="Store the ratios instead of comparing them.")
def main(rounds: int, folder: Path, write: bool) -> None:
    """Fail if a build takes more time or space, compared with its floor, than it did."""
    folder.mkdir(parents=True, exist_ok=True)
    found = dict(ratios(folder, rounds))
    if write:
        rounded = {name: round(ratio, 3) for name, ratio in found.items()}
        text = json.dumps(rounded, indent=2, ensure_ascii=False)
        STORED.write_text(f"{text}\n", encoding="utf-8")
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    measures = [
        Measure(name, ratio, "x", round(MOST_GROWTH * stored[name], 3), digits=3)
        for name, ratio in found.items()
    ]
    click.echo(goals_table(measures))
    grown = [each.name for each in measures if not each.met]
    if grown:
        raise click.ClickException(f"grown by more than a tenth: {', '.join(grown)}")


def ratios(folder: Path, rounds: int) -> Iterator[tuple[str, float]]:
    """Yield what is measured of each input, by name."""
    for variety in ("usual", "high"):
        pages, totals = inputs.corpus(folder, SCALE, variety)
        measured = _measured(pages, lambda: floor.decode_all(str(pages)), rounds)  # noqa: B023
        yield from _named(f"pages, {variety} variety", *measured, totals.page_bytes)
    index = inputs.index(folder, RECORDS)
    measured = _measured(index, lambda: index_floor.decode_all(index), rounds)
    yield from _named("index", *measured, index.stat().st_size)


def _named(
    kind: str, seconds: tuple[float, float, float], file_bytes: int, input_bytes: int
) -> Iterator[tuple[str, float]]:
    least, reading, building = seconds
    yield f"{kind}: reading ÷ floor", reading / least
    yield f"{kind}: build ÷ floor", building / least
    yield f"{kind}: file ÷ input", file_bytes / input_bytes


def _measured(
    path: Path, decode: Callable[[], object], rounds: int
) -> tuple[tuple[float, float, float], int]:
    """Return the seconds of the floor, of reading and of the whole build, and the file's bytes."""
    file = path.parent / "ratios.db"
    works = (
        decode,
        lambda: pipeline.read(Input([str(path)])),
        lambda: build(path, file),
    )
    taken = [tuple(map(_seconds, works)) for _ in range(rounds)]
    least, reading, building = map(min, zip(*taken, strict=True))
    return (least, reading, building), file.stat().st_size


@uncollected()
def _seconds(work: Callable[[], object]) -> float:
    """Return the processor time of this process that some work takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
