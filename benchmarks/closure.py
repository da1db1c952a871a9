"""`python -m benchmarks.closure FILE`: time what installing binaries takes, in process.

FILE is a database of indexes, such as that of `python -m benchmarks.indexes`. Goals for
an index of 150,000 records: 5 ms for one binary, 2 s of processor time for 1,000.
"""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from statistics import median

import click

from benchmarks.built import file_argument
from benchmarks.measure import timed
from spack_cache_db.query.open.lookups import opened
from spack_cache_db.query.stored.closure import closures

SAMPLE = 1_000
"""Binaries that are timed together."""
ONE_BY_ONE = 200
"""Binaries that are timed alone; the first of them is not."""
ROUNDS = 3
RECORDED = """
SELECT DISTINCT specs.id FROM specs JOIN record_ranges ON record_ranges.spec_id = specs.id
WHERE specs.is_binary AND NOT specs.is_gone ORDER BY specs.id
"""


@click.command()
@file_argument
def main(file: Path) -> None:
    """Time the closures of binaries of FILE: one by one, and many at once."""
    with opened(file) as lookups:
        recorded = [spec for (spec,) in lookups.conn.execute(RECORDED)]
    sample = random.Random(1).sample(recorded, min(SAMPLE, len(recorded)))
    one_by_one(file, sample[:ONE_BY_ONE])
    for _ in range(ROUNDS):
        together(file, sample)


def one_by_one(file: Path, specs: list[int]) -> None:
    """Time one binary after the other in a process that has answered a question
    before.
    """
    times = []
    sizes = []
    first, *others = specs
    with opened(file) as lookups:
        # The first question reads what the others use again.
        closures(lookups, [first])
        for spec in others:
            found, seconds = timed(partial(closures, lookups, [spec]))
            times.append(1000 * seconds)
            sizes.append(len(found[spec].members))
    click.echo(
        f"one binary: {median(times):.1f} ms of processor time,"
        f" at most {max(times):.1f} ms;"
        f" {median(sizes):,.0f} specs in a closure, at most {max(sizes):,}"
    )


def together(file: Path, specs: list[int]) -> None:
    """Time all binaries at once."""
    with opened(file) as lookups:
        found, seconds = timed(partial(closures, lookups, specs))
        complete_count = sum(closure.is_complete is True for closure in found.values())
    counts = f"{len(found):,} binaries, {complete_count:,} of them complete"
    click.echo(f"{counts}: {seconds:.2f} s of processor time")


if __name__ == "__main__":
    main()
