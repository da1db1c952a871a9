"""The command `build`, and the counts of sources that it and `verify` print."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.forms import fail, print_json, say, say_faults, say_notes
from spack_cache_db.cli.input_options import input_options, pairs
from spack_cache_db.cli.parameters import GivenPath, flag, value_option
from spack_cache_db.cli.progress import progress_bar
from spack_cache_db.cli.signals import when_stopped
from spack_cache_db.errors import bytes_text, counted, reason

if TYPE_CHECKING:
    import sqlite3

    from spack_cache_db.assembly.report import Report


LOST_MOST = """
SELECT count_before - releases.removed_count, name_before, count_before
FROM releases JOIN (
  SELECT id AS id_before, name AS name_before, spec_count AS count_before FROM releases
) ON id_before = releases.previous_release_id
WHERE releases.name = :name AND 2 * releases.removed_count > count_before
"""
"""How many binaries a snapshot has kept of the snapshot before it, if that is less than
half.
"""


@click.command()
@input_options
@click.option(
    "-o",
    "--output",
    type=GivenPath(dir_okay=False, path_type=Path),
    required=True,
    help="Database to write. An old one is replaced when the new one is complete.",
)
@flag(
    "--example",
    "Build from the five sample pages that come with this program.",
    is_eager=True,
)
@value_option(
    "--first",
    "NAME",
    "Release that comes first in lists and answers, before installations.",
)
@value_option(
    "--recipes",
    "NAMESPACE=URL",
    "URL of a namespace's recipes, with {package} for the package's name. Repeatable.",
    multiple=True,
    callback=pairs,
)
@flag("--without-paths", "Leave out the paths of installed specs and externals.")
@value_option(
    "--dask",
    "ADDRESS",
    "Read the input on the Dask cluster with this scheduler, or on a new one: local.",
)
@flag("--keep-going", "Skip faulty input, and list its faults in the table problems.")
@flag(
    "--force",
    "Replace FILE even if releases are lost, or if another program made it; allow a snapshot "
    "before the newest one; build even if nothing is new.",
)
def build(
    paths: tuple[str, ...],
    output: Path,
    example: bool,
    dask: str | None,
    recipes: tuple[tuple[str, str], ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Build a database from pages, indexes and package data.

    PATH is a page, an index, package data, a mirror, an installation, or a folder or an
    archive of them. A database of an earlier build is a PATH too; databases in folders
    are skipped. Release and stack of an index or mirror are its folders,
    <release>/<stack>/, or --release and --stack.

    Exit status: 0 for success, 1 for faulty input, 2 for another error.

    Example: spack-cache-db build pages/ -o dist/spack-cache.db
    """
    from spack_cache_db.assembly.builds import build as build_database
    from spack_cache_db.assembly.output_lock import remove_lock_file
    from spack_cache_db.assembly.replacement import discard
    from spack_cache_db.site.folder import site_folder

    def remove_unfinished() -> str:
        discard(output)
        remove_lock_file(output)
        return "no incomplete file is left"

    if example:
        paths = (*paths, str(site_folder() / "pages"))
    folder = output.parent
    is_new_folder = not os.path.exists(folder)  # noqa: PTH110 - it does not raise

    # The remaining options have the names of the function's arguments.
    workers = _workers(dask, options.pop("jobs"))
    with (
        when_stopped(remove_unfinished),
        workers as worker_options,
        progress_bar() as progress,
    ):
        report = build_database(
            paths,
            output,
            recipes=dict(recipes),
            progress=progress,
            **worker_options,
            **options,
        )

    say_notes(report.notes)
    say_faults(report.faults)
    if as_json:
        print_json({**report.as_dict(), "output": str(output)})
    elif report.is_unchanged:
        why = "its input has nothing new"
        say(f"{output}: unchanged, because {why} ({report.seconds:.1f} s)")
    else:
        _say_written(output, report)
        if is_new_folder:
            say_notes([f"{folder} is a new folder"])


@contextmanager
def _workers(address: str | None, jobs: int) -> Iterator[dict[str, Any]]:
    """Yield the arguments of the function `build` about the processes that read.

    These are `jobs` processes of this machine, or the workers of a Dask cluster at an
    address; the address `local` starts a cluster with `jobs` processes.
    """
    if address is None:
        yield {"jobs": jobs}
        return
    with _dask_client(address, jobs) as client:
        # `jobs` is how many parts of the input are read at a time.
        threads = sum(client.nthreads().values())
        yield {"jobs": max(jobs, threads), "executor": client}


def _dask_client(address: str, jobs: int) -> Any:
    """Return a client of a Dask cluster, which closes it at the end of a context."""
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        need = f"--dask needs {error.name}, which is not installed"
        fail(f"{need}; install the extra `dask`")
    try:
        if address == "local":
            return Client(
                n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            )
        return Client(address, timeout=10)
    except Exception as error:
        # Dask raises OSError, TimeoutError or ValueError.
        message = f"no Dask scheduler responds at {address}: {reason(error)}"
        fail(f"{message}; --dask takes an address such as tcp://host:8786")


def _say_written(output: Path, report: Report) -> None:
    """Print what a build has written: the database, its snapshots, its inspect file."""
    from spack_cache_db.inspect_file import inspect_path
    from spack_cache_db.query.open.lookups import read_lookups
    from spack_cache_db.query.open.sql import connected

    # A database of installations has no binaries.
    with connected(output) as conn:
        is_installed = read_lookups(conn).is_installed
        shrunk = _shrunk(conn, output, report.snapshots.added)
    specs = counted(report.specs, "binary", "binaries")
    if is_installed:
        specs = counted(report.specs, "installed spec")
    totals = [
        *source_counts(
            report.pages, report.indexes, report.records, report.package_entries
        ),
        counted(report.listings, "listing"),
        specs,
        counted(report.configurations, "configuration"),
        counted(report.problems, "problem"),
        f"{bytes_text(report.file_size)} in {report.seconds:.1f} s",
    ]
    say(f"{output}: {', '.join(totals)}")

    snapshots = report.snapshots
    if snapshots.added:
        say(f"{output}: snapshots: {', '.join(snapshots.added)}")
        say_notes(shrunk)
    elif snapshots.day:
        why = "no mirror has other binaries than its newest snapshot"
        say(f"{output}: no snapshot, because {why}")
    _say_left_out(output, "--keep-snapshots", snapshots.removed)
    _say_left_out(output, "--drop", snapshots.drop)

    inspected = inspect_path(output)
    if inspected.is_file():
        say(f"{inspected}: counts, with which `serve` starts sooner")


def _shrunk(
    conn: sqlite3.Connection, output: Path, snapshots: Sequence[str]
) -> list[str]:
    """Return a note on each new snapshot that has lost most binaries of the one before:
    its mirror may have been incomplete.
    """
    notes = []
    for name in snapshots:
        # A snapshot without an earlier one has no row.
        for count, before, count_before in conn.execute(LOST_MOST, {"name": name}):
            words = ["spack-cache-db", "build", str(output), "-o", str(output)]
            command = shlex.join([*words, "--drop", name])
            notes.append(
                f"{name} has {count:,} of the {count_before:,} binaries of {before}; "
                f"if the mirror was incomplete, remove the snapshot: {command}"
            )
    return notes


def _say_left_out(output: Path, option: str, releases: Sequence[str]) -> None:
    """Print the releases that an option left out of a database, if there are any."""
    if releases:
        count = counted(len(releases), "release")
        say(f"{output}: {count} left out by {option}: {', '.join(releases)}")


def source_counts(pages: int, indexes: int, records: int, packages: int) -> list[str]:
    """Return texts such as `5 pages`, `1 index`, `120 records`, `80 package entries`.

    Sources of which there are none are left out; without any, it is `0 pages`.

    Args:
        pages: the number of pages.
        indexes: the number of indexes.
        records: the number of specs in the indexes.
        packages: the number of packages in package data.
    """
    texts = []
    if pages or not (indexes or packages):
        texts.append(counted(pages, "page"))
    if indexes:
        texts.append(counted(indexes, "index", "indexes"))
        texts.append(counted(records, "record"))
    if packages:
        texts.append(counted(packages, "package entry", "package entries"))
    return texts
