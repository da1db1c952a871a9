"""Write a corpus of pages at the size of the site: `python -m tests.corpus.pages OUT --scale 0.05`.

The same scale gives the same bytes on every machine. Pages are made and written one at a time, in
the order of their paths.
"""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import click
import zstandard

from tests.corpus import history, spelling

SCALE = click.FloatRange(0.01, 10.0)
VARIETY = click.Choice([*history.VARIETIES])


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


def write(out: Path, scale: float, variety: str = "usual", *, tar: bool = False) -> Totals:
    """Write a corpus into the folder `out`, or as the archive `out`."""
    site = history.history(scale, history.VARIETIES[variety])
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


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--scale", type=SCALE, default=1.0, show_default=True)
@click.option("--variety", type=VARIETY, default="usual", show_default=True)
@click.option("--tar", is_flag=True, help="Write OUT as an archive: .tar, .tar.gz or .tar.zst.")
def main(out: Path, scale: float, variety: str, tar: bool) -> None:
    """Write an invented build cache, SCALE times the size of the real one, to OUT."""
    if out.exists():
        raise click.ClickException(f"{out} exists: name a new folder or file, or remove it")
    started = time.perf_counter()
    totals = write(out, scale, variety, tar=tar)
    click.echo(
        f"{totals.pages:,} pages, {totals.page_bytes / 1e6:,.1f} MB, {totals.listings:,} listings,"
        f" {totals.specs:,} specs in {time.perf_counter() - started:.1f} s"
    )


if __name__ == "__main__":
    main()
