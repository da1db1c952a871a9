"""Compares a file with its input unit by unit, and lists where they differ.

What a file counts and computes is held against a second build of the same input, which gives the
same tables.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spack_cache_db.build import Input, pipeline
from spack_cache_db.build.workers import uncollected, work_through
from spack_cache_db.errors import ArgumentError, Fault, FaultsOf, InputError
from spack_cache_db.query.connection import damaged, open_database
from spack_cache_db.schema import LEFT_OUT, PATHS
from spack_cache_db.sources import MirrorFolder, Place, RawFile, Unit, plan
from spack_cache_db.sources.columns import Tarball
from spack_cache_db.sources.indexes import IndexFault
from spack_cache_db.sources.indexes.mirrors import OpenIndex, is_spacks, open_file, open_mirror
from spack_cache_db.sources.packages import is_package_data
from spack_cache_db.sources.pages.page_parser import parse_page
from spack_cache_db.sources.readers import read
from spack_cache_db.verify import Verification
from spack_cache_db.verify.stored_records import StoredRecords, stored_records
from spack_cache_db.verify.stored_values import (
    StoredPackages,
    StoredPages,
    page_values,
    said_packages,
)

MOST_TOLD = 20
"""So many rows of each table are told; of a table whose rows have moved all differ."""

ORIGIN = "SELECT name, value FROM origin"
RECIPES = "SELECT namespace, url FROM recipes"
# All package data is one document; those that were left out count as well.
DOCUMENTS = """
SELECT (SELECT count(*) FROM pages) + (SELECT count(*) FROM mirrors)
  + (SELECT count(*) FROM problems WHERE code = 'refused')
  + EXISTS (SELECT 1 FROM known_packages)
"""
TABLES = """
SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'
ORDER BY name
"""
ONLY_ONE = "SELECT * FROM {one}.{table} EXCEPT SELECT * FROM {other}.{table}"


@uncollected()
def verify(database: Path, given: Input) -> Verification:
    """Hold a file against its input (see `spack_cache_db.verify.verify`)."""
    open_database(database).close()
    units = plan(given.paths)
    total = Verification()
    work = partial(
        verify_unit, database=database, max_page_size=given.max_page_size, place=given.place
    )
    _stored.cache_clear()  # The file may be another one than last time.
    for done, each in enumerate(work_through(units, work, given), start=1):
        total += each
        if given.progress:
            given.progress(done, len(units))
    _stored.cache_clear()
    if not (total.pages or total.indexes or total.packages or total.faults):
        words = "holds no file, expected pages or indexes"
        raise InputError(Fault(path, 0, words) for path in given.paths)
    total = replace(
        total,
        faults=tuple(sorted(set(total.faults))),
        differences=tuple(sorted(set(total.differences))),
    )
    if total.faults or total.differences:
        return total
    with closing(open_database(database)) as conn:
        (documents,) = conn.execute(DOCUMENTS).fetchone()
    others = documents - (total.pages + total.indexes + bool(total.packages))
    return replace(total, others=others) if others > 0 else _recounted(total, database, given)


def verify_unit(unit: Unit, database: Path, max_page_size: int, place: Place) -> Verification:
    """Hold a file against the files and mirrors of one unit."""
    total = Verification()
    for file in read(unit, max_page_size):
        if isinstance(file, Fault):
            total += Verification(faults=(file,))
            continue
        try:
            with FaultsOf(file.location), _intact(database):
                total = sum(_verify(file, database, place), start=total)
        except InputError as error:
            total += Verification(faults=error.faults)
    return total


@contextmanager
def _intact(database: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise damaged(database, error) from None


def _verify(file: RawFile | MirrorFolder, database: Path, place: Place) -> Iterator[Verification]:
    """Yield, for each page, index or file of package data, what came out."""
    if isinstance(file, MirrorFolder):
        for index in open_mirror(file, place):
            if isinstance(index, Fault):
                yield Verification(faults=(index,))
            else:
                yield _verify_index(index, database)
    elif is_package_data(file.data):
        yield _verify_package_data(file, database)
    elif is_spacks(file.data):
        yield _verify_index(open_file(file, place), database)
    else:
        yield _verify_page(file, database)


def _told(location: str, found: Iterable[str], **counts: Any) -> Verification:
    """Return what came out of one source: how much it has, and where the file differs from it."""
    told = tuple(Fault(location, 0, each) for each in found)
    return replace(Verification(differences=told), **counts)


def _verify_index(index: OpenIndex, database: Path) -> Verification:
    document, records = index.document, index.records
    with _reading(database):
        stored = stored_records(_stored(database).connection, document)
    if stored is None:
        stack = document.index_facts.stack if document.index_facts else ""
        said = f"is an index of {stack} in {document.release}, the file has none from there"
        return _told(document.location, [said], indexes=1)
    found: list[str] = []
    ours, theirs = {*records}, stored.hashes()
    for dag_hash in sorted(ours | theirs):
        if dag_hash not in theirs:
            found.append(f"has the spec {dag_hash}, the file does not")
        elif dag_hash not in ours:
            found.append(f"does not have the spec {dag_hash}, the file does")
        else:
            with _reading(database):
                values = stored.normal(records.said(dag_hash)), stored.stored(dag_hash)
            if values[0] != values[1]:
                found += parts(f"the spec {dag_hash}: ", *values)
    found += (f"lists the spec {each}, the file does not" for each in stored.not_listed())
    found += _tarball_differences(index, stored)
    return _told(document.location, found, indexes=1, records=len(ours))


def _tarball_differences(index: OpenIndex, stored: StoredRecords) -> Iterator[str]:
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


def _verify_package_data(file: RawFile, database: Path) -> Verification:
    """Return what came out; `InputError` if the file is refused."""
    found: list[str] = []
    count = 0
    for name, form, said in said_packages(file):
        count += 1
        with _reading(database):
            stored = _stored(database).packages.values(name, form)
        if stored is None:
            found.append(f"tells of the package {name}, the file does not")
        else:
            found += parts(f"the package {name}: ", said, stored)
    return _told(file.location, found, packages=count)


def _verify_page(file: RawFile, database: Path) -> Verification:
    """Return what came out.

    Raises:
        InputError: the page is refused.
    """
    page = parse_page(file)
    said = page_values(page)
    with _reading(database):
        stored = _stored(database).pages.values(page.release, page.package, said["spec_details"])
    if stored is None:
        found = [f"is a page of {page.package} in {page.release}, the file has none"]
    else:
        found = [*differences(said, stored)]
    return _told(page.location, found, pages=1, listings=len(said["spec_details"]))


def differences(said: Mapping[str, Any], stored: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a page says and what its file says instead, one text for each part.

    Args:
        said: see `stored_values.page_values`.
        stored: the same, see `StoredPages.values`.
    """
    yield from parts("meta.", said["meta"], stored["meta"])
    ours, theirs = said["spec_details"], stored["spec_details"]
    for dag_hash in sorted(ours.keys() | theirs.keys()):
        if dag_hash not in theirs:
            yield f"lists the spec {dag_hash}, the file does not"
        elif dag_hash not in ours:
            yield f"does not list the spec {dag_hash}, the file does"
        elif ours[dag_hash] != theirs[dag_hash]:
            yield from parts(f"the spec {dag_hash}: ", ours[dag_hash], theirs[dag_hash])


def parts(what: str, said: Mapping[str, Any], stored: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys in which two objects differ; `what` they are of comes first in each text."""
    for key in sorted(said.keys() | stored.keys()):
        if key not in stored:
            yield f"{what}{key} is {_json(said[key])}, the file has none"
        elif key not in said:
            yield f"{what}{key} is not there, the file has {_json(stored[key])}"
        elif said[key] != stored[key]:
            ours, theirs = _only_different(said[key], stored[key])
            yield f"{what}{key} is {_json(ours)}, the file has {_json(theirs)}"


def _only_different(said: Any, stored: Any) -> tuple[Any, Any]:
    """Return both; of lists and objects, only the members that the other does not have."""
    if isinstance(said, dict) and isinstance(stored, dict):
        return _not_in(said, stored), _not_in(stored, said)
    if isinstance(said, list) and isinstance(stored, list):
        ours = [each for each in said if each not in stored]
        theirs = [each for each in stored if each not in said]
        # Where neither has a member of its own, one of them names something twice.
        return (ours, theirs) if ours or theirs else (said, stored)
    return said, stored


def _not_in(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if other.get(key) != value}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def _reading(database: Path) -> Iterator[None]:
    """Report what no build writes, JSON that is none or an id without a row, as damage."""
    try:
        yield
    except (LookupError, TypeError, ValueError) as error:
        why = sqlite3.DatabaseError(f"it holds what no build writes ({error!r})")
        raise damaged(database, why) from error


class _Stored:
    """What a file says, opened once in a process."""

    def __init__(self, database: Path) -> None:
        self.connection = open_database(database)
        self.connection.execute(f"PRAGMA mmap_size = {database.stat().st_size}")

    @cached_property
    def pages(self) -> StoredPages:
        return StoredPages(self.connection)

    @cached_property
    def packages(self) -> StoredPackages:
        return StoredPackages(self.connection)


_stored = lru_cache(maxsize=1)(_Stored)


def _recounted(total: Verification, database: Path, given: Input) -> Verification:
    """Return what came out, with each row that is another where the input is built again."""
    with _intact(database), TemporaryDirectory() as folder:
        again = Path(folder) / database.name
        try:
            report = pipeline.build(_as_built(database, given), again, keep_going=True, force=False)
        except ArgumentError as error:
            return replace(total, differences=(Fault(str(database), 0, f"origin: {error}"),))
        with closing(open_database(again)) as conn:
            conn.execute("ATTACH ? AS stored", [f"{database.resolve().as_uri()}?immutable=1"])
            told = sorted(Fault(str(database), 0, each) for each in _differences(conn))
    return replace(total, listings=report.listings, differences=tuple(told))


def _as_built(database: Path, given: Input) -> Input:
    """Return the input with the options with which a file says it was built."""
    with closing(open_database(database)) as conn:
        origin = dict(conn.execute(ORIGIN).fetchall())
        recipes = dict(conn.execute(RECIPES).fetchall())
    without_paths = origin.get(PATHS) == LEFT_OUT
    return given._replace(
        first=origin.get("first"), recipes=recipes, without_paths=without_paths, progress=None
    )


def _differences(conn: sqlite3.Connection) -> Iterator[str]:
    """Yield what is different in the schema `stored`, table by table."""
    for (table,) in conn.execute(TABLES).fetchall():
        columns = conn.execute(f"PRAGMA main.table_info({table})").fetchall()
        names = [name for _, name, *_ in columns]
        keys = [name for _, name, *_, key in columns if key] or names
        told = [*_of_table(conn, table, names, keys)]
        yield from told[:MOST_TOLD]
        if len(told) > MOST_TOLD:
            yield f"{table}: {len(told) - MOST_TOLD:,} more rows differ"


def _of_table(
    conn: sqlite3.Connection, table: str, names: list[str], keys: list[str]
) -> Iterator[str]:
    """Yield what is different in one table, a text for each row."""
    expected, stored = (
        {
            tuple(row[names.index(key)] for key in keys): dict(zip(names, row, strict=True))
            for row in conn.execute(ONLY_ONE.format(one=one, other=other, table=table))
        }
        for one, other in (("main", "stored"), ("stored", "main"))
    )
    for key in sorted(expected.keys() | stored.keys(), key=repr):
        what = ", ".join(f"{name} {_shown(each)}" for name, each in zip(keys, key, strict=True))
        if key not in stored:
            yield f"{table}: the row of {what} is missing"
        elif key not in expected:
            yield f"{table}: the row of {what} is too many"
        else:
            parts = (
                f"{name} is {_shown(stored[key][name])}, expected {_shown(value)}"
                for name, value in expected[key].items()
                if value != stored[key][name]
            )
            yield f"{table}: of {what}, {'; '.join(parts)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
