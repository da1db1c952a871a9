"""Runs of fetch against a server of the tests' own, and what they say."""

from __future__ import annotations

from pathlib import Path

from spack_cache_db.sources.fetch import FetchLimits, FetchOptions, FetchReport, fetch
from tests.sources.fetch.mirrors import QUICK
from tests.sources.fetch.server import Site


def bring(
    site: Site, output: Path, limits: FetchLimits = QUICK, views: tuple[str, ...] = ()
) -> FetchReport:
    """Fetch the mirror of the site as release `r`, stack `s`."""
    options = FetchOptions(release="r", stack="s", views=views)
    return fetch([f"{site.url}/m"], output, options, limits)


def faults(report: FetchReport, site: Site) -> list[str]:
    """Return what a report says is wrong, without the server's port."""
    return [str(fault).replace(site.url, "") for fault in report.faults]


def says(report: FetchReport) -> str:
    """Return the only fault, without where it is."""
    (fault,) = report.faults
    return fault.message


def folders(output: Path) -> list[str]:
    """Return the folders of stacks, hidden ones included."""
    return sorted(path.relative_to(output).as_posix() for path in output.glob("*/*"))
