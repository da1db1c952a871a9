"""The command `fetch`: the only one that uses a network."""

from __future__ import annotations

from dataclasses import fields
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.options import ByteSize, F, GivenPath
from spack_cache_db.cli.output import fail, progress_bar, say, say_faults, say_notes
from spack_cache_db.cli.signals import when_stopped
from spack_cache_db.errors import counted
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
    """A finite number of seconds above 0."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the number."""
        seconds: float = super().convert(value, param, ctx)
        if not isfinite(seconds):
            self.fail(f"{value} is not a finite number", param, ctx)
        return seconds


_LIMITS: tuple[tuple[str, click.ParamType[Any], str | bool, str], ...] = (
    ("jobs", click.IntRange(1), True, "Mirrors to download at the same time."),
    ("max_size", ByteSize(), "1G", "Refuse larger indexes (bytes, or 64M, 1G)."),
    ("max_total", ByteSize(), "64G", "Most bytes to download in one run (or 64M, 1G)."),
    ("max_mirrors", click.IntRange(1), True, "Most mirrors that the URLs may name."),
    ("timeout", _Seconds(), True, "Seconds without data before a connection is dropped."),
    ("deadline", _Seconds(), True, "Seconds for one file, including retries."),
    ("retries", click.IntRange(0), True, "Retries after a failure."),
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
    help="Folder to download into.",
)
@click.option(
    "--packages",
    metavar="URL",
    help="Download package data: an archive of the packages site, a list (….json), or the site.",
)
@click.option(
    "--packages-of",
    type=GivenPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="From the packages site, download only the packages of this database.",
)
@click.option(
    "--release", metavar="NAME", help="Name of the release; from a manifest, only this release."
)
@click.option(
    "--stack", metavar="NAME", help="Name of the stack; from a manifest, only this stack."
)
@click.option(
    "--view",
    "views",
    multiple=True,
    metavar="NAME",
    help="Also download this view of the mirror. Repeatable.",
)
@click.option(
    "--map",
    "maps",
    type=_MapType(),
    multiple=True,
    help="Download FROM from TO: s3://bucket=https://host. Repeatable.",
)
@click.option(
    "--mirrors",
    type=GivenPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Download the mirrors in Spack's configuration: a mirrors.yaml or spack.yaml.",
)
@click.option(
    "--keep-going",
    is_flag=True,
    help="Exit with status 0 if at least one mirror was downloaded.",
)
@click.option("--plain-http", is_flag=True, help="Use HTTP for OCI registries on this machine.")
@_limit_options
def fetch(
    urls: tuple[str, ...],
    output: Path,
    packages_of: Path | None,
    keep_going: bool,
    **options: Any,
) -> None:
    """Download indexes and package data for `build`.

    A URL names a mirror (https://…, s3://bucket/path, file:///path), an image in an OCI registry
    (oci://host/name), or a manifest that lists releases and stacks. Files that have not changed
    are not downloaded again.

    A mirror that cannot be read does not stop the others.

    Exit status: 0 for success, 1 if a mirror cannot be read, 2 for another error.

    Example: spack-cache-db fetch https://cache.example.org/v1.0 -o mirrors
    """
    if not urls and options["packages"] is None and options["mirrors"] is None:
        raise click.UsageError("nothing to download: give a URL, --mirrors FILE or --packages URL")
    known = None if packages_of is None else _package_names(packages_of)
    with (
        when_stopped(lambda: "run the same command again"),
        progress_bar("Fetching") as progress,
    ):
        report = fetch_mirrors(
            urls,
            output,
            FetchOptions(**_given(FetchOptions, options), package_names=known),
            FetchLimits(**_given(FetchLimits, options)),
            progress,
        )
    _print(report, output, keep_going=keep_going)


def _package_names(file: Path) -> tuple[str, ...]:
    # Only package data needs what reads a file.
    from spack_cache_db.query.package_data import package_names

    return package_names(file)


def _given(record: type, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are fields of a record."""
    return {each.name: options[each.name] for each in fields(record) if each.name in options}


def _print(report: FetchReport, output: Path, *, keep_going: bool) -> None:
    say_notes(report.notes)
    advice = "remove the folder if you do not need it"
    say_notes(f"{folder}: its manifest no longer lists it; {advice}" for folder in report.vanished)
    say_faults(report.faults)
    mirrors = counted(report.mirrors, "mirror")
    if report.brought < report.mirrors:
        mirrors = f"{report.brought:,} of {mirrors} downloaded"
    say(
        f"{output}: {mirrors}, {report.changed:,} changed, "
        f"{report.size / 1e6:.1f} MB in {report.seconds:.1f} s"
    )
    if report.faults and not (keep_going and report.brought):
        failed = counted(report.mirrors - report.brought, "mirror")
        fail(f"{failed} failed; files of earlier runs are kept.", status=1)
