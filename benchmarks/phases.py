"""Processor time of reading pages, per page and step, beside the floor's.

`python -m benchmarks.phases CORPUS [EVERY]` reads every EVERYth unit of the corpus in
this process, each step for a whole unit at a time.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import click

from benchmarks.floor import decode_page
from benchmarks.report import table
from spack_cache_db.assembly.workers import uncollected
from spack_cache_db.bounded_files import DEFAULT_MAX_PAGE_SIZE
from spack_cache_db.errors import Fault
from spack_cache_db.sources.files import RawFile, Unit
from spack_cache_db.sources.pages.front_matter import read_front_matter
from spack_cache_db.sources.pages.page import parse_page
from spack_cache_db.sources.pages.reader import PageReader
from spack_cache_db.sources.readers import read
from spack_cache_db.sources.units import plan
from spack_cache_db.sources.writer import Writer


class Phases:
    """Processor time by phase, in seconds."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.page_count = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase."""
        started = time.process_time()
        yield
        self.seconds[name] += time.process_time() - started

    def rows(self) -> list[list[str]]:
        """Return microseconds per page by phase, as the cells of a table."""
        rows = []
        for name, seconds in self.seconds.items():
            microseconds = 1e6 * seconds / self.page_count
            rows.append([name, f"{microseconds:.1f}"])
        return rows


def read_unit(phases: Phases, unit: Unit) -> None:
    """Read one unit step by step; freeing memory is a step of its own."""
    with phases.phase("list folders"):
        files = [file for file in unit if not isinstance(file, Fault)]
    with phases.phase("read files"):
        found = read(tuple(files), DEFAULT_MAX_PAGE_SIZE)
        raws = [file for file in found if isinstance(file, RawFile)]
    # Steps in parentheses are no part of a build.
    with phases.phase("(front matter alone)"):
        for raw in raws:
            read_front_matter(bytes(raw.data))
    with phases.phase("records: front matter, meta, SHA-256"):
        pages = [parse_page(raw) for raw in raws]
    with phases.phase("columns: listings, looked up or decoded, and checks"):
        reader = PageReader(Writer())
        for page in pages:
            reader.add(page)
        reader.finish()
    with phases.phase("free the records"):
        del pages, page
    with phases.phase("(floor: decode with orjson)"):
        for raw in raws:
            decode_page(bytes(raw.data))
    phases.page_count += len(raws)


@click.command()
@click.argument("corpus", type=click.Path(exists=True, file_okay=False))
@click.argument("every", type=int, default=10)
@uncollected()
def main(corpus: str, every: int) -> None:
    """Time each step of reading every EVERYth unit of CORPUS."""
    phases = Phases()
    for unit in plan([corpus])[::every]:
        read_unit(phases, unit)
    click.echo(table(["phase", "µs per page"], phases.rows()))


if __name__ == "__main__":
    main()
