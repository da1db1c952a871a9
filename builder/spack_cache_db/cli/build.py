"""The commands that read an input: `build`, `check` and `verify`."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from spack_cache_db.build import Report
from spack_cache_db.build import build as build_database
from spack_cache_db.build import check as check_input
from spack_cache_db.build.publication import discard
from spack_cache_db.cli.options import GivenPath, input_options
from spack_cache_db.cli.terminal import ProgressBar, documents_read, say, say_notes, when_stopped
from spack_cache_db.errors import BuilderError, counted, reason
from spack_cache_db.site import site_folder
from spack_cache_db.verify import verify as verify_file


def _by_namespace(ctx: click.Context, parameter: object, given: tuple[str, ...]) -> dict[str, str]:
    for each in given:
        if "=" not in each:
            raise click.BadParameter(f"{each!r} has no '=', expected NAMESPACE=URL", ctx)
    return {namespace: url for namespace, _, url in (each.partition("=") for each in given)}


@click.command()
@input_options
@click.option(
    "-o",
    "--output",
    type=GivenPath(dir_okay=False, path_type=Path),
    required=True,
    help="Database to write. An old one is replaced when the new one is complete.",
)
@click.option(
    "--example",
    is_flag=True,
    is_eager=True,
    help="Build from the five sample pages that come with this program.",
)
@click.option(
    "--first",
    metavar="NAME",
    help="Release that comes first in lists and answers, before installed trees.",
)
@click.option(
    "--recipes",
    multiple=True,
    metavar="NAMESPACE=URL",
    callback=_by_namespace,
    help="URL of a namespace's recipes, with {package} for the package's name. Repeatable.",
)
@click.option(
    "--without-paths",
    is_flag=True,
    help="Leave out the paths of installed specs and externals.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Read the input on the Dask cluster with this scheduler, or on a new one: local.",
)
@click.option(
    "--keep-going",
    is_flag=True,
    help="Leave out faulty input and record the faults in the table problems.",
)
@click.option("--force", is_flag=True, help="Replace FILE even if another program made it.")
def build(
    paths: tuple[str, ...],
    output: Path,
    example: bool,
    dask: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Build a database from pages, indexes and package data.

    Each PATH is one of these, a mirror, an installed tree, or a folder or an archive of them. A
    database that an earlier build made gives everything that it was built from; name it itself.
    Indexes and mirrors take release and stack from their folders, <release>/<stack>/, or from
    --release and --stack.

    Exit status: 0 for success, 1 for faulty input, 2 for another error.

    Example: spack-cache-db build pages/ -o dist/spack-cache.db
    """

    def tidy() -> str:
        discard(output)
        return "no incomplete file is left"

    if example:
        paths = (*paths, str(site_folder() / "pages"))
    workers = dask_workers(dask, options.pop("jobs"))
    with when_stopped(tidy), workers as reading, ProgressBar() as progress:
        report = build_database(paths, output, progress=progress, **reading, **options)
    say_notes(report.notes)
    for fault in report.faults:
        click.echo(str(fault), err=True)
    if as_json:
        click.echo(json.dumps({**report.as_dict(), "output": str(output)}, indent=2))
    else:
        say(_totals(report, output))


def _totals(report: Report, output: Path) -> str:
    totals = [
        *documents_read(report.pages, report.indexes, report.records, report.package_entries),
        counted(report.listings, "listing"),
        counted(report.specs, "spec"),
        counted(report.configurations, "configuration"),
        counted(report.problems, "problem"),
        f"{report.file_size / 1e6:.1f} MB in {report.seconds:.1f} s",
    ]
    return f"{output}: {', '.join(totals)}"


@click.command()
@input_options
def check(paths: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Check pages, indexes and package data without building.

    Prints faults, which end a build, and problems, which are contradictions within or between
    sources that a build records.

    Exit status: 0 if there is no fault, 1 if there are some, 2 for an error.

    Example: spack-cache-db check pages/
    """
    with ProgressBar() as progress:
        faults, problems = check_input(paths, progress=progress, **options)
    if as_json:
        report = {"faults": [*map(str, faults)], "problems": [*map(str, problems)]}
        click.echo(json.dumps(report, indent=2))
    else:
        for problem in problems:
            click.echo(str(problem))
        for fault in faults:
            click.echo(str(fault), err=True)
        click.echo(f"{counted(len(faults), 'fault')}, {counted(len(problems), 'problem')}")
    sys.exit(1 if faults else 0)


@click.command()
@click.argument("file", type=GivenPath(path_type=Path))
@input_options
def verify(file: Path, paths: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Verify that a database is what its sources give.

    PATH... is everything that FILE was built from. The sources are built again in a temporary
    folder, and every row of every table is compared. Give --release and --stack as to build; its
    other options are taken from FILE.

    Exit status: 0 if there is no difference, 1 if there are some, 2 for an error.

    Example: spack-cache-db verify dist/spack-cache.db pages/
    """
    with ProgressBar() as progress:
        found = verify_file(file, paths, progress=progress, **options)
    if as_json:
        click.echo(json.dumps({"file": str(file), **found.as_dict()}, indent=2))
    else:
        for difference in found.differences:
            click.echo(str(difference))
        for fault in found.faults:
            click.echo(str(fault), err=True)
        totals = documents_read(found.pages, found.indexes, found.records, found.packages)
        if found.listings or not (found.indexes or found.packages):
            totals.append(counted(found.listings, "listing"))
        totals.append(counted(len(found.differences), "difference"))
        if found.faults:
            totals.append(counted(len(found.faults), "fault"))
        say(f"{file}: {', '.join(totals)}")
    sys.exit(1 if found.faults or found.differences else 0)


LOCAL = "local"
"""The address of a cluster that is started here, and ended with the command."""

PATIENCE = 10
"""So many seconds a scheduler has to answer."""


@contextmanager
def dask_workers(address: str | None, jobs: int) -> Iterator[dict[str, Any]]:
    """Connect to a Dask cluster; yield the arguments of `build` that say who reads.

    Args:
        address: that of the cluster's scheduler; None for no cluster.
        jobs: how many processes read where there is no cluster, or a local one.

    Raises:
        BuilderError: dask.distributed is not installed, or no scheduler answers.
    """
    if address is None:
        yield {"jobs": jobs}
        return
    try:
        from distributed import Client
        from distributed.versions import VersionMismatchWarning
    except ModuleNotFoundError as error:
        install = "install it with: pip install 'spack-cache-db[build,dask]'"
        raise BuilderError(
            f"--dask needs {error.name}, which is not installed; {install}"
        ) from None
    # A long table of all packages that differ; those that matter are compared by the build.
    warnings.simplefilter("ignore", VersionMismatchWarning)
    try:
        client = (
            Client(n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0")
            if address == LOCAL
            else Client(address, timeout=PATIENCE)
        )
    except Exception as error:
        # Which one Dask raises depends on what it has done when the time is over.
        said = f"no Dask scheduler responds at {address}: {reason(error)}"
        raise BuilderError(f"{said}; --dask takes an address such as tcp://host:8786") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            say_notes([f"the cluster at {address} has no worker yet; waiting for one"])
        yield {"jobs": max(jobs, threads), "executor": DaskCluster(client)}


class DaskCluster(Executor):
    """Submits to a Dask client.

    `Client.get_executor` brings results here before somebody asks for them, and never says that
    the scheduler died while one was under way.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Return a future of Dask, which has the methods of a `concurrent.futures.Future`."""
        return self._client.submit(fn, *args, **kwargs)
