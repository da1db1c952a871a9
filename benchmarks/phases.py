"""Processor time of reading pages, per page and step, beside the floor's.

`python -m benchmarks.phases CORPUS [EVERY]` reads every EVERYth unit of the corpus in
this process, each step for a whole unit at a time.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

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
        self.pages = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase."""
        start = time.process_time()
        yield
        self.seconds[name] += time.process_time() - start

    def rows(self) -> list[list[str]]:
        """Return microseconds per page by phase, as the cells of a table."""
        return [
            [name, f"{1e6 * seconds / self.pages:.1f}"]
            for name, seconds in self.seconds.items()
        ]


def read_unit(phases: Phases, unit: Unit) -> None:
    """Read one unit step by step; freeing memory is a step of its own."""
    with phases.phase("list folders"):
        files = [file for file in unit if not isinstance(file, Fault)]
    with phases.phase("read files"):
        found = read(tuple(files), DEFAULT_MAX_PAGE_SIZE)
        raws = [file for file in found if isinstance(file, RawFile)]
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
    phases.pages += len(raws)


@uncollected()
def main(folder: str, every: int = 10) -> str:
    """Read the corpus below `folder` and return the table."""
    phases = Phases()
    for unit in plan([folder])[::every]:
        read_unit(phases, unit)
    return table(["phase", "µs per page"], phases.rows())


if __name__ == "__main__":
    print(main(sys.argv[1], *map(int, sys.argv[2:3])))
