"""`python -m benchmarks.proposal`: time the choice among 3,000 configurations of a
package.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.measure import timed
from spack_cache_db.assembly.builds import build
from spack_cache_db.query.choice.proposal import propose
from spack_cache_db.query.conditions.conditions import Condition, Conditions, Word
from spack_cache_db.query.match.candidates import candidates_by_id
from spack_cache_db.query.match.selection import matching
from spack_cache_db.query.open.lookups import read_lookups
from tests.pagetexts import page, spec, write

CONFIGURATIONS = 3_000
COMPILERS = ("gcc@13.2.0", "gcc@11.4.0", "llvm@19.1.0")
SYSTEMS = ("ubuntu22.04", "rhel8", "amzn2")
TARGETS = ("x86_64_v3", "x86_64_v4", "zen4", "aarch64")
ROUNDS = 15
PACKAGE = Condition("package", "large", Word("large"))
QUESTIONS: dict[str, Conditions] = {
    "no machine": (PACKAGE,),
    "zen4": (PACKAGE, Condition("host", "zen4", "zen4")),
}


@click.command()
def main() -> None:
    """Time the proposal for a package, without and with a machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "x.db"
        pages = write(folder / "pages", large=page("large", "develop", _specs()))
        build([pages], file)
        with closing(sqlite3.connect(file)) as conn:
            for title, conditions in QUESTIONS.items():
                click.echo(f"{_times(conn, conditions)}, {title}")


def _specs() -> list[dict[str, Any]]:
    """Return specs of one package, each with other options."""
    chance = random.Random(1)
    specs = []
    for number in range(CONFIGURATIONS):
        variants = [f"{chance.choice('+~')}option{position}" for position in range(20)]
        versions = [f"1.{chance.randrange(40)}"]
        described = spec(
            number,
            variants=variants,
            versions=versions,
            compiler=chance.choice(COMPILERS),
            os=chance.choice(SYSTEMS),
            target=chance.choice(TARGETS),
        )
        specs.append(described)
    return specs


def _times(conn: sqlite3.Connection, conditions: Conditions) -> str:
    """Return the time of a question, whose matches a page has read already."""
    # What the page has read.
    lookups = read_lookups(conn)
    rows = candidates_by_id(lookups, matching(lookups, conditions).ids)

    # What it adds.
    times = []
    for _ in range(ROUNDS):
        _, seconds = timed(partial(propose, lookups, rows, conditions))
        times.append(1000 * seconds)
    spent = f"{median(times):6.2f} ms, the first time {times[0]:6.2f} ms"
    return f"{spent}; {len(rows):,} configurations"


if __name__ == "__main__":
    main()
