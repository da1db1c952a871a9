"""Spack's rules as functions in SQL, for connections of the caller.

| function | result |
| --- | --- |
| `spec_match(spec, hash)` | 1 if the binary satisfies the spec, else 0 |
| `spec_error(spec)` | why the spec has no answer; NULL if it has one |
| `runs_on(target, host)` | 1 if the processor runs binaries for the target, else 0 |
| `build_runs_on(platform, target, host)` | also compares the platform |
| `version_order(version)` | a text that sorts as Spack sorts versions |
| `is_stable(version)` | 0 for a branch or a version of git, else 1 |
"""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from spack_cache_db.arguments import checked
from spack_cache_db.bounded_files import AnyPath, checked_file
from spack_cache_db.database_file import open_database
from spack_cache_db.errors import ArgumentError
from spack_cache_db.query.answers.spec_functions import SpecFunctions
from spack_cache_db.spack.targets import Build, build_runs_on, runs_on
from spack_cache_db.spack.version_order import version_order
from spack_cache_db.spack.versions import is_stable


@checked
def register(connection: Any, file: AnyPath | None = None) -> None:
    """Add the SQL functions `spec_match`, `spec_error`, `runs_on`, `build_runs_on`,
    `version_order` and `is_stable`.

    `SELECT hash FROM builds WHERE spec_match('hdf5 +mpi', hash) AND
    build_runs_on(platform, target, 'zen3') ORDER BY version_order(version)`. They
    return NULL for NULL, and `spec_match` also for a spec that has no answer.

    Args:
        connection: of `sqlite3` to a database made by `build`, or of `duckdb`.
        file: the database, as text or `Path`, which `spec_match` reads. Required for
            DuckDB; a connection of `sqlite3` is to the database itself.

    Raises:
        ArgumentError: it is another connection, or DuckDB's without a file.
        DatabaseError: the file was not made by this builder, or is damaged.
    """
    # A connection of `sqlite3` needs no file, but a wrong one is a fault in any case.
    path = None if file is None else checked_file("file", file)
    if isinstance(connection, sqlite3.Connection):
        _register_in_sqlite(connection)
        return
    # By its name, because DuckDB need not be installed.
    kind = type(connection).__name__
    if kind != "DuckDBPyConnection":
        expected = "one of sqlite3 or duckdb"
        raise ArgumentError(f"connection is of type {kind}, expected {expected}")
    if path is None:
        raise ArgumentError("file is missing, expected the path of the database")
    _register_in_duckdb(connection, path)


def _register_in_sqlite(connection: sqlite3.Connection) -> None:
    specs = SpecFunctions(connection)
    # Name, number of arguments, function. Equal arguments give equal results.
    add = partial(connection.create_function, deterministic=True)
    add("spec_match", 2, specs.match)
    add("spec_error", 1, specs.error)
    add("runs_on", 2, _runs_on)
    add("build_runs_on", 3, _build_runs_on)
    add("version_order", 1, _version_order)
    add("is_stable", 1, _is_stable)


def _register_in_duckdb(connection: Any, file: Path) -> None:
    # The connection stays open as long as DuckDB has the functions.
    specs = SpecFunctions(open_database(file))
    # DuckDB calls functions in several threads, and they share the kept answers.
    lock = Lock()

    def match(spec: str | None, dag_hash: str | None) -> int | None:
        with lock:
            return specs.match(spec, dag_hash)

    def error(spec: str | None) -> str | None:
        with lock:
            return specs.error(spec)

    # Name, function, types of the arguments, type of the result.
    text = "VARCHAR"
    number = "INTEGER"
    # By default, DuckDB does not call a function with NULL, and expects no NULL from
    # it.
    add = partial(connection.create_function, null_handling="special")
    add("spec_match", match, [text, text], number)
    add("spec_error", error, [text], text)
    add("runs_on", _runs_on, [text, text], number)
    add("build_runs_on", _build_runs_on, [text, text, text], number)
    add("version_order", _version_order, [text], text)
    add("is_stable", _is_stable, [text], number)


def _runs_on(target: str | None, host: str | None) -> int | None:
    if target is None or host is None:
        return None
    return int(runs_on(target, host))


def _build_runs_on(
    platform: str | None, target: str | None, host: str | None
) -> int | None:
    if platform is None or target is None or host is None:
        return None
    return int(build_runs_on(Build(platform, target), host))


def _is_stable(version: str | None) -> int | None:
    return None if version is None else int(is_stable(version))


def _version_order(version: str | None) -> str | None:
    return None if version is None else version_order(version)
