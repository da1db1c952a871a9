"""The command `fetch`: downloads indexes and package data into a folder.

No other command uses a network.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spack_cache_db.cli.forms import fail, say, say_faults, say_notes
from spack_cache_db.cli.parameters import ByteSize, F, GivenPath, flag, value_option
from spack_cache_db.cli.progress import progress_bar
from spack_cache_db.cli.signals import when_stopped
from spack_cache_db.errors import bytes_text, counted
from spack_cache_db.sources.fetch.fetching import fetch as fetch_mirrors
from spack_cache_db.sources.fetch.options import FetchLimits, FetchOptions

_URLS = re.compile(r"([a-z][a-z0-9+.-]*://[^=\s]+)=((?:https?|oci|s3|file)://\S+)")
"""Two URLs with = between them. The first may have any scheme, the second one that
`fetch` can read.
"""


def _map(text: str) -> tuple[str, str]:
    """Return the two URLs of a text FROM=TO, without slashes at their ends."""
    urls = _URLS.fullmatch(text)
    if urls is None:
        expected = "expected s3://bucket=https://host/mirrors"
        raise click.BadParameter(f"{text!r} is not a pair of URLs, {expected}")
    return urls[1].rstrip("/"), urls[2].rstrip("/")


_SECONDS = click.FloatRange(0, min_open=True)
"""The type of an option with more than 0 seconds."""


def _limit(
    option: str, kind: click.ParamType[Any], text: str, shown_default: str | bool = True
) -> Callable[[F], F]:
    """Return a decorator that adds an option which is a field of `FetchLimits`.

    Args:
        option: the option, such as `--max-size` for the field `max_size`.
        kind: the type of its value.
        text: its help.
        shown_default: the text of the default in the help; True for the value itself.
    """
    if kind is _SECONDS:
        metavar = "SECONDS"
    elif isinstance(kind, ByteSize):
        metavar = "BYTES"
    else:
        metavar = "N"
    field = option.strip("-").replace("-", "_")
    return click.option(
        option,
        type=kind,
        metavar=metavar,
        help=text,
        default=getattr(FetchLimits(), field),
        show_default=shown_default,
    )


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
@value_option(
    "--release", "NAME", "Name of the release; from a manifest, only this release."
)
@value_option("--stack", "NAME", "Name of the stack; from a manifest, only this stack.")
@value_option(
    "--view",
    "NAME",
    "Also download this view of the mirror. Repeatable.",
    multiple=True,
)
@value_option(
    "--map",
    "FROM=TO",
    "Download FROM from TO: s3://bucket=https://host. Repeatable.",
    type=_map,
    multiple=True,
)
@click.option(
    "--mirrors",
    type=GivenPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Download the mirrors in Spack's configuration: a mirrors.yaml or spack.yaml.",
)
@flag(
    "--sizes",
    "Also download the sizes of binaries: one small request for each new binary.",
)
@flag("--keep-going", "Exit with status 0 if at least one mirror was downloaded.")
@flag("--plain-http", "Use HTTP for OCI registries on this machine.")
@_limit("--jobs", click.IntRange(1), "Mirrors to download at the same time.")
@_limit("--max-size", ByteSize(), "Refuse larger indexes (bytes, or 64M, 1G).", "1G")
@_limit(
    "--max-total",
    ByteSize(),
    "Maximum number of bytes to download in one run (or 64M, 1G).",
    "64G",
)
@_limit(
    "--max-mirrors",
    click.IntRange(1),
    "Maximum number of mirrors that the URLs may name.",
)
@_limit("--timeout", _SECONDS, "Seconds without data before a connection is dropped.")
@_limit("--deadline", _SECONDS, "Seconds for one file, including retries.")
@_limit("--retries", click.IntRange(0), "Retries after a failure.")
def fetch(
    urls: tuple[str, ...],
    output: Path,
    packages_of: Path | None,
    keep_going: bool,
    **options: Any,
) -> None:
    """Download indexes and package data for `build`.

    A URL names a mirror (https://…, s3://bucket/path, file:///path), an image in an OCI
    registry (oci://host/name), or a manifest that lists releases and stacks. Files that
    have not changed are not downloaded again.

    A mirror that cannot be read does not stop the others.

    Exit status: 0 for success, 1 if a mirror cannot be read, 2 for another error.

    Example: spack-cache-db fetch https://cache.example.org/v1.0 -o mirrors
    """
    if not urls and options["packages"] is None and options["mirrors"] is None:
        raise click.UsageError(
            "nothing to download: give a URL, --mirrors FILE or --packages URL"
        )

    # Options of the command become fields of two records; those that can be repeated
    # are called `views` and `maps` there.
    options["views"] = options.pop("view")
    options["maps"] = options.pop("map")
    if packages_of is not None:
        from spack_cache_db.query.stored.package_data import package_names

        options["package_names"] = package_names(packages_of)
    limits = {}
    for name in FetchLimits.__slots__:
        # The pause between retries has no option.
        if name in options:
            limits[name] = options.pop(name)
    fetch_options = FetchOptions(**options)
    fetch_limits = FetchLimits(**limits)

    with (
        when_stopped(lambda: "run the same command again"),
        progress_bar("Fetching") as progress,
    ):
        report = fetch_mirrors(urls, output, fetch_options, fetch_limits, progress)

    say_notes(report.notes)
    for folder in report.vanished:
        advice = "remove the folder if you do not need it"
        say_notes([f"{folder}: its manifest no longer lists it; {advice}"])
    say_faults(report.faults)
    mirrors = counted(report.mirrors, "mirror")
    if report.downloaded < report.mirrors:
        mirrors = f"{report.downloaded:,} of {mirrors} downloaded"
    say(
        f"{output}: {mirrors}, {report.changed:,} changed, "
        f"{bytes_text(report.size)} in {report.seconds:.1f} s"
    )
    is_enough = keep_going and report.downloaded > 0
    if report.faults and not is_enough:
        failed = counted(report.mirrors - report.downloaded, "mirror")
        fail(f"{failed} failed; files of earlier runs are kept.", status=1)
