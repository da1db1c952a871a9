"""`python -m benchmarks.find FILE`: time specs, in this process."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import click

from benchmarks.built import file_argument, in_words, opened
from benchmarks.measure import timed
from spack_cache_db import find
from spack_cache_db.spack.normal_forms import parse_variant

ROUNDS = 15
FIRST_HASH = "(SELECT min(hash) FROM specs WHERE configuration_id = configurations.id)"
# A package with many configurations and versions, so that every condition excludes some
# of them.
TYPICAL = f"""
{in_words("package", "version", "variants", "compiler", "target", also=FIRST_HASH)}
WHERE variant_sets.text LIKE '+%' AND compilers.version IS NOT NULL
ORDER BY packages.configuration_count DESC, configurations.spec_count DESC, configurations.id
LIMIT 1
"""

NEEDED = """
SELECT packages.name FROM dependencies
JOIN specs ON specs.id = dependencies.dependency_id
JOIN configurations ON configurations.id = specs.configuration_id
JOIN packages ON packages.id = configurations.package_id
WHERE dependency_type_id IN (SELECT id FROM dependency_types WHERE types LIKE '%link%')
GROUP BY packages.id ORDER BY count(*) DESC LIMIT 1
"""


@click.command()
@file_argument
def main(file: Path) -> None:
    """Time specs on FILE, and a trivial query for comparison."""
    conn = opened(file)
    row = conn.execute(TYPICAL).fetchone()
    if row is None:
        raise click.ClickException(
            f"{file}: no configuration here has a variant and a compiler"
        )
    specs = queries(*row)
    needed = conn.execute(NEEDED).fetchone()
    if needed is not None:
        specs += dependency_queries(row[0], needed[0])

    (spec_count,) = conn.execute("SELECT count(*) FROM specs").fetchone()
    trivial = _milliseconds(partial(_release_count, conn))
    click.echo(
        f"{spec_count:,} specs; the median of {ROUNDS} rounds;"
        f" one trivial query: {trivial:.3f} ms"
    )
    for spec in specs:
        spent = _milliseconds(partial(find, conn, spec))
        row_count = len(find(conn, spec))
        ratio = f"{spent:8.2f} ms {spent / trivial:8.0f} x trivial"
        click.echo(f"{ratio} {row_count:7,} rows  {spec}")
    first = _milliseconds(partial(find, file, specs[0]))
    ratio = f"{first:8.2f} ms {first / trivial:8.0f} x trivial"
    click.echo(f"{ratio}  the first, opening the file")


def queries(
    package: str, version: str, variants: str, compiler: str, target: str, dag_hash: str
) -> list[str]:
    """Return the queries, built from one configuration; the first has all its
    conditions.
    """
    boolean = [text for text in variants.split() if parse_variant(text).kind == "bool"]
    variant = boolean[0]
    name, _, number = compiler.partition("@")
    major, _, _ = number.partition(".")
    return [
        f"{package}@{version}: {variant} target=:{target} %{name}@{major}",
        package,
        f"{package}@:{version}",
        f"{variant} target=:{target} %{name}",
        variant,
        f"/{dag_hash[:7]}",
        f"/{dag_hash[:3]}",
    ]


def dependency_queries(package: str, needed: str) -> list[str]:
    """Return the queries about dependencies; others need the package `needed`."""
    return [
        f"{package} ^{needed}",
        f"^{needed}",
        f"{package} %c=gcc",
        f"{package} ^mpi",
        "++pic",
    ]


def _release_count(conn: sqlite3.Connection) -> int:
    (count,) = conn.execute("SELECT count(*) FROM releases").fetchone()
    return int(count)


def _milliseconds(work: Callable[[], object]) -> float:
    """Return the median of the processor times of some rounds."""
    times = []
    for _ in range(ROUNDS):
        _, seconds = timed(work)
        times.append(1000 * seconds)
    return median(times)


if __name__ == "__main__":
    main()
