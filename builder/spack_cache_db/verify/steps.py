"""Verifying a file, from its path and those of the input to what differs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

from spack_cache_db.build import Progress
from spack_cache_db.build.workers import uncollected, work_through
from spack_cache_db.errors import DatabaseError, Fault, InputError
from spack_cache_db.query.open import open_database
from spack_cache_db.sources.files import RawFile, read
from spack_cache_db.sources.indexes.files import OpenIndex, is_spacks, open_file, open_mirror
from spack_cache_db.sources.pages.parse import parse_page
from spack_cache_db.sources.places import Place
from spack_cache_db.sources.units import Mirror, Unit, plan
from spack_cache_db.verify import Verification
from spack_cache_db.verify.compare import differences, parts
from spack_cache_db.verify.pages_of_file import PagesOfFile
from spack_cache_db.verify.pages_of_source import said_by_source
from spack_cache_db.verify.records import mirror_of


@uncollected()
def verify(
    database: Path,
    paths: Sequence[str],
    *,
    jobs: int,
    max_page_size: int,
    place: Place,
    progress: Progress | None,
) -> Verification:
    """Hold a file against pages (see `spack_cache_db.verify.verify`)."""
    open_database(database).close()
    units = plan(paths)
    pages = listings = 0
    faults: set[Fault] = set()
    found: set[Fault] = set()
    work = partial(verify_unit, database=database, max_page_size=max_page_size, place=place)
    _forget()  # The file may be another one than last time.
    for done, each in enumerate(work_through(units, work, jobs), start=1):
        pages += each.pages
        listings += each.listings
        faults.update(each.faults)
        found.update(each.differences)
        if progress:
            progress(done, len(units))
    _forget()
    if not pages and not faults:
        raise InputError(Fault(path, 0, "holds no file, expected pages") for path in paths)
    return Verification(pages, listings, tuple(sorted(faults)), tuple(sorted(found)))


def verify_unit(unit: Unit, database: Path, max_page_size: int, place: Place) -> Verification:
    """Hold a file against the files and mirrors of one unit."""
    documents = listings = 0
    faults: list[Fault] = []
    found: list[Fault] = []
    for file in read(unit, max_page_size):
        if isinstance(file, Fault):
            faults.append(file)
            continue
        try:
            for count, differing in _verify(file, database, place):
                documents, listings = documents + 1, listings + count
                found += differing
        except InputError as error:
            faults += error.faults
        except sqlite3.DatabaseError as error:
            raise DatabaseError(f"{database}: is damaged: {error}; build it anew") from None
    return Verification(documents, listings, tuple(faults), tuple(found))


def _verify(
    file: RawFile | Mirror, database: Path, place: Place
) -> Iterator[tuple[int, list[Fault]]]:
    """Yield, for each page or index, how many listings it has, and where the file differs."""
    if isinstance(file, Mirror):
        for index in open_mirror(file, place):
            yield _verify_index(index, database)
    elif is_spacks(file.data):
        yield _verify_index(open_file(file, place), database)
    else:
        yield _verify_page(file, database)


def _verify_index(index: OpenIndex, database: Path) -> tuple[int, list[Fault]]:
    """Return how many records an index has, and where the file differs."""
    document, records = index.document, index.records
    facts = document.index_facts
    stack = facts.stack if facts else ""
    stored = mirror_of(_connection(database), document.release, stack, document.path)
    if stored is None:
        said = f"is an index of {stack} in {document.release}, the file has none from there"
        return 0, [Fault(document.location, 0, said)]
    found: list[str] = []
    ours, theirs = {*records}, stored.hashes()
    for dag_hash in sorted(ours | theirs):
        if dag_hash not in theirs:
            found.append(f"has the spec {dag_hash}, the file does not")
        elif dag_hash not in ours:
            found.append(f"does not have the spec {dag_hash}, the file does")
        else:
            values = stored.normal(records.said(dag_hash)), stored.stored(dag_hash)
            if values[0] != values[1]:
                found += parts(f"the spec {dag_hash}: ", *values)
    return len(ours), [Fault(document.location, 0, each) for each in found]


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
def _connection(database: Path) -> sqlite3.Connection:
    """Open the file once in a process."""
    connection = open_database(database)
    connection.execute(f"PRAGMA mmap_size = {database.stat().st_size}")
    return connection


@lru_cache(maxsize=1)
def _pages_of(database: Path) -> PagesOfFile:
    return PagesOfFile(_connection(database))


def _forget() -> None:
    _pages_of.cache_clear()
    _connection.cache_clear()
