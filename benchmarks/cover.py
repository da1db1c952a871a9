"""`python -m benchmarks.cover FILE`: time environments of 1,000 specs, in process.

FILE should be a database of an index with 150,000 records; the aim is 2 s of processor
time.
"""

from __future__ import annotations

import json
import random
import sqlite3
import time
from pathlib import Path
from statistics import median

import click

from benchmarks.built import file_argument, in_words, opened
from spack_cache_db import cover
from spack_cache_db.environments.reading import read_environment
from spack_cache_db.query.answers.cover import cover_environment
from spack_cache_db.query.open.lookups import opened as opened_lookups

SPECS = 1_000
ROUNDS = 5
CONFIGURATIONS = f"""
{in_words("package", "version", "compiler", "os", "target", "variants")}
WHERE configurations.spec_count > 0 AND compilers.version IS NOT NULL
ORDER BY configurations.id
"""


# Settings that keep Spack from taking binaries: then more candidates of a spec are
# tried.
SETTINGS = {
    "reuse: false": {"reuse": False},
    "reuse: include": {"reuse": {"include": ["no-such-package"]}},
    "reuse: exclude": {"reuse": {"exclude": ["%fortran=gcc", "zlib"]}},
    "compiler_mixing: false": {"compiler_mixing": False},
}


@click.command()
@file_argument
def main(file: Path) -> None:
    """Time environments on FILE that it covers, covers in part, and does not cover."""
    conn = opened(file)
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
    for name, concretizer in SETTINGS.items():
        text = json.dumps({"spack": {"specs": specs, "concretizer": concretizer}})
        read = read_environment(text.encode(), "spack.yaml")
        started = time.process_time()
        with opened_lookups(file) as lookups:
            answered = cover_environment(lookups, read)
        spent_once = time.process_time() - started
        click.echo(
            f"{spent_once:6.2f} s of processor time; {name}: {answered.statuses}"
        )


def environment(conn: sqlite3.Connection) -> list[str]:
    """Return specs built from configurations; half of them match nothing."""
    rows = conn.execute(CONFIGURATIONS).fetchall()
    chance = random.Random(1)
    specs = []
    for number in range(SPECS):
        package, version, compiler, os, target, text, _ = chance.choice(rows)
        variants = " ".join([word for word in text.split() if word[0] in "+~"][:3])
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
