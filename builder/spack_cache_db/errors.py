"""The errors of this package: one base class, and faults that say where, what and what to do.

An exception that no code foresaw is the fault of what is being read, or one line for users.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


class BuilderError(Exception):
    """Base of every error that a user can mend; anything else that is raised is a bug."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what restores the error in another process.

        By default Python calls the class with `args`, the message, for which its arguments differ.
        """
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[BuilderError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing that is wrong with the input. Faults sort by path, then line, then message.

    Args:
        path: the file, folder or URL as the user named it; a member follows its archive.
        line: 1-based line, or 0 where no line can be named.
        message: what is wrong and what was expected, on one line.
    """

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        """Return `path:line: message`, on one line and without control characters."""
        where = f"{self.path}:{self.line}" if self.line else self.path
        return printable(f"{where}: {self.message}")


class LineFault(BuilderError):
    """A fault on a line of a text; whoever knows the text's path makes a `Fault` of it.

    Args:
        line: 1-based line, or 0 where no line can be named.
        message: what is wrong and what was expected, on one line.
        path: the text's path, if it is another one than that of the text being read.
    """

    def __init__(self, line: int, message: str, path: str = "") -> None:
        self.line = line
        self.message = message
        self.path = path
        super().__init__(message)


class InputError(BuilderError):
    """The input has faults. `faults` holds all of them, sorted, each once."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(sorted(set(faults)))
        super().__init__("\n".join(map(str, self.faults)))


class ArgumentError(BuilderError, TypeError):
    """An argument of a Python function has a wrong type or value; the message says what fits."""


class OutputError(BuilderError):
    """A file or a folder cannot be written; a database that stood there before is whole."""


class DatabaseError(BuilderError):
    """A file is no database of this builder or damaged, or cannot be read or served."""


def printable(text: str) -> str:
    """Return text on one line, its control characters as Python writes them."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def counted(number: int, word: str, words: str | None = None) -> str:
    """Return a number and its word, such as `1 page` and `2,000 pages`."""
    return f"{number:,} {word if number == 1 else words or f'{word}s'}"


def reason(error: BaseException) -> str:
    """Return what an exception says, on one line, without repeating the path."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(str(text).split()) or type(error).__name__


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
