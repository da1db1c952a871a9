"""Tells a damaged database from an error of the system, and from a bug.

A damaged database is one that SQLite cannot read, or one with a value that no build
writes. Such a value may cause any exception in code that relies on it, so after an
exception all values are checked.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from spack_cache_db.errors import BuilderError, DatabaseError, reason
from spack_cache_db.schema.stored_types import type_checks
from spack_cache_db.sqlite_connection import (
    MOST_LENGTH,
    MOST_STEPS,
    connect,
    limit_steps,
)

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Primary codes of errors that mean damage (SQLite docs, "Result and Error Codes")."""

_SYSTEM_ERRORS = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
)
"""Primary codes of errors of the system, which say nothing about a database."""

_CAUSED_BY_VALUES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""The exceptions of code that meets a value of another type than it expects, or a
missing row.
"""


class StoredValueError(ValueError):
    """A database has a value that no build writes."""


@contextmanager
def damage_as_error(path: Path) -> Iterator[None]:
    """Turn exceptions of a database that cannot be read into `DatabaseError`.

    Any other exception is a bug, and is raised as it is.
    """
    try:
        yield
    except BuilderError:
        raise
    except (sqlite3.DatabaseError, StoredValueError) as error:
        known = read_error(path, error) or _error_of_values(path)
        if known is None:
            raise
        raise known from None
    except _CAUSED_BY_VALUES:
        known = _error_of_values(path)
        if known is None:
            raise
        raise known from None


def damage_of(path: Path, error: Exception) -> DatabaseError | None:
    """Return the error of a database that is damaged, given an exception.

    None for any other exception. Unlike `damage_as_error`, this does not report limits
    or the system: the site has its own messages about those.
    """
    if isinstance(error, sqlite3.DatabaseError) and is_damage(error):
        return damaged(path, reason(error))
    # A correct statement fails with this code at a value that is not JSON.
    is_failed_statement = _code(error) == sqlite3.SQLITE_ERROR
    if isinstance(error, _CAUSED_BY_VALUES) or is_failed_statement:
        return _error_of_values(path)
    return None


def read_error(
    path: Path, error: sqlite3.DatabaseError | StoredValueError
) -> DatabaseError | None:
    """Return the error that says why a database was not read.

    None for any other error, such as that of a wrong statement.
    """
    if isinstance(error, StoredValueError):
        return damaged(path, f"it has {error}")
    if isinstance(error, sqlite3.OperationalError) and _code(error) is None:
        # Python itself raises this error, for a text that is not UTF-8.
        return damaged(path, reason(error))
    if is_damage(error):
        return damaged(path, reason(error))

    # The limits of `sqlite_connection`.
    code = _primary_code(error)
    if code == sqlite3.SQLITE_TOOBIG:
        found = f"has a value of more than {MOST_LENGTH:,} bytes"
        return DatabaseError(f"{path}: {found}, which no build writes; build it again")
    if code == sqlite3.SQLITE_INTERRUPT:
        found = f"a statement takes more than {MOST_STEPS:,} steps of SQLite"
        return DatabaseError(
            f"{path}: {found}, which no database of a build needs; build it again"
        )

    # The system.
    if code == sqlite3.SQLITE_FULL:
        advice = "free space there, or set TMPDIR to another folder"
        return DatabaseError(
            f"{path}: no space left for temporary files of SQLite; {advice}"
        )
    if is_of_system(error):
        why = f"{reason(error)} ({error.sqlite_errorname})"
        return DatabaseError(f"{path}: cannot be read: {why}")
    return None


def _error_of_values(path: Path) -> DatabaseError | None:
    """Return the error of a database with a value that no build writes.

    None if it has no such value.
    """
    try:
        with closing(connect(path)) as connection:
            limit_steps(connection)
            fault = wrong_value(connection)
    except sqlite3.DatabaseError as error:
        return read_error(path, error)
    return None if fault is None else damaged(path, fault)


def wrong_value(connection: sqlite3.Connection) -> str | None:
    """Return a text about the first value that no build writes; None without one.

    Such as `a value of specs.hash is not 'text': 'integer'`. A database of 150,000
    binaries takes about a second.
    """
    for check in type_checks():
        row = connection.execute(check.sql).fetchone()
        if row is not None:
            value = f"{row[0]!r:.40}"
            return f"a value of {check.table}.{check.column} {check.fault}: {value}"
    return None


def stored_json(text: str) -> Any:
    """Return the value of a JSON text of a database; raises `StoredValueError`."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoredValueError(f"a text that is not JSON ({reason(error)})") from None


def damaged(path: Path, why: str) -> DatabaseError:
    """Return the error of a database that is damaged."""
    advice = "restore a copy of it, or build it again"
    return DatabaseError(f"{path}: is damaged: {why}; {advice}")


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether SQLite found a file to be damaged, or not to be a database."""
    return _primary_code(error) in _DAMAGE


def is_of_system(error: sqlite3.Error) -> bool:
    """Return whether the system failed, such as a full disk, and not a statement or a
    file.
    """
    return _primary_code(error) in _SYSTEM_ERRORS


def _primary_code(error: Exception) -> int | None:
    """Return the kind of an error: the lowest byte of its code; None without a code."""
    code = _code(error)
    return None if code is None else code & 0xFF


def _code(error: Exception) -> int | None:
    """Return SQLite's code of an error; None if Python raised it without one."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code
