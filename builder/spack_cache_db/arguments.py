"""Checks the paths and limits that are passed to the public Python functions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from spack_cache_db.errors import ArgumentError

if TYPE_CHECKING:
    import sqlite3

AnyPath = str | os.PathLike[str]

DEFAULT_MAX_PAGE_SIZE = 64 * 2**20
"""In bytes; the largest known pages have a few hundred kilobytes."""


def checked_paths(paths: object) -> list[str]:
    """Return one path or many as a list of texts; raises `ArgumentError`."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if isinstance(paths, bytes) or not isinstance(paths, Iterable):
        raise _error("paths", paths, "a path or several, str or Path")
    checked = [_path("a path", path) for path in paths]
    if not checked:
        raise ArgumentError("paths is empty, expected at least one file or folder")
    return checked


def checked_file(name: str, file: object, description: str = "a file made by build") -> Path:
    """Return the path of a file; raises `ArgumentError` with the name and the description."""
    path = _path(name, file)
    if not path:
        raise ArgumentError(f"{name} is empty, expected the path of {description}")
    return Path(path)


def checked_database(db: object) -> Path | sqlite3.Connection:
    """Return a connection unchanged, or a path as `checked_file` does."""
    import sqlite3  # Only queries need it.

    return db if isinstance(db, sqlite3.Connection) else checked_file("db", db)


def checked_environment(environment: object) -> Path | list[str]:
    """Return the path of an environment, or a list of specs; raises `ArgumentError`."""
    if isinstance(environment, str | os.PathLike):
        return checked_file("environment", environment, "an environment")
    if isinstance(environment, bytes) or not isinstance(environment, Iterable):
        raise _error("environment", environment, "a path (str or Path), or specs")
    return [*environment]


def checked_limit(limit: object) -> None:
    """Raise `ArgumentError` if a limit is neither None nor a number of records."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise _error("limit", limit, "a whole number from 0")


def _path(name: str, value: object) -> str:
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if isinstance(text, str):
            return text
    raise _error(name, value, "str or Path")


def _error(name: str, value: object, expected: str) -> ArgumentError:
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return ArgumentError(f"{name} is {text} ({type(value).__name__}), expected {expected}")
