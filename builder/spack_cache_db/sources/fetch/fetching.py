"""The public function `fetch`.

It checks its arguments. `batch`, which does the work, is imported when it begins,
because its libraries are slow to import.
"""

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
    if options is None:
        options = FetchOptions()
    elif not isinstance(options, FetchOptions):
        raise wrong("options", options, "FetchOptions")
    if limits is None:
        limits = FetchLimits()
    elif not isinstance(limits, FetchLimits):
        raise wrong("limits", limits, "FetchLimits")

    from spack_cache_db.sources.fetch.batch import Run

    if isinstance(urls, str):
        urls = [urls]
    return Run(folder, options, limits).report(urls, progress)
