"""An invented site as pages, in a folder or an archive.

The same scale gives the same bytes on every machine. Pages are made and written one at a time, in
the order of their paths.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from tests.corpus import history, spelling

SCALE = (0.01, 10.0)
"""The least and the greatest scale."""


@dataclass(slots=True)
class Totals:
    """What was written."""

    pages: int = 0
    page_bytes: int = 0
    listings: int = 0
    specs: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the corpus and the place where it lies."""

    path: str
    data: bytes
    listings: int


def pages(site: history.History) -> Iterator[Page]:
    """Yield every page of the site, by release and package."""
    for release in site.releases:
        for package in site.packages:
            listings = package.listings(release)
            if listings:
                path = f"_cache/{release.name}/{package.name}/specs.md"
                data = spelling.page(package.name, release, listings)
                yield Page(path, data, len(listings))


def write(out: Path, scale: float, *, tar: bool = False) -> Totals:
    """Write a corpus into the folder `out`, or as the archive `out`."""
    site = history.history(scale)
    totals = Totals(specs=site.spec_count())
    written = _to_archive(pages(site), out) if tar else _to_folder(pages(site), out)
    for page in written:
        totals.pages += 1
        totals.page_bytes += len(page.data)
        totals.listings += page.listings
    return totals


def _to_folder(found: Iterator[Page], out: Path) -> Iterator[Page]:
    for page in found:
        path = out / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page.data)
        yield page


def _to_archive(found: Iterator[Page], out: Path) -> Iterator[Page]:
    with ExitStack() as stack:
        raw = cast("IO[bytes]", stack.enter_context(out.open("wb")))
        if out.suffix == ".zst":
            compressor = zstandard.ZstdCompressor(level=3)
            raw = cast("IO[bytes]", stack.enter_context(compressor.stream_writer(raw)))
        mode: Any = "w|gz" if out.suffix == ".gz" else "w|"
        archive = stack.enter_context(tarfile.open(fileobj=raw, mode=mode))
        for page in found:
            entry = tarfile.TarInfo(page.path)
            entry.size = len(page.data)
            archive.addfile(entry, io.BytesIO(page.data))
            yield page
