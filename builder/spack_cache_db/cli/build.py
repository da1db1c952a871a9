"""The commands that read an input: `build`, `check` and `verify`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.forms import fail, print_json, say, say_faults, say_notes
from spack_cache_db.cli.options import (
    GivenPath,
    flag,
    input_options,
    pairs,
    value_option,
)
from spack_cache_db.cli.progress import progress_bar
from spack_cache_db.cli.signals import when_stopped
from spack_cache_db.errors import counted, reason

if TYPE_CHECKING:
    from spack_cache_db.assembly.options import Snapshots


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
    "before the newest one.",
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
    from spack_cache_db.assembly.file import discard
    from spack_cache_db.assembly.output_lock import remove_lock_file
    from spack_cache_db.database_file import inspect_path
    from spack_cache_db.site.folder import site_folder

    def tidy() -> str:
        discard(output)
        remove_lock_file(output)
        return "no incomplete file is left"

    folder = output.parent
    is_new = not os.path.exists(folder)  # noqa: PTH110 - it does not raise
    if example:
        paths = (*paths, str(site_folder() / "pages"))
    workers = dask_workers(dask, options.pop("jobs"))
    with when_stopped(tidy), workers as reading, progress_bar() as progress:
        report = build_database(
            paths,
            output,
            recipes=dict(recipes),
            progress=progress,
            **reading,
            **options,
        )
    say_notes(report.notes)
    say_faults(report.faults)
    if as_json:
        print_json({**report.as_dict(), "output": str(output)})
    elif report.is_unchanged:
        say(
            f"{output}: unchanged, because its input has nothing new ({report.seconds:.1f} s)"
        )
    else:
        totals = [
            *names_of_documents(
                report.pages, report.indexes, report.records, report.package_entries
            ),
            counted(report.listings, "listing"),
            counted(report.specs, "binary", "binaries"),
            counted(report.configurations, "configuration"),
            counted(report.problems, "problem"),
            f"{report.file_size / 1e6:.1f} MB in {report.seconds:.1f} s",
        ]
        say(f"{output}: {', '.join(totals)}")
        if report.snapshots.day:
            names = ", ".join(report.snapshots.added)
            why = "no mirror has other binaries than its newest snapshot"
            say(
                f"{output}: {f'snapshots: {names}' if names else f'no snapshot, because {why}'}"
            )
        _say_removed(output, report.snapshots)
        if (inspected := inspect_path(output)).is_file():
            say(f"{inspected}: counts, with which `serve` starts sooner")
        if is_new:
            say_notes([f"{folder} is a new folder"])


def _say_removed(output: Path, snapshots: Snapshots) -> None:
    """Print the releases that options left out of a database."""
    for option, names in (
        ("--keep-snapshots", snapshots.removed),
        ("--drop", snapshots.drop),
    ):
        if names:
            releases = counted(len(names), "release")
            say(f"{output}: {releases} left out by {option}: {', '.join(names)}")


def names_of_documents(
    pages: int, indexes: int, records: int, packages: int
) -> list[str]:
    """Return the counts of pages, indexes, records and package data as texts."""
    texts = [counted(pages, "page")] if pages or not (indexes or packages) else []
    if indexes:
        texts += [counted(indexes, "index", "indexes"), counted(records, "record")]
    if packages:
        texts.append(counted(packages, "package entry", "package entries"))
    return texts


@contextmanager
def dask_workers(address: str | None, jobs: int) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `build` that name its processes or the workers of a Dask
    cluster.

    `local` starts a cluster with `jobs` processes.
    """
    if address is None:
        yield {"jobs": jobs}
        return
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        fail(
            f"--dask needs {error.name}, which is not installed; install the extra `dask`"
        )
    try:
        if address == "local":
            client = Client(
                n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            )
        else:
            client = Client(address, timeout=10)
    except Exception as error:
        # Dask raises OSError, TimeoutError or ValueError.
        message = f"no Dask scheduler responds at {address}: {reason(error)}"
        fail(f"{message}; --dask takes an address such as tcp://host:8786")
    with client:
        threads = sum(client.nthreads().values())
        yield {"jobs": max(jobs, threads), "executor": client}
