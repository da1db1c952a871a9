"""The command `info`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.forms import print_json, say
from spack_cache_db.cli.options import file_argument, shared_options
from spack_cache_db.errors import counted

if TYPE_CHECKING:
    pass


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
    kinds = ", ".join(
        f"{kind} {count:,}" for kind, count in values["releases_by_kind"].items()
    )
    yield "releases", f"{values['releases']:,}" + (f" ({kinds})" if kinds else "")
    if values["first_snapshot"]:
        yield (
            "snapshots",
            f"from {values['first_snapshot']} to {values['last_snapshot']}",
        )
    if values["as_of"] != values["last_snapshot"]:
        yield "as of", values["as_of"]
    if values["looked_at"]:
        # A build of today may find nothing new in sources of last month.
        yield (
            "last checked",
            f"{values['looked_at'][:10]}, when a build read the sources",
        )
    yield "stacks", f"{values['stacks']:,}"
    yield (
        "built from",
        " and ".join(
            [
                *([counted(values["pages"], "page")] if values["pages"] else []),
                *(
                    [counted(values["indexes"], "index", "indexes")]
                    if values["indexes"]
                    else []
                ),
                *(["package data"] if values["known_packages"] else []),
            ]
        ),
    )
    edges = counted(values["dependencies"], "dependency", "dependencies")
    yield "dependencies", edges if values["records"] else "none: pages do not list them"
    for name, count in values["compared_with_spack"].items():
        yield name.replace("_", " "), f"{count:,}"
    yield "problems", f"{values['problems']:,}"
    programs = ", ".join(
        f"{name} {version}" for name, version in values["origin"].items()
    )
    yield "built with", f"{programs}, schema {values['schema_version']}"
