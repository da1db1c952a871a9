"""The command `check`."""

from __future__ import annotations

import json
import sys

import click

from spack_cache_db.build import check as check_pages
from spack_cache_db.cli.input import Bar, counted, input_options


@click.command()
@input_options
def check(paths: tuple[str, ...], jobs: int, max_page_size: int, as_json: bool) -> None:
    """Say what is wrong with PATHs without building: faults (exit status 1) and problems."""
    with Bar() as progress:
        faults, problems = check_pages(
            paths, jobs=jobs, max_page_size=max_page_size, progress=progress
        )
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
