"""Verifying a file, from its path and those of the input to what differs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from spack_cache_db.build import Progress
from spack_cache_db.build.workers import uncollected, work_through
from spack_cache_db.errors import DatabaseError, Fault, InputError
from spack_cache_db.query.open import open_database
from spack_cache_db.sources.files import RawFile, read
from spack_cache_db.sources.indexes.faults import IndexFault
from spack_cache_db.sources.indexes.files import OpenIndex, is_spacks, open_file, open_mirror
from spack_cache_db.sources.pages.parse import parse_page
from spack_cache_db.sources.places import Place
from spack_cache_db.sources.tarballs import Tarball
from spack_cache_db.sources.units import Mirror, Unit, plan
from spack_cache_db.verify import Verification
from spack_cache_db.verify.compare import differences, parts
from spack_cache_db.verify.pages_of_file import PagesOfFile
from spack_cache_db.verify.pages_of_source import said_by_source
from spack_cache_db.verify.records import RecordsOfFile, mirror_of


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
    """Hold a file against its input (see `spack_cache_db.verify.verify`)."""
    open_database(database).close()
    units = plan(paths)
    total = _NOTHING
    work = partial(verify_unit, database=database, max_page_size=max_page_size, place=place)
    _forget()  # The file may be another one than last time.
    for done, each in enumerate(work_through(units, work, jobs), start=1):
        total = _sum(total, each)
        if progress:
            progress(done, len(units))
    _forget()
    if not (total.pages or total.indexes or total.faults):
        words = "holds no file, expected pages or indexes"
        raise InputError(Fault(path, 0, words) for path in paths)
    return replace(
        total,
        faults=tuple(sorted(set(total.faults))),
        differences=tuple(sorted(set(total.differences))),
    )


def verify_unit(unit: Unit, database: Path, max_page_size: int, place: Place) -> Verification:
    """Hold a file against the files and mirrors of one unit."""
    total = _NOTHING
    for file in read(unit, max_page_size):
        if isinstance(file, Fault):
            total = replace(total, faults=(*total.faults, file))
            continue
        try:
            for each in _verify(file, database, place):
                total = _sum(total, each)
        except InputError as error:
            total = replace(total, faults=(*total.faults, *error.faults))
        except sqlite3.DatabaseError as error:
            raise DatabaseError(f"{database}: is damaged: {error}; build it anew") from None
    return total


_NOTHING = Verification(0, 0, 0, 0, (), ())


def _sum(one: Verification, other: Verification) -> Verification:
    """Return what came out of both."""
    return Verification(
        pages=one.pages + other.pages,
        indexes=one.indexes + other.indexes,
        listings=one.listings + other.listings,
        records=one.records + other.records,
        faults=one.faults + other.faults,
        differences=one.differences + other.differences,
    )


def _verify(file: RawFile | Mirror, database: Path, place: Place) -> Iterator[Verification]:
    """Yield, for each page or index, what came out."""
    if isinstance(file, Mirror):
        for index in open_mirror(file, place):
            yield _verify_index(index, database)
    elif is_spacks(file.data):
        yield _verify_index(open_file(file, place), database)
    else:
        yield _verify_page(file, database)


def _verify_index(index: OpenIndex, database: Path) -> Verification:
    document, records = index.document, index.records
    stored = mirror_of(_connection(database), document)
    if stored is None:
        stack = document.index_facts.stack if document.index_facts else ""
        said = f"is an index of {stack} in {document.release}, the file has none from there"
        return replace(_NOTHING, indexes=1, differences=(Fault(document.location, 0, said),))
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
    found += (f"lists the spec {each}, the file does not" for each in stored.not_listed())
    found += _tarball_differences(index, stored)
    told = tuple(Fault(document.location, 0, each) for each in found)
    return replace(_NOTHING, indexes=1, records=len(ours), differences=told)


def _tarball_differences(index: OpenIndex, stored: RecordsOfFile) -> Iterator[str]:
    """Yield where the file has another size or address of a binary than its manifest says."""
    said = {}
    for dag_hash in index.records:
        try:
            listed = index.listed(index.records.entry(dag_hash))
        except IndexFault:
            continue  # Then it is no record that the file could have, and has been named.
        if listed and (listed.size or listed.tarball):
            said[dag_hash] = listed
    theirs = stored.tarballs() if said else {}
    for dag_hash, listed in said.items():
        size, url = theirs[dag_hash].values() if dag_hash in theirs else ("-", None)
        if listed.size and listed.size != size:
            yield f"the spec {dag_hash}: its tarball has {listed.size} bytes, the file says {size}"
        if listed.tarball and not _is_there(listed.tarball, url):
            where = listed.tarball.url
            yield f"the spec {dag_hash}: its tarball is at {where}, the file says {url}"


def _is_there(tarball: Tarball, url: str | None) -> bool:
    """Return whether a URL is that of a tarball, or within the mirror whose prefix is known."""
    if tarball.is_whole or url is None:
        return url == tarball.url
    return url.startswith(f"{tarball.url}/")


def _verify_page(file: RawFile, database: Path) -> Verification:
    """Return what came out.

    Raises:
        InputError: the page is refused.
    """
    page = parse_page(file)
    said = said_by_source(page)
    stored = _pages_of(database).said_by_file(page.release, page.package, said["spec_details"])
    if stored is None:
        found = [f"is a page of {page.package} in {page.release}, the file has none"]
    else:
        found = [*differences(said, stored)]
    told = tuple(Fault(page.location, 0, each) for each in found)
    return replace(_NOTHING, pages=1, listings=len(page.details), differences=told)


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
