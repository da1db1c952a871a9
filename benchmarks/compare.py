"""Compare builds of this checkout with those of another commit:
`python -m benchmarks.compare REV`.

Both build the same generated inputs, in turn and in fresh processes, on one machine.
The smallest processor time of some rounds counts, because other load on the machine
only adds to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from benchmarks import inputs
from benchmarks.options import folder_option
from benchmarks.report import Measure, goals_table

SCALE, RECORDS = 0.05, 20_000
LARGEST_RATIO = 1.1
HERE = Path(__file__).parent.parent

BUILD = """
import sys, time
from spack_cache_db import build
start = time.process_time()
build(sys.argv[1], sys.argv[2])
print(time.process_time() - start)
"""


@click.command()
@click.argument("revision", default="HEAD")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@folder_option
def main(revision: str, rounds: int, folder: Path) -> None:
    """Fail if builds take a tenth more time or space than at REVISION."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {
        "pages, usual variety": inputs.corpus(folder, SCALE, "usual")[0],
        "pages, high variety": inputs.corpus(folder, SCALE, "high")[0],
        "index": inputs.index(folder, RECORDS),
    }
    with checked_out(revision) as other:
        measures = [
            ratio
            for name, path in paths.items()
            for ratio in ratios(name, path, other, rounds)
        ]
    click.echo(goals_table(measures))
    larger = [measure.name for measure in measures if not measure.met]
    if larger:
        raise click.ClickException(
            f"more than a tenth above {revision}: {', '.join(larger)}"
        )


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def ratios(name: str, path: Path, other: Path, rounds: int) -> Iterator[Measure]:
    """Yield time and size of a build of this checkout, each divided by that of another
    one.
    """
    runs = [(*built(HERE, path), *built(other, path)) for _ in range(rounds)]
    seconds, size, other_seconds, other_size = map(min, zip(*runs, strict=True))
    for measured, value in (
        ("time", seconds / other_seconds),
        ("size", size / other_size),
    ):
        yield Measure(f"{name}: {measured}", value, "x", LARGEST_RATIO, digits=3)


def built(tree: Path, path: Path) -> tuple[float, int]:
    """Return the processor seconds and the bytes of a build with the code of a
    checkout.
    """
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder, "out.db")
        command = [sys.executable, "-c", BUILD, str(path), str(database)]
        environment = os.environ | {"PYTHONPATH": str(tree / "builder")}
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        )
        return float(done.stdout), database.stat().st_size


if __name__ == "__main__":
    main()
