"""Exceptions that no code foresaw: the fault of what is being read, and one line for users."""

from __future__ import annotations

import os

from spack_cache_db.errors import BuilderError, Fault, InputError, reason

TRACEBACK = "SPACK_CACHE_DB_TRACEBACK"
"""Where this environment variable is set, unexpected exceptions are raised as they are."""


def unexpected(error: BaseException) -> str:
    """Return in words what an exception says that no code foresaw."""
    if isinstance(error, MemoryError):
        return "needs more memory than there is"
    said = f"unexpected {type(error).__name__}: {reason(error)}"
    return f"{said}; please report it (--traceback shows where)"


class FaultsOf:
    """A context in which an unexpected exception is the fault of what is being read.

    Leaving it raises `InputError` with that fault; errors of this package are raised as they are.
    It is entered for every file, and a generator of `contextlib` would take three times as long.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        """Name the file, folder or URL that is being read."""
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: object
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, BuilderError):
            if os.environ.get(TRACEBACK):
                return
            raise InputError([Fault(self._path, 0, unexpected(error))]) from error
