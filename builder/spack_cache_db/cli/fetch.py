"""The command `fetch`: the only one that uses a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spack_cache_db.cli.options import ByteSize, F, GivenPath, flag, value_option
from spack_cache_db.cli.output import fail, progress_bar, say, say_faults, say_notes
from spack_cache_db.cli.signals import when_stopped
from spack_cache_db.errors import counted
from spack_cache_db.sources.fetch import FetchLimits, FetchOptions
from spack_cache_db.sources.fetch import fetch as fetch_mirrors

if TYPE_CHECKING:
    from spack_cache_db.sources.fetch.addresses import Map


def _maps(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[Map, ...]:
    """Return the maps of addresses, FROM=TO."""
    from spack_cache_db.sources.fetch.addresses import parse_map

    try:
        return tuple(map(parse_map, texts))
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, parameter) from None


_SECONDS = click.FloatRange(0, min_open=True)
_LIMITS: dict[str, tuple[click.ParamType[Any], str | bool, str]] = {
    "jobs": (click.IntRange(1), True, "Mirrors to download at the same time."),
    "max_size": (ByteSize(), "1G", "Refuse larger indexes (bytes, or 64M, 1G)."),
    "max_total": (ByteSize(), "64G", "Most bytes to download in one run (or 64M, 1G)."),
    "max_mirrors": (click.IntRange(1), True, "Most mirrors that the URLs may name."),
    "timeout": (_SECONDS, True, "Seconds without data before a connection is dropped."),
    "deadline": (_SECONDS, True, "Seconds for one file, including retries."),
    "retries": (click.IntRange(0), True, "Retries after a failure."),
}
"""Options that are fields of `FetchLimits`: their type, the default in the help, the help."""


def _limit_options(command: F) -> F:
    for name, (kind, shown_default, text) in reversed(_LIMITS.items()):
        default, option = getattr(FetchLimits(), name), f"--{name.replace('_', '-')}"
        metavar = "SECONDS" if kind is _SECONDS else None
        command = click.option(
            option,
            type=kind,
            metavar=metavar,
            default=default,
            show_default=shown_default,
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
@value_option(
    "--packages",
    "URL",
    "Download package data: an archive of the packages site, a list (….json), or the site.",
)
@click.option(
    "--packages-of",
    type=GivenPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="From the packages site, download only the packages of this database.",
)
@value_option("--release", "NAME", "Name of the release; from a manifest, only this release.")
@value_option("--stack", "NAME", "Name of the stack; from a manifest, only this stack.")
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
    metavar="FROM=TO",
    callback=_maps,
    multiple=True,
    help="Download FROM from TO: s3://bucket=https://host. Repeatable.",
)
@click.option(
    "--mirrors",
    type=GivenPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Download the mirrors in Spack's configuration: a mirrors.yaml or spack.yaml.",
)
@flag("--sizes", "Also download the sizes of binaries: one small request for each new binary.")
@flag("--keep-going", "Exit with status 0 if at least one mirror was downloaded.")
@flag("--plain-http", "Use HTTP for OCI registries on this machine.")
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
    names = None
    if packages_of is not None:
        from spack_cache_db.query.packages import package_names

        names = package_names(packages_of)
    limits = FetchLimits(**{name: options.pop(name) for name in _LIMITS})
    fetch_options = FetchOptions(**options, package_names=names)
    with when_stopped(lambda: "run the same command again"), progress_bar("Fetching") as progress:
        report = fetch_mirrors(urls, output, fetch_options, limits, progress)
    say_notes(report.notes)
    advice = "remove the folder if you do not need it"
    say_notes(f"{folder}: its manifest no longer lists it; {advice}" for folder in report.vanished)
    say_faults(report.faults)
    mirrors = counted(report.mirrors, "mirror")
    if report.downloaded < report.mirrors:
        mirrors = f"{report.downloaded:,} of {mirrors} downloaded"
    say(
        f"{output}: {mirrors}, {report.changed:,} changed, "
        f"{report.size / 1e6:.1f} MB in {report.seconds:.1f} s"
    )
    if report.faults and not (keep_going and report.downloaded):
        failed = counted(report.mirrors - report.downloaded, "mirror")
        fail(f"{failed} failed; files of earlier runs are kept.", status=1)
