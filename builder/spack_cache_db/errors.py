"""The errors of this package: one base class, and faults that say where, what and what to do."""

from __future__ import annotations

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


def reason(error: BaseException) -> str:
    """Return what an exception says, on one line, without repeating the path."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(str(text).split()) or type(error).__name__
