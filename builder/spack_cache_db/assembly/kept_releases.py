"""Refuses builds that would erase releases of an older database if no option asks for
it.

A facility's history is often in one file only, so a release leaves it only if an option
names it (`--drop`, `--keep-snapshots`), or if the whole file is to be replaced
(`--force`).
"""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from spack_cache_db.assembly.merge import Merged
from spack_cache_db.assembly.options import Input
from spack_cache_db.assembly.snapshots import is_mirror
from spack_cache_db.database_file import is_database, looks_like_database, release_names
from spack_cache_db.errors import (
    ArgumentError,
    Fault,
    HistoryError,
    OutputError,
    first_of,
    reason,
)
from spack_cache_db.releases import release_date, snapshot_branches

MOST_NAMED = 5
"""Number of releases that an error lists."""


def require_read(inputs: Input, faults: Collection[Fault]) -> None:
    """Raise HistoryError if the input names a database that cannot be read."""
    faulty_paths = {fault.path for fault in faults}
    for path in inputs.paths:
        if path in faulty_paths and looks_like_database(Path(path)):
            raise HistoryError(faults)


def require_releases_kept(
    inputs: Input, output: Path, releases: Collection[str], removed: Collection[str]
) -> None:
    """Raise OutputError if an older database would lose releases that no option
    removes.

    Args:
        inputs: the input, for the command that keeps the releases.
        output: the file that would be replaced.
        releases: those of the new database.
        removed: those that an option removes.
    """
    # Any other file has no releases, and `require_replaceable` has already checked it.
    if not is_database(output):
        return
    try:
        stored = release_names(output)
    except sqlite3.Error as error:
        raise OutputError(
            f"{output}: is a database that cannot be read ({reason(error)}), so nobody knows which "
            "releases would be lost; nothing was written. Move it away, or replace it with --force"
        ) from None
    lost = [name for name in stored if name not in releases and name not in removed]
    if lost:
        raise OutputError(
            f"{output}: has {_named(lost)}, which the input does not have; nothing was written. "
            f"To keep them: {_keeping_command(inputs, output)}. To replace the database: --force"
        )


def _named(releases: list[str]) -> str:
    """Return the number of releases, and the names of the first ones."""
    if len(releases) == 1:
        return f"the release {releases[0]}"
    return f"{len(releases):,} releases ({first_of(releases, MOST_NAMED)})"


def _keeping_command(inputs: Input, output: Path) -> str:
    """Return the command that builds the same input on top of the older database, with
    the options that change its content.
    """
    options = inputs.options
    words = ["spack-cache-db", "build", str(output)]
    words += [path for path in inputs.paths if Path(path) != output]
    for name, path in options.installations:
        words += ["--installation", f"{name}={path}"]
    for release, path in options.modules:
        words += ["--modules", f"{release}={path}" if release else path]
    if options.release:
        words += ["--release", options.release]
    if options.stack:
        words += ["--stack", options.stack]
    # Only builds with a day keep the releases of older databases.
    day = options.snapshot or datetime.now(UTC).date().isoformat()
    words += ["-o", str(output), "--snapshot", day]
    if options.keep_snapshots:
        words += ["--keep-snapshots", str(options.keep_snapshots)]
    if options.first:
        words += ["--first", options.first]
    for namespace, address in options.recipes.items():
        words += ["--recipes", f"{namespace}={address}"]
    if options.without_paths:
        words.append("--without-paths")
    if options.keep_going:
        words.append("--keep-going")
    return shlex.join(words)


def require_newest_day(merged: Merged, databases: Collection[str], day: str) -> None:
    """Raise ArgumentError if a mirror of today already has a snapshot of a later day.

    Args:
        merged: the documents that are built, and their releases.
        databases: the paths of the input's databases, whose documents are not of today.
        day: the day of the new snapshots, `YYYY-MM-DD`.
    """
    # The releases of today's mirrors.
    in_databases = tuple(f"{database}/" for database in databases)
    mirrors = set()
    for document in merged.documents:
        if is_mirror(document) and not document.location.startswith(in_databases):
            mirrors.add(document.release)

    # The snapshots of a branch are sorted, the newest one first.
    for branch, snapshots in snapshot_branches(merged.releases).items():
        newest = release_date(snapshots[0]) or ""
        if branch in mirrors and newest > day:
            raise ArgumentError(
                f"snapshot is {day}, but {branch} already has a snapshot of {newest}, and the "
                "mirror of today is not older: give a later day, or --force"
            )
