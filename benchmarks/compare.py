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
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks import inputs
from benchmarks.options import folder_option
from benchmarks.report import Measure, goals_table

SCALE = 0.05
RECORDS = 20_000
LARGEST_RATIO = 1.1
HERE = Path(__file__).parent.parent

BUILD = """
import sys, time
from spack_cache_db import build
start = time.process_time()
build(sys.argv[1], sys.argv[2])
print(time.process_time() - start)
"""


@dataclass(frozen=True, slots=True)
class Built:
    """The processor seconds and the bytes of one build."""

    seconds: float
    size: int


@click.command()
@click.argument("revision", default="HEAD")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@folder_option
def main(revision: str, rounds: int, folder: Path) -> None:
    """Fail if builds take a tenth more time or space than at REVISION."""
    folder.mkdir(parents=True, exist_ok=True)
    usual, _ = inputs.corpus(folder, SCALE, "usual")
    high, _ = inputs.corpus(folder, SCALE, "high")
    index = inputs.index(folder, RECORDS)
    paths = {
        "pages, usual variety": usual,
        "pages, high variety": high,
        "index": index,
    }
    measures: list[Measure] = []
    with checked_out(revision) as other:
        for name, path in paths.items():
            measures += ratios(name, path, other, rounds)
    click.echo(goals_table(measures))
    larger = [measure.name for measure in measures if not measure.met]
    if larger:
        raise click.ClickException(
            f"more than a tenth above {revision}: {', '.join(larger)}"
        )


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder."""
    # A worktree shares the history with this checkout, and has files of its own.
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def ratios(name: str, path: Path, other: Path, rounds: int) -> list[Measure]:
    """Return time and size of a build of this checkout, each divided by that of another
    one.
    """
    # In turn, so that other load slows both down.
    ours: list[Built] = []
    others: list[Built] = []
    for _ in range(rounds):
        ours.append(built(HERE, path))
        others.append(built(other, path))

    # Other load only adds to a time: the smallest one counts.
    seconds = min(run.seconds for run in ours)
    size = min(run.size for run in ours)
    time_ratio = seconds / min(run.seconds for run in others)
    size_ratio = size / min(run.size for run in others)
    return [
        Measure(f"{name}: time", time_ratio, "x", LARGEST_RATIO, digits=3),
        Measure(f"{name}: size", size_ratio, "x", LARGEST_RATIO, digits=3),
    ]


def built(tree: Path, path: Path) -> Built:
    """Build with the code of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(tree / "builder")}
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder, "out.db")
        command = [sys.executable, "-c", BUILD, str(path), str(database)]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        )
        return Built(seconds=float(done.stdout), size=database.stat().st_size)


if __name__ == "__main__":
    main()
