"""Exceptions that no code foresaw: the fault of what is being read, and one line for users."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from spack_cache_db.errors import BuilderError, Fault, InputError, reason

TRACEBACK = "SPACK_CACHE_DB_TRACEBACK"
"""Where this environment variable is set, unexpected exceptions are raised as they are."""


def unexpected(error: BaseException) -> str:
    """Return in words what an exception says that no code foresaw."""
    if isinstance(error, MemoryError):
        return "needs more memory than there is"
    said = f"unexpected {type(error).__name__}: {reason(error)}"
    return f"{said}; please report it (--traceback shows where)"


@contextmanager
def faults_of(path: str) -> Iterator[None]:
    """Make an unexpected exception the fault of the file, folder or URL that is being read.

    Raises:
        InputError: with that fault, but for errors of this package, which are raised as they are.
    """
    try:
        yield
    except BuilderError:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        raise InputError([Fault(path, 0, unexpected(error))]) from error
