"""The command `verify`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from spack_cache_db.cli.input import Bar, GivenPath, counted, documents_read, input_options
from spack_cache_db.cli.terminal import say
from spack_cache_db.verify import verify as verify_file


@click.command()
@click.argument("file", type=GivenPath(path_type=Path))
@input_options
def verify(
    file: Path,
    paths: tuple[str, ...],
    jobs: int,
    max_page_size: int,
    release: str | None,
    stack: str | None,
    as_json: bool,
) -> None:
    """Prove that FILE holds all that PATHs say; else name what it lacks (exit status 1).

    Example: spack-cache-db verify dist/spack-cache.db pages/
    """
    with Bar() as progress:
        found = verify_file(
            file,
            paths,
            jobs=jobs,
            max_page_size=max_page_size,
            release=release,
            stack=stack,
            progress=progress,
        )
    if as_json:
        click.echo(json.dumps({"file": str(file), **found.as_dict()}, indent=2))
    else:
        for difference in found.differences:
            click.echo(str(difference))
        for fault in found.faults:
            click.echo(str(fault), err=True)
        totals = documents_read(found.pages, found.indexes, found.records)
        if found.pages or not found.indexes:
            totals.append(counted(found.listings, "listing"))
        totals.append(counted(len(found.differences), "difference"))
        if found.faults:
            totals.append(counted(len(found.faults), "fault"))
        say(f"{file}: {', '.join(totals)}")
    sys.exit(1 if found.faults or found.differences else 0)
