"""`python -m benchmarks.cover FILE`: time environments of 1,000 specs, in process.

FILE should be a database of an index with 150,000 records; the aim is 2 s of processor
time.
"""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median

import click

from benchmarks.built import file_argument, in_words, opened
from benchmarks.measure import timed
from spack_cache_db import cover
from spack_cache_db.environments.model import Environment
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.query.answers.cover import cover_environment
from spack_cache_db.query.answers.covered import Cover
from spack_cache_db.query.open.lookups import opened as opened_lookups

SPECS = 1_000
ROUNDS = 5
CONFIGURATIONS = f"""
{in_words("package", "version", "compiler", "os", "target", "variants")}
WHERE configurations.spec_count > 0 AND compilers.version IS NOT NULL
ORDER BY configurations.id
"""
SETTINGS = {
    "reuse: false": {"reuse": False},
    "reuse: include": {"reuse": {"include": ["no-such-package"]}},
    "reuse: exclude": {"reuse": {"exclude": ["%fortran=gcc", "zlib"]}},
    "compiler_mixing: false": {"compiler_mixing": False},
}
"""Settings that keep Spack from taking binaries: then more candidates of a spec are
tried.
"""


@click.command()
@file_argument
def main(file: Path) -> None:
    """Time environments on FILE that it covers, covers in part, and does not cover."""
    with closing(opened(file)) as conn:
        specs = environment(conn)

    # Alone, and for a machine.
    for narrowed in ({}, {"host": "zen3"}):
        times = []
        for _ in range(ROUNDS):
            found, seconds = timed(partial(cover, file, specs, **narrowed))
            times.append(seconds)
        counts = f"{found.binary:,} binary, {found.counted('near'):,} near"
        spent = f"{median(times):6.2f} s of processor time, median of {ROUNDS}"
        click.echo(f"{spent}; {len(specs):,} specs: {counts}")

    # With settings, once each.
    for name, concretizer in SETTINGS.items():
        document = {"spack": {"specs": specs, "concretizer": concretizer}}
        read = read_environment(json.dumps(document).encode(), "spack.yaml")
        answer, seconds = timed(partial(_covered, file, read))
        click.echo(f"{seconds:6.2f} s of processor time; {name}: {answer.statuses}")


def _covered(file: Path, read: Environment) -> Cover:
    with opened_lookups(file) as lookups:
        return cover_environment(lookups, read)


def environment(conn: sqlite3.Connection) -> list[str]:
    """Return specs built from configurations; half of them match nothing."""
    rows = conn.execute(CONFIGURATIONS).fetchall()
    chance = random.Random(1)
    specs = []
    for number in range(SPECS):
        package, version, compiler, os, target, text, _ = chance.choice(rows)
        boolean = [word for word in text.split() if word.startswith(("+", "~"))]
        variants = " ".join(boolean[:3])
        forms = (
            f"{package}@{version} {variants} target={target} %{compiler}",
            f"{package} {variants} target=:zen4 os={os}",
            # These two match nothing.
            f"{package}@999 {variants} target=zen5 os=none %{compiler}",
            f"{package}@{version} +none_has_this {variants} %{compiler}",
        )
        specs.append(forms[number % len(forms)])
    return specs


if __name__ == "__main__":
    main()
