"""`python -m benchmarks.cover FILE`: what an environment of 1,000 specs costs, in process."""

from __future__ import annotations

import random
import sqlite3
import time
from pathlib import Path
from statistics import median

import click

from benchmarks.measure import FOLDER
from spack_cache_db import BuilderError, cover
from spack_cache_db.query.open import open_database

SPECS = 1_000
ROUNDS = 5
CONFIGURATIONS = """
SELECT packages.name, versions.name, compilers.name, operating_systems.name, targets.name,
  variant_sets.text
FROM configurations
JOIN packages ON packages.id = configurations.package
JOIN versions ON versions.id = configurations.version
JOIN compilers ON compilers.id = configurations.compiler
JOIN operating_systems ON operating_systems.id = configurations.os
JOIN targets ON targets.id = configurations.target
JOIN variant_sets ON variant_sets.id = configurations.variants
WHERE configurations.spec_count > 0 AND compilers.version IS NOT NULL
ORDER BY configurations.id
"""


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=FOLDER / "bench.db")
def main(file: Path) -> None:
    """Time environments on FILE: found, in part, and not at all; the file is opened each time."""
    try:
        conn = open_database(file)
    except BuilderError as error:
        raise click.ClickException(str(error)) from error
    specs = environment(conn)
    for narrowed in ({}, {"host": "zen3"}):
        times = []
        for _ in range(ROUNDS):
            started = time.process_time()
            found = cover(file, specs, **narrowed)
            times.append(time.process_time() - started)
        counts = f"{found.binary:,} binary, {found.counted('near'):,} near"
        spent = f"{median(times):6.2f} s of processor time, median of {ROUNDS}"
        click.echo(f"{spent}; {len(specs):,} specs: {counts}")


def environment(conn: sqlite3.Connection) -> list[str]:
    """Return specs made of the words of configurations: half of them ask for what is nowhere."""
    rows = conn.execute(CONFIGURATIONS).fetchall()
    chance = random.Random(1)
    specs = []
    for number in range(SPECS):
        package, version, compiler, os, target, text = chance.choice(rows)
        variants = " ".join([each for each in text.split() if each[0] in "+~"][:3])
        specs.append(
            (
                f"{package}@{version} {variants} target={target} %{compiler}",
                f"{package} {variants} target=:zen4 os={os}",
                f"{package}@999 {variants} target=zen5 os=none %{compiler}",
                f"{package}@{version} +none_has_this {variants} %{compiler}",
            )[number % 4]
        )
    return specs


if __name__ == "__main__":
    main()
