"""Checks of the arguments of the public Python functions."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from spack_cache_db.errors import ArgumentError
from spack_cache_db.records import is_name

AnyPath = str | os.PathLike[str]


def checked_paths(paths: object) -> list[str]:
    """Return one path or many, text or `Path`, as a list of texts.

    Raises:
        ArgumentError: it is something else, or there is none.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if isinstance(paths, bytes) or not isinstance(paths, Iterable):
        raise ArgumentError(f"paths is {_said(paths)}, expected a path or several, str or Path")
    found = [_path(each, "a path") for each in paths]
    if not found:
        raise ArgumentError("paths is empty, expected at least one file or folder")
    return found


def checked_file(name: str, file: object, what: str = "a file made by build") -> Path:
    """Return the path of a file; `ArgumentError` if it is none.

    Args:
        name: what the argument is called.
        file: what was given.
        what: what should be there.
    """
    path = _path(file, name)
    if not path:
        raise ArgumentError(f"{name} is empty, expected the path of {what}")
    return Path(path)


def checked_database(db: object) -> Path | sqlite3.Connection:
    """Return a connection as it is, a path as `checked_file` does."""
    return db if isinstance(db, sqlite3.Connection) else checked_file("db", db)


def checked_environment(environment: object) -> Path | list[str]:
    """Return the path of an environment, or the specs that were given one by one.

    Raises:
        ArgumentError: it is neither.
    """
    if isinstance(environment, str | os.PathLike):
        path = _path(environment, "environment")
        if not path:
            raise ArgumentError("environment is empty, expected a path, or specs one by one")
        return Path(path)
    if isinstance(environment, bytes) or not isinstance(environment, Iterable):
        expected = "a path (str or Path), or specs one by one"
        raise ArgumentError(f"environment is {_said(environment)}, expected {expected}")
    return [checked_text("a spec", each) for each in environment]


def checked_text(name: str, value: object) -> str:
    """Return a text; `ArgumentError` if it is none."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} is {_said(value)}, expected str")
    return value


def checked_texts(**values: object) -> None:
    """Raise `ArgumentError` if one of these is neither a text nor None."""
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise ArgumentError(f"{name} is {_said(value)}, expected str or None")


def checked_place(release: object, stack: object) -> None:
    """Raise `ArgumentError` if a release or stack of indexes has a name that none can have."""
    checked_texts(release=release, stack=stack)
    for name, value in (("release", release), ("stack", stack)):
        if isinstance(value, str) and not is_name(value):
            expected = "a name: printable characters, no blank at either end, none of = + - @ first"
            raise ArgumentError(f"{name} is {value!r}, expected {expected}")


def checked_recipes(recipes: object) -> dict[str, str]:
    """Return the addresses of recipes by namespace.

    Raises:
        ArgumentError: they are something else, or an address is none of the web.
    """
    if recipes is not None and not isinstance(recipes, Mapping):
        raise ArgumentError(f"recipes is {_said(recipes)}, expected addresses by namespace")
    for namespace, url in (recipes or {}).items():
        if not isinstance(namespace, str) or not is_name(namespace):
            raise ArgumentError(f"recipes names {_said(namespace)}, expected a namespace")
        if not isinstance(url, str) or not re.fullmatch(r"https?://[^/\s]\S*", url):
            expected = "an address such as https://example.org/packages/{package}"
            raise ArgumentError(f"recipes of {namespace} are at {_said(url)}, expected {expected}")
    return {**(recipes or {})}


def checked_options(jobs: object, max_page_size: object, progress: object) -> None:
    """Raise `ArgumentError` if one of these has a wrong type or value."""
    for name, value in (("jobs", jobs), ("max_page_size", max_page_size)):
        _require_count(name, value, least=1)
    if progress is not None and not callable(progress):
        raise ArgumentError(f"progress is {_said(progress)}, expected a function or None")


def checked_limit(limit: object) -> None:
    """Raise `ArgumentError` unless this is None or the number of records that are wanted."""
    if limit is not None:
        _require_count("limit", limit, least=0)


def _require_count(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ArgumentError(f"{name} is {_said(value)}, expected a whole number from {least}")


def _path(value: object, name: str) -> str:
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if isinstance(text, str):
            return text
    raise ArgumentError(f"{name} is {_said(value)}, expected str or Path")


def _said(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
