"""The figures of docs/performance.md: `python -m benchmarks.figures --write`.

Each job is done by a command of this project and by what one would do instead, in one
run on one machine. `instead.py` and `script.py` are the other programs.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import click

from benchmarks import inputs
from benchmarks.build import build
from benchmarks.built import connected
from benchmarks.measure import CommandFailedError, median_of, run_command, run_module
from benchmarks.options import folder_option, runs_option, scale_option
from benchmarks.report import table, write_section
from benchmarks.script_build import script_build
from tests.corpus import pages as corpus

PERFORMANCE = Path(__file__).parent.parent / "docs" / "performance.md"
SECTION = "table of figures"
SHORTEST_WITH_MEMORY = 0.2
"""Seconds of a run whose memory is shown."""
COMMONEST_HASH = "SELECT hash FROM specs ORDER BY release_count DESC, hash LIMIT 1"
COMMONEST_PACKAGE = """
SELECT package, target FROM builds WHERE is_current
GROUP BY package, target ORDER BY count(*) DESC, package, target LIMIT 1
"""
HEAD = ("job", "with", "time", "memory", "input")


class Cost(Protocol):
    """What a run took: the time, and the memory of all its processes."""

    @property
    def seconds(self) -> float:
        """The time."""

    @property
    def peak_bytes(self) -> int:
        """The memory."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One way to do a job.

    `reads` is the input of the way: the files as they are downloaded, or what a build
    or an export has made of them.
    """

    job: str
    way: str
    cost: Cost
    reads: str

    def cells(self) -> list[str]:
        """Return the row of the table."""
        seconds = self.cost.seconds
        if seconds >= 10:
            time = f"{seconds:,.0f} s"
        elif seconds >= 1:
            time = f"{seconds:.1f} s"
        else:
            time = f"{seconds:.2f} s"
        # A short run ends before its memory is looked at.
        memory = ""
        if seconds >= SHORTEST_WITH_MEMORY:
            memory = f"{self.cost.peak_bytes / 1e6:,.0f} MB"
        return [self.job, self.way, time, memory, self.reads]


@dataclass(frozen=True, slots=True)
class Subject:
    """The commonest hash, and a package with a target, about which is asked."""

    hash: str
    package: str
    target: str


@click.command()
@scale_option
@click.option(
    "--records",
    default=150_000,
    show_default=True,
    type=click.IntRange(1),
    help="Records of the index.",
)
@runs_option
@folder_option
@click.option("--write", is_flag=True, help="Write the table into docs/performance.md.")
def main(scale: float, records: int, runs: int, folder: Path, write: bool) -> None:
    """Compare what this project does with what one would do instead."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        text = report(folder, scale, records, runs)
    except CommandFailedError as error:
        raise click.ClickException(str(error)) from error
    click.echo(text)
    if write:
        write_section(PERFORMANCE, SECTION, text)


def report(folder: Path, scale: float, records: int, runs: int) -> str:
    """Measure all jobs on generated inputs and return the table."""
    pages, totals = inputs.corpus(folder, scale, "usual")
    index = inputs.index(folder, records)
    history = folder / "figures-pages.db"
    of_index = folder / "figures-index.db"

    # Files are read once before anything is timed.
    run_module("benchmarks.floor", [str(pages)])
    run_module("benchmarks.index_floor", [str(index)])

    # The databases first: the questions are asked to them.
    figures = [
        _build("a database of all pages", pages, history, runs, "pages"),
        _script(folder, scale, totals),
        *_questions_to_pages(pages, history, runs),
        *_questions_to_tables(folder, pages, history, runs),
        _build("a database of one index", index, of_index, runs, "index"),
        *_questions_to_index(index, of_index, runs),
    ]
    rows = [figure.cells() for figure in figures]
    described = f"{_described(totals)}, and {_described_index(index, records)}"
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    preamble = f"{described}. Medians of {runs}, files in memory; {machine}."
    return f"{preamble}\n\n{table(HEAD, rows)}"


def _described(totals: corpus.Totals) -> str:
    """Return the size of a corpus in words."""
    megabytes = totals.page_bytes / 1e6
    return f"{totals.pages:,} pages, {megabytes:,.0f} MB, with {totals.listings:,} listings"


def _described_index(index: Path, records: int) -> str:
    """Return the size of an index in words."""
    megabytes = index.stat().st_size / 1e6
    return f"an index of {records:,} records, {megabytes:,.0f} MB"


def _build(job: str, source: Path, file: Path, runs: int, reads: str) -> Figure:
    built = [build([source], file, memory=True) for _ in range(runs)]
    return Figure(job, "`build`", median_of(built), reads)


def _script(folder: Path, scale: float, totals: corpus.Totals) -> Figure:
    script = script_build(folder, scale, totals, memory=True)
    way = f"python-frontmatter and sqlite-utils (from {script.share:.0%} of the pages)"
    return Figure("", way, script, "pages")


def _questions_to_pages(pages: Path, file: Path, runs: int) -> list[Figure]:
    """Ask for a hash, and for a package: in the database, and in the pages."""
    # A hash may stand in any page.
    subject = subject_of(file)
    job = "a hash in all releases"
    find = ["find", f"/{subject.hash}", str(file)]
    grep = ["grep", "-rlF", subject.hash, str(pages)]
    of_hash = [
        Figure(job, "`find`", _module("spack_cache_db", find, runs), "database"),
        Figure("", "`grep -r`", _command(grep, runs), "pages"),
    ]

    # The page of a package in a release is known.
    job = "a package and a target in one release"
    find = ["find", subject.package, f"target={subject.target}"]
    find += ["--release", "develop", str(file)]
    page = pages / "_cache" / "develop" / subject.package / "specs.md"
    grep = ["grep", "-oF", f'"target": "{subject.target}"', str(page)]
    of_package = [
        Figure(job, "`find`", _module("spack_cache_db", find, runs), "database"),
        Figure("", "`grep`", _command(grep, runs), "one page"),
    ]
    return of_hash + of_package


def _questions_to_tables(
    folder: Path, pages: Path, file: Path, runs: int
) -> list[Figure]:
    """Count binaries: in the database, in exported tables, and in the pages."""
    job = "binaries by compiler in each release"
    tables = folder / "figures-tables"
    run_module("spack_cache_db", ["export", str(file), "-o", str(tables)])
    return [
        Figure(job, "SQLite", _instead("sqlite_view", [file], runs), "database"),
        Figure("", "DuckDB", _instead("duckdb_parquet", [tables], runs), "`export`"),
        Figure("", "DuckDB", _instead("duckdb_pages", [pages], runs), "pages"),
    ]


def _questions_to_index(index: Path, file: Path, runs: int) -> list[Figure]:
    """Ask for a package: in the database, and in the index."""
    subject = subject_of(file)
    job = "a package and a target in one index"
    find = ["find", subject.package, f"target={subject.target}", str(file)]
    load = [index, subject.package, subject.target]
    return [
        Figure(job, "`find`", _module("spack_cache_db", find, runs), "database"),
        Figure("", "Python's `json`", _instead("json_index", load, runs), "index"),
    ]


def subject_of(file: Path) -> Subject:
    """Return what the questions to a database are about."""
    with closing(connected(file)) as conn:
        (spec_hash,) = conn.execute(COMMONEST_HASH).fetchone()
        package, target = conn.execute(COMMONEST_PACKAGE).fetchone()
    return Subject(spec_hash, package, target)


def _instead(name: str, arguments: Sequence[object], runs: int) -> Cost:
    """Measure another program that answers the question."""
    texts = [str(argument) for argument in arguments]
    return _module("benchmarks.instead", [name, *texts], runs)


def _module(name: str, arguments: Sequence[str], runs: int) -> Cost:
    return _command([sys.executable, "-m", name, *arguments], runs)


def _command(command: Sequence[str], runs: int) -> Cost:
    """Return the run of median time."""
    return median_of([run_command(command, memory=True) for _ in range(runs)])


if __name__ == "__main__":
    main()
