"""Reads the units of an input into columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from spack_cache_db.assembly.options import BuildOptions
from spack_cache_db.assembly.workers import work_through
from spack_cache_db.sources.checksums import checksum_of_unit
from spack_cache_db.sources.files import ANYWHERE, Place, Share, Unit
from spack_cache_db.sources.readers import read, read_files
from spack_cache_db.sources.units import is_of_database
from spack_cache_db.sources.writer import Columns


def read_units(
    units: Sequence[Unit], options: BuildOptions, share: Share | None = None
) -> Iterator[Columns]:
    """Yield the columns of each unit (see `work_through`).

    This process reads databases itself, which are the last units: it takes half as long
    to pass the columns of a database from one process to another as to read them.

    `share` is called with the part of an index that has been read, if this process
    reads it.
    """
    others = [unit for unit in units if not is_of_database(unit)]
    databases = units[len(others) :]
    place = Place(options.release, options.stack)
    work = partial(read_unit, max_page_size=options.max_page_size, place=place)
    if options.executor is None and min(options.jobs, len(others)) < 2:
        work = partial(work, share=share)
    yield from work_through(others, work, options)
    yield from map(work, databases)


def read_unit(
    unit: Unit, max_page_size: int, place: Place = ANYWHERE, share: Share | None = None
) -> Columns:
    """Return the columns of one unit, read in this process (`share` as in
    `read_units`).
    """
    columns = read_files(read(unit, max_page_size), place, share)
    columns.checksum = checksum_of_unit(unit, columns)
    return columns
