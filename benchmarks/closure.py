"""`python -m benchmarks.closure FILE`: time what installing binaries takes, in process.

FILE is a database of indexes, such as that of `python -m benchmarks.indexes`. Goals for
an index of
150,000 records: 5 ms for one binary, 2 s of processor time for 1,000.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from statistics import median

import click

from benchmarks.built import file_argument
from spack_cache_db.query.open.lookups import opened
from spack_cache_db.query.stored.closure import closures

SAMPLE = 1_000
ONE_BY_ONE = 200
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
        every = [spec for (spec,) in lookups.conn.execute(RECORDED)]
        chance = random.Random(1)
        sample = chance.sample(every, min(SAMPLE, len(every)))
    one_by_one(file, sample[:ONE_BY_ONE])
    for _ in range(ROUNDS):
        together(file, sample)


def one_by_one(file: Path, specs: list[int]) -> None:
    """Time one binary after the other in a process that has answered a question
    before.
    """
    times = []
    sizes = []
    with opened(file) as lookups:
        closures(lookups, specs[-1:])
        for spec in specs[:-1]:
            started = time.process_time()
            closure = closures(lookups, [spec])[spec]
            times.append(time.process_time() - started)
            sizes.append(len(closure.members))
    click.echo(
        f"one binary: {median(times) * 1000:.1f} ms of processor time, at most "
        f"{max(times) * 1000:.1f} ms; "
        f"{median(sizes):,.0f} specs in a closure, at most {max(sizes):,}"
    )


def together(file: Path, specs: list[int]) -> None:
    """Time all binaries at once."""
    with opened(file) as lookups:
        started = time.process_time()
        found = closures(lookups, specs)
        seconds = time.process_time() - started
        complete = sum(closure.is_complete is True for closure in found.values())
        counts = f"{len(found):,} binaries, {complete:,} of them complete"
        click.echo(f"{counts}: {seconds:.2f} s of processor time")


if __name__ == "__main__":
    main()
