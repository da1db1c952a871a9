"""The command `info`: what a database contains, and what it was built from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.databases import file_argument
from spack_cache_db.cli.forms import print_json, say
from spack_cache_db.cli.options import shared_options
from spack_cache_db.errors import bytes_text, counted


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

    # The names of the facts are a column of their own.
    facts = [
        *_content(values),
        *_days(values),
        ("stacks", f"{values['stacks']:,}"),
        *_sources(values),
    ]
    longest_name = max(len(name) for name, _ in facts)
    say(f"{file}: {bytes_text(values['size'])}")
    for name, text in facts:
        say(f"{name.ljust(longest_name)}  {text}")


def _content(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how many binaries and releases there are, each with its name; of a database
    of installations, how many installed specs and installations.
    """
    from spack_cache_db.model import INSTALLED

    is_installed = values["releases_by_kind"].keys() == {INSTALLED}
    packages = counted(values["packages"], "package")
    configurations = counted(values["configurations"], "configuration")
    specs = f"{values['specs']:,} in {configurations} of {packages}"
    yield "installed specs" if is_installed else "binaries", specs
    if is_installed:
        yield "installations", f"{values['releases']:,}"
        return

    # 5 (branch 1, snapshot 4)
    releases = f"{values['releases']:,}"
    kinds = []
    for kind, count in values["releases_by_kind"].items():
        kinds.append(f"{kind} {count:,}")
    if kinds:
        releases += f" ({', '.join(kinds)})"
    yield "releases", releases


def _days(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the days of snapshots, of the newest source, and of the last build."""
    first = values["first_snapshot"]
    last = values["last_snapshot"]
    if first:
        yield "snapshots", f"from {first} to {last}"
    # An installation may have newer binaries than all snapshots.
    if values["as_of"] != last:
        yield "as of", values["as_of"]
    # A build of today may find nothing new in sources of last month.
    if values["looked_at"]:
        day = values["looked_at"][: len("2026-11-25")]
        yield "last checked", f"{day}, when a build read the sources"


def _sources(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the database was built from, and what these sources contain."""
    from spack_cache_db.data_source import LICENSE_ROW, MIRROR_ROW, SOURCE_ROW
    from spack_cache_db.schema.identity import PATHS

    sources = []
    if values["pages"]:
        sources.append(counted(values["pages"], "page"))
    if values["indexes"]:
        sources.append(counted(values["indexes"], "index", "indexes"))
    if values["known_packages"]:
        sources.append("package data")
    yield "built from", " and ".join(sources)

    # Only the records of indexes have dependencies.
    if values["records"]:
        count = counted(values["dependencies"], "dependency", "dependencies")
        yield "dependencies", count
    else:
        yield "dependencies", "none: pages do not list them"

    # Where the data is from, as far as it is known.
    origin = dict(values["origin"])
    for name in (LICENSE_ROW, SOURCE_ROW, MIRROR_ROW):
        if name in origin:
            yield name.replace("_", " "), origin.pop(name)

    # Such as `packages behind  12`; empty without package data.
    for name, count in values["compared_with_spack"].items():
        yield name.replace("_", " "), f"{count:,}"
    yield "problems", f"{values['problems']:,}"

    # The options of the build.
    options = []
    if "first" in origin:
        options.append(f"{origin.pop('first')} comes first")
    if origin.pop(PATHS, None):
        options.append("the paths of installed specs are left out")
    if options:
        yield "options", "; ".join(options)

    # The rest of `origin`: the programs of the build with their versions.
    versions = [f"{name} {value}" for name, value in origin.items()]
    versions.append(f"schema {values['schema_version']}")
    yield "built with", ", ".join(versions)
