"""`python -m benchmarks.proposal`: time the choice among 3,000 configurations of a
package.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import click

from spack_cache_db.assembly.builds import build
from spack_cache_db.query.choice.proposal import propose
from spack_cache_db.query.conditions.conditions import Condition, Conditions, Word
from spack_cache_db.query.match.candidates import candidates_by_id
from spack_cache_db.query.match.selection import matching
from spack_cache_db.query.open.lookups import read_lookups
from tests.pagetexts import page, spec, write

CONFIGURATIONS = 3_000
ROUNDS = 15
PACKAGE = Condition("package", "large", Word("large"))
QUESTIONS: dict[str, Conditions] = {
    "no machine": (PACKAGE,),
    "zen4": (PACKAGE, Condition("host", "zen4", "zen4")),
}


@click.command()
def main() -> None:
    """Time the proposal for a package, without and with a machine."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.db")
        pages = write(Path(folder, "pages"), large=page("large", "develop", _specs()))
        build([pages], file)
        with closing(sqlite3.connect(file)) as conn:
            for name, conditions in QUESTIONS.items():
                _time(conn, name, conditions)


def _specs() -> list[dict[str, Any]]:
    chance = random.Random(1)
    specs = []
    for number in range(CONFIGURATIONS):
        variants = [f"{chance.choice('+~')}option{place}" for place in range(20)]
        specs.append(
            spec(
                number,
                variants=variants,
                versions=[f"1.{chance.randrange(40)}"],
                compiler=chance.choice(["gcc@13.2.0", "gcc@11.4.0", "llvm@19.1.0"]),
                os=chance.choice(["ubuntu22.04", "rhel8", "amzn2"]),
                target=chance.choice(["x86_64_v3", "x86_64_v4", "zen4", "aarch64"]),
            )
        )
    return specs


def _time(conn: sqlite3.Connection, name: str, conditions: Conditions) -> None:
    """Print the time of a question, whose matches a page has read already."""
    lookups = read_lookups(conn)
    rows = candidates_by_id(lookups, matching(lookups, conditions).ids)
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        propose(lookups, rows, conditions)
        times.append(time.process_time() - started)
    spent = f"{1000 * median(times):6.2f} ms, the first time {1000 * times[0]:6.2f} ms"
    click.echo(f"{spent}; {len(rows):,} configurations, {name}")


if __name__ == "__main__":
    main()
