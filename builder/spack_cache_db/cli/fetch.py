"""The command `fetch`: the only one that uses a network."""

from __future__ import annotations

import sys
from dataclasses import fields
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.options import ByteSize, F, GivenPath
from spack_cache_db.cli.terminal import (
    FaultyInput,
    ProgressBar,
    counted,
    say,
    say_notes,
    when_stopped,
)
from spack_cache_db.sources.fetch import FetchLimits, FetchOptions, FetchReport
from spack_cache_db.sources.fetch import fetch as fetch_mirrors

if TYPE_CHECKING:
    from spack_cache_db.sources.fetch.addresses import Map


class _MapType(click.ParamType["Map"]):
    """An address and what it is here: FROM=TO."""

    name = "from=to"

    def convert(self, value: Any, param: Any, ctx: Any) -> Map:
        """Return the map."""
        # It needs msgspec, which the help of this command does not.
        from spack_cache_db.sources.fetch.addresses import parse_map

        try:
            return parse_map(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Seconds(click.FloatRange):
    """A number of seconds, more than none and not without end."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(0, sys.float_info.max, min_open=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the number."""
        seconds: float = super().convert(value, param, ctx)
        # What is no number compares as within every range.
        return self.fail(f"{value} is no number", param, ctx) if isnan(seconds) else seconds


_LIMITS: tuple[tuple[str, click.ParamType[Any], str | bool, str], ...] = (
    ("jobs", click.IntRange(1), True, "Mirrors at once."),
    ("max_size", ByteSize(), "1G", "Refuse larger indexes (bytes, or 64M, 1G)."),
    ("max_total", ByteSize(), "64G", "Download no more in all (bytes, or 64M, 1G)."),
    ("max_mirrors", click.IntRange(1), True, "Refuse URLs that name more mirrors."),
    ("timeout", _Seconds(), True, "Seconds without a byte after which a connection is given up."),
    ("deadline", _Seconds(), True, "Seconds after which a file is given up, with all retries."),
    ("retries", click.IntRange(0), True, "How often what failed is asked for again."),
)
"""Of options that are fields of `FetchLimits`: what they take, the shown default, what they do."""


def _limit_options(command: F) -> F:
    """Add an option for each of the limits."""
    for name, kind, shown, text in reversed(_LIMITS):
        command = click.option(
            f"--{name.replace('_', '-')}",
            type=kind,
            default=getattr(FetchLimits(), name),
            show_default=shown,
            help=text,
        )(command)
    return command


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "-o",
    "--output",
    type=GivenPath(file_okay=False, path_type=Path),
    required=True,
    help="The folder to bring the indexes into.",
)
@click.option(
    "--packages",
    metavar="URL",
    help="Bring package data: an archive of the packages site, a list (….json), or the site.",
)
@click.option(
    "--packages-of",
    type=GivenPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="From the packages site, only the packages of this database.",
)
@click.option("--release", help="The release's name; of a manifest, only this release.")
@click.option("--stack", help="The stack's name; of a manifest, only this stack.")
@click.option(
    "--view", "views", multiple=True, metavar="NAME", help="Bring this view as well; repeatable."
)
@click.option(
    "--map",
    "maps",
    type=_MapType(),
    multiple=True,
    help="Ask there for what is named so, as s3://bucket=https://host; repeatable.",
)
@click.option(
    "--mirrors",
    type=GivenPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Bring the mirrors of Spack's configuration: a mirrors.yaml or a spack.yaml.",
)
@click.option("--prune", is_flag=True, help="Remove stacks that their manifest names no longer.")
@click.option("--plain-http", is_flag=True, help="Ask OCI registries on this machine by HTTP.")
@_limit_options
def fetch(urls: tuple[str, ...], output: Path, packages_of: Path | None, **options: Any) -> None:
    """Download indexes and package data for `build`.

    A URL is that of a mirror (https://…, s3://bucket/path, file:///path), of an image in an OCI
    registry (oci://host/name), or of a manifest that names releases and stacks. What was brought
    before is asked for only if it has changed; what was cut short is resumed.

    Example: spack-cache-db fetch https://cache.example.org/v1.0 -o mirrors
    """
    if not urls and options["packages"] is None and options["mirrors"] is None:
        raise click.UsageError(
            "name a URL, a configuration (--mirrors), or package data (--packages)"
        )
    known = None if packages_of is None else _package_names(packages_of)
    with (
        when_stopped(lambda: "call it again to go on from here"),
        ProgressBar("Fetching") as progress,
    ):
        report = fetch_mirrors(
            urls,
            output,
            FetchOptions(**_given(FetchOptions, options), package_names=known),
            FetchLimits(**_given(FetchLimits, options)),
            progress,
        )
    _tell(report, output, pruned=options["prune"])


def _package_names(file: Path) -> tuple[str, ...]:
    # Only package data needs what reads a file.
    from spack_cache_db.query.package_data import package_names

    return package_names(file)


def _given(record: type, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are fields of a record."""
    return {each.name: options[each.name] for each in fields(record) if each.name in options}


def _tell(report: FetchReport, output: Path, *, pruned: bool) -> None:
    advice = "removed" if pruned else "still here; --prune removes it"
    say_notes(f"{folder}: named by its manifest no longer, {advice}" for folder in report.vanished)
    for fault in report.faults:
        click.echo(str(fault), err=True)
    say(
        f"{output}: {counted(report.mirrors, 'mirror')}, {report.changed:,} changed, "
        f"{report.size / 1e6:.1f} MB in {report.seconds:.1f} s"
    )
    if report.faults:
        brought = counted(report.brought, "mirror") if report.brought else "no mirror"
        was = "was" if report.brought < 2 else "were"
        raise FaultyInput(
            f"{counted(len(report.faults), 'fault')}; {brought} {was} brought, "
            "and what earlier runs brought is there."
        )
