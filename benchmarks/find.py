"""`python -m benchmarks.find FILE`: time specs, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import click

from benchmarks.built import file_argument, in_words, opened
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
    """Time specs on FILE, and a trivial one for comparison."""
    conn = opened(file)
    row = conn.execute(TYPICAL).fetchone()
    if row is None:
        raise click.ClickException(
            f"{file}: no configuration here has a variant and a compiler"
        )
    trivial = _milliseconds(
        lambda: conn.execute("SELECT count(*) FROM releases").fetchone()
    )
    specs = conn.execute("SELECT count(*) FROM specs").fetchone()[0]
    click.echo(
        f"{specs:,} specs; the median of {ROUNDS} rounds; one trivial query: {trivial:.3f} ms"
    )
    needed = next((found[0] for found in conn.execute(NEEDED)), None)
    for query in (*queries(*row), *dependency_queries(row[0], needed)):
        spent = _milliseconds(partial(find, conn, query))
        count = len(find(conn, query))
        click.echo(
            f"{spent:8.2f} ms {spent / trivial:8.0f} x trivial {count:7,} rows  {query}"
        )
    first = _milliseconds(partial(find, file, queries(*row)[0]))
    click.echo(
        f"{first:8.2f} ms {first / trivial:8.0f} x trivial  the first, opening the file"
    )


def queries(
    package: str, version: str, variants: str, compiler: str, target: str, dag_hash: str
) -> list[str]:
    """Return the queries, built from one configuration; the first has all its
    conditions.
    """
    variant = next(
        text for text in variants.split() if parse_variant(text).kind == "bool"
    )
    name, _, number = compiler.partition("@")
    return [
        f"{package}@{version}: {variant} target=:{target} %{name}@{number.split('.')[0]}",
        package,
        f"{package}@:{version}",
        f"{variant} target=:{target} %{name}",
        f"{variant}",
        f"/{dag_hash[:7]}",
        f"/{dag_hash[:3]}",
    ]


def dependency_queries(package: str, needed: str | None) -> list[str]:
    """Return the queries about dependencies, or none if the file has no dependency
    data.
    """
    if needed is None:
        return []
    return [
        f"{package} ^{needed}",
        f"^{needed}",
        f"{package} %c=gcc",
        f"{package} ^mpi",
        "++pic",
    ]


def _milliseconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - started))
    return median(times)


if __name__ == "__main__":
    main()
