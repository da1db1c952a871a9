"""Detects that a build would write the database that already exists.

A build without faults records in the inspect file what its result depends on: a
checksum of its sources, one of its options and of the program, and how it treats the
database that it replaces. If the next build would record the same, and the database
still has the recorded hash, nothing is to be done. The sources are hashed for that, and
not read.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from spack_cache_db.assembly.clock import Clock
from spack_cache_db.assembly.inspection import current_inspection
from spack_cache_db.assembly.options import Input
from spack_cache_db.assembly.replacement import note_look
from spack_cache_db.assembly.report import Report
from spack_cache_db.assembly.workers import program_versions, work_through
from spack_cache_db.errors import BuilderError
from spack_cache_db.inspect_file import NAME, NOT_OURS, RECORD, read_inspection
from spack_cache_db.sources.checksums import UnreadableError, checksum_of, parts_of
from spack_cache_db.sources.texts import as_json

LIBRARIES = ("msgspec", "numpy", "PyYAML", "sqlite-utils", "zstandard")
"""Libraries that the bytes of a database may depend on, beside `program_versions`."""


class Way(NamedTuple):
    """How a database is made of its sources.

    Attributes:
        settings: a checksum of the options and of the program.
        is_on_output: whether the database that is replaced is one of the sources.
        day: the day of the snapshots, `YYYY-MM-DD`; None without snapshots.
    """

    settings: str
    is_on_output: bool
    day: str | None


def way_of(inputs: Input, output: Path) -> Way:
    """Return how a build makes a database."""
    # The day has a field of its own, and these do not change a database's content.
    relevant = replace(
        inputs.options,
        snapshot=None,
        jobs=0,
        progress=None,
        executor=None,
        keep_going=False,
        force=False,
    )
    parts = [asdict(relevant), _program()]
    settings = hashlib.sha256(as_json(parts).encode()).hexdigest()
    is_on_output = len(without(output, inputs.paths)) < len(inputs.paths)
    return Way(settings, is_on_output, inputs.options.snapshot)


def without(output: Path, paths: Iterable[str]) -> list[str]:
    """Return paths without that of the output."""
    # `abspath` also accepts a path with a NUL, which the build reports later.
    output_path = os.path.abspath(output)  # noqa: PTH100
    return [path for path in paths if os.path.abspath(path) != output_path]  # noqa: PTH100


def _program() -> dict[str, str]:
    """Return the versions of everything that determines the bytes of a database.

    The code counts as well: a checkout has one version for many commits.
    """
    versions = {name: metadata.version(name) for name in LIBRARIES}
    return {
        **versions,
        **program_versions(),
        "code": _own_code(),
        "Python": sys.version,
        "SQLite": sqlite3.sqlite_version,
    }


@cache
def _own_code() -> str:
    return code_sha256(Path(__file__).parents[1])


def code_sha256(folder: Path) -> str:
    """Return a checksum of the modules and tables below a folder."""
    digest = hashlib.sha256()
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.toml")]):
        facts = (str(path.relative_to(folder)), path.read_bytes())
        digest.update(repr(facts).encode())
    return digest.hexdigest()


def record_of(
    way: Way, sources: int, counts: Mapping[str, int], notes: Iterable[str]
) -> dict[str, Any]:
    """Return what a build records, for `report_if_unchanged`.

    Args:
        way: how the database was made.
        sources: the checksum of all sources but the output.
        counts: the counts of the report.
        notes: the notes of the report.
    """
    return {
        **way._asdict(),
        "sources": f"{sources:x}",
        "counts": counts,
        "notes": list(notes),
    }


def report_if_unchanged(
    inputs: Input, way: Way, output: Path, clock: Clock
) -> Report | None:
    """Return the report of a build that would write the same database; None if it has
    to be built.

    Args:
        inputs: the sources and options.
        way: how the database would be made.
        output: the database, which stays.
        clock: the time since the beginning of the build.
    """
    # Compare what is known at once, then the sources, and the database itself.
    record = _record(output)
    try:
        if not _is_repeated(record, way):
            return None
        if record["sources"] != _sources_checksum(inputs, output):
            return None
        inspection = current_inspection(output)
        inspected = inspection[NAME]
        if inspected.get(RECORD) != record:
            return None
        report = Report(
            **record["counts"],
            faults=(),
            notes=tuple(record["notes"]),
            bytes_read=0,
            file_size=inspected["size"],
            sha256=inspected["hash"],
            seconds=0,
            snapshots=inputs.options.snapshots,
            is_unchanged=True,
        )
    except (BuilderError, KeyError, TypeError):
        # There is no database, or something else wrote the inspect file.
        return None
    note_look(output, inspection)
    clock.stage("compare")
    return replace(
        report, seconds=round(clock.last - clock.start, 3), stages=clock.stages
    )


def _record(output: Path) -> dict[str, Any]:
    """Return what the build of a database recorded; nothing if it has not."""
    try:
        return dict(read_inspection(output)[NAME][RECORD])
    except NOT_OURS:
        return {}


def _is_repeated(record: Mapping[str, Any], way: Way) -> bool:
    """Return whether the same sources, built this way, give the recorded database."""
    before = Way(record["settings"], record["is_on_output"], record["day"])
    if before.settings != way.settings:
        return False

    # The sources alone.
    if before == way and not way.is_on_output:
        return True

    # A later night: mirrors with the same binaries get no new snapshot.
    if before.day is not None:
        is_history = before.is_on_output and way.is_on_output
        return is_history and way.day is not None and way.day >= before.day

    # A database of pages gives itself again, together with the pages that it is made
    # of. A mirror would get a snapshot, or be read twice.
    if record["counts"]["indexes"]:
        return False
    if before.is_on_output:
        # It may have pages that the sources do not have; with a day, they would be
        # replaced.
        return way.is_on_output and way.day is None
    return True


def _sources_checksum(inputs: Input, output: Path) -> str | None:
    """Return the checksum of all sources but the output, which are hashed, not read.

    None if one cannot be read: reading the sources reports it.
    """
    options = inputs.options
    paths = without(output, inputs.paths)
    try:
        parts = parts_of(paths, options.installations, options.modules)
    except UnreadableError:
        return None
    checksum = 0
    for part_checksum in work_through(parts, checksum_of, options):
        if part_checksum is None:
            return None
        checksum += part_checksum
    return f"{checksum:x}"
