"""The command `info`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.forms import print_json, say
from spack_cache_db.cli.options import file_argument, shared_options
from spack_cache_db.errors import counted


@click.command()
@file_argument
@shared_options("json")
def info(file: Path, as_json: bool) -> None:
    """Summarize the content and the sources of a database.

    `--json` prints all counts.
    """
    from spack_cache_db.query.open.info import info as info_of

    values = info_of(file)
    if as_json:
        print_json(values)
        return
    facts = dict(_facts(values))
    width = max(map(len, facts))
    say(f"{file}: {values['size'] / 1e6:,.1f} MB")
    for name, text in facts.items():
        say(f"{name:<{width}}  {text}")


def _facts(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of `info` for people: a name and a text."""
    packages = counted(values["packages"], "package")
    configurations = counted(values["configurations"], "configuration")
    yield "binaries", f"{values['specs']:,} in {configurations} of {packages}"
    releases = f"{values['releases']:,}"
    kinds = [f"{kind} {count:,}" for kind, count in values["releases_by_kind"].items()]
    if kinds:
        releases += f" ({', '.join(kinds)})"
    yield "releases", releases

    # Days.
    first = values["first_snapshot"]
    last = values["last_snapshot"]
    if first:
        yield "snapshots", f"from {first} to {last}"
    if values["as_of"] != last:
        yield "as of", values["as_of"]
    if values["looked_at"]:
        # A build of today may find nothing new in sources of last month.
        day = values["looked_at"][:10]
        yield "last checked", f"{day}, when a build read the sources"
    yield "stacks", f"{values['stacks']:,}"

    # Sources, and what they have.
    sources = []
    if values["pages"]:
        sources.append(counted(values["pages"], "page"))
    if values["indexes"]:
        sources.append(counted(values["indexes"], "index", "indexes"))
    if values["known_packages"]:
        sources.append("package data")
    yield "built from", " and ".join(sources)
    dependencies = "none: pages do not list them"
    if values["records"]:
        dependencies = counted(values["dependencies"], "dependency", "dependencies")
    yield "dependencies", dependencies
    for name, count in values["compared_with_spack"].items():
        yield name.replace("_", " "), f"{count:,}"
    yield "problems", f"{values['problems']:,}"
    origin = values["origin"].items()
    programs = [f"{name} {version}" for name, version in origin]
    yield "built with", ", ".join((*programs, f"schema {values['schema_version']}"))
