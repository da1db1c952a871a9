"""The command `check`: faults and problems of an input, without a build."""

from __future__ import annotations

import sys
from typing import Any

import click

from spack_cache_db.cli.forms import print_json, say, say_faults
from spack_cache_db.cli.input_options import input_options
from spack_cache_db.cli.progress import progress_bar
from spack_cache_db.errors import counted


@click.command()
@input_options
def check(paths: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Check pages, indexes and package data without building.

    Prints faults, which end a build, and problems, which are contradictions within or
    between sources that a build records.

    Exit status: 0 if there is no fault, 1 if there are some, 2 for an error.

    Example: spack-cache-db check pages/
    """
    from spack_cache_db.assembly.builds import check as check_input

    # The other options have the names of the function's arguments.
    with progress_bar() as progress:
        faults, problems = check_input(paths, progress=progress, **options)

    if as_json:
        fault_texts = [str(fault) for fault in faults]
        problem_texts = [str(problem) for problem in problems]
        print_json({"faults": fault_texts, "problems": problem_texts})
    else:
        for problem in problems:
            say(str(problem))
        say_faults(faults)
        say(f"{counted(len(faults), 'fault')}, {counted(len(problems), 'problem')}")
    sys.exit(1 if faults else 0)
