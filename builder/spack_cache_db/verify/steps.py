"""Verifying a file, from its path and those of the input to what differs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path

from spack_cache_db.build import Progress
from spack_cache_db.build.workers import uncollected, work_through
from spack_cache_db.errors import DatabaseError, Fault, InputError
from spack_cache_db.query.open import open_database
from spack_cache_db.sources.files import RawFile, read
from spack_cache_db.sources.pages.parse import parse_page
from spack_cache_db.sources.units import Unit, plan
from spack_cache_db.verify import Verification
from spack_cache_db.verify.compare import differences
from spack_cache_db.verify.pages_of_file import PagesOfFile
from spack_cache_db.verify.pages_of_source import said_by_source


@uncollected()
def verify(
    database: Path,
    paths: Sequence[str],
    *,
    jobs: int,
    max_page_size: int,
    progress: Progress | None,
) -> Verification:
    """Hold a file against pages (see `spack_cache_db.verify.verify`)."""
    open_database(database).close()
    units = plan(paths)
    pages = listings = 0
    faults: set[Fault] = set()
    found: set[Fault] = set()
    work = partial(verify_unit, database=database, max_page_size=max_page_size)
    _pages_of.cache_clear()  # The file may be another one than last time.
    for done, each in enumerate(work_through(units, work, jobs), start=1):
        pages += each.pages
        listings += each.listings
        faults.update(each.faults)
        found.update(each.differences)
        if progress:
            progress(done, len(units))
    _pages_of.cache_clear()
    if not pages and not faults:
        raise InputError(Fault(path, 0, "holds no file, expected pages") for path in paths)
    return Verification(pages, listings, tuple(sorted(faults)), tuple(sorted(found)))


def verify_unit(unit: Unit, database: Path, max_page_size: int) -> Verification:
    """Hold a file against the pages of one unit."""
    pages = listings = 0
    faults: list[Fault] = []
    found: list[Fault] = []
    for file in read(unit, max_page_size):
        if isinstance(file, Fault):
            faults.append(file)
            continue
        try:
            count, differing = _verify_page(file, database)
        except InputError as error:
            faults += error.faults
        except sqlite3.DatabaseError as error:
            raise DatabaseError(f"{database}: is damaged: {error}; build it anew") from None
        else:
            pages += 1
            listings += count
            found += differing
    return Verification(pages, listings, tuple(faults), tuple(found))


def _verify_page(file: RawFile, database: Path) -> tuple[int, list[Fault]]:
    """Return how many listings a page has, and where the file differs.

    Raises:
        InputError: the page is refused.
    """
    page = parse_page(file)
    said = said_by_source(page)
    stored = _pages_of(database).said_by_file(page.release, page.package)
    if stored is None:
        found = [f"is a page of {page.package} in {page.release}, the file has none"]
    else:
        found = [*differences(said, stored)]
    return len(page.details), [Fault(page.location, 0, each) for each in found]


@lru_cache(maxsize=1)
def _pages_of(database: Path) -> PagesOfFile:
    """Open the file once in a process."""
    connection = open_database(database)
    connection.execute(f"PRAGMA mmap_size = {database.stat().st_size}")
    return PagesOfFile(connection)
