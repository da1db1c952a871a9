"""What people give to the Python functions, made one thing or refused in words."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from spack_cache_db.errors import ArgumentError


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
        raise ArgumentError("paths is empty, expected at least one file or folder of pages")
    return found


def checked_output(output: object) -> Path:
    """Return the path of the file to write; `ArgumentError` if it is none."""
    path = _path(output, "output")
    if not path:
        raise ArgumentError("output is empty, expected the path of the database to write")
    return Path(path)


def checked_file(file: object) -> str:
    """Return the path of a file to read; `ArgumentError` if it is none."""
    return _path(file, "file")


def checked_options(jobs: object, max_page_size: object, progress: object) -> None:
    """Raise `ArgumentError` if one of these has a wrong type or value."""
    for name, value in (("jobs", jobs), ("max_page_size", max_page_size)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ArgumentError(f"{name} is {_said(value)}, expected a whole number from 1")
    if progress is not None and not callable(progress):
        raise ArgumentError(f"progress is {_said(progress)}, expected a function or None")


def _path(value: object, name: str) -> str:
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if isinstance(text, str):
            return text
    raise ArgumentError(f"{name} is {_said(value)}, expected str or Path")


def _said(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
