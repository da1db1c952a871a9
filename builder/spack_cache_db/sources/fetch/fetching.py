"""The function `fetch`; `batch`, which runs it, is imported late."""

from __future__ import annotations

from collections.abc import Iterable

from spack_cache_db.arguments import checked, wrong
from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.sources.fetch.options import FetchLimits, FetchOptions, Progress
from spack_cache_db.sources.fetch.report import FetchReport


@checked
def fetch(
    urls: str | Iterable[str],
    output: AnyPath,
    options: FetchOptions | None = None,
    limits: FetchLimits | None = None,
    progress: Progress | None = None,
) -> FetchReport:
    """Download the indexes of mirrors into `<release>/<stack>/` below a folder; return
    a report.

    Args:
        urls: URLs of mirrors, images of OCI registries or manifests of releases.
        output: the folder; created if missing.
        options: options of the run.
        limits: limits of sizes, times and parallel downloads.
        progress: called with bytes received and expected.

    Raises:
        ArgumentError: an argument has a wrong type.
        OutputError: the folder cannot be made, or another run writes into it.
    """
    folder = checked_file("output", output, "the folder to write into")
    if options is not None and not isinstance(options, FetchOptions):
        raise wrong("options", options, "FetchOptions")
    if limits is not None and not isinstance(limits, FetchLimits):
        raise wrong("limits", limits, "FetchLimits")
    # The help of the command should not wait for its libraries.
    from spack_cache_db.sources.fetch.batch import Run

    if isinstance(urls, str):
        urls = [urls]
    run = Run(folder, options or FetchOptions(), limits or FetchLimits())
    return run.report(urls, progress)
