"""The errors of this package, with one base class, and how their messages are worded.

A message is `path: fault; remedy`, such as `x.db: no such file; build one with:
spack-cache-db build PATH -o x.db`.
"""

from __future__ import annotations

import copyreg
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

TRACEBACK = "SPACK_CACHE_DB_TRACEBACK"
"""If this environment variable is set, unexpected exceptions are raised as they are."""
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
"""Units of sizes, each a thousand times the one before."""


class BuilderError(Exception):
    """Base class of errors that users can fix; any other exception is a bug."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickle, by which worker processes send their errors.

        Exceptions are unpickled by calling their class with the message, which does not
        work for classes with other arguments. Instead, this makes an object without
        calling `__init__`, and gives it the attributes.
        """
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """A fault of the input. Faults sort by path, then line, then message.

    Args:
        path: the file, folder or URL as the user named it; a member follows its
            archive.
        line: the line, counted from 1; 0 if it is unknown.
        message: the fault and the expected value, on one line.
    """

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        """Return `path:line: message`, on one line and without control characters."""
        where = f"{self.path}:{self.line}" if self.line else self.path
        return printable(f"{where}: {self.message}")


class LineFault(BuilderError):
    """A fault on a line of a text, which `faults_of` turns into a `Fault`.

    Args:
        line: see `Fault`.
        message: see `Fault`.
        path: the file with the line, if it is another one than the text being read,
            such as a file that a `spack.yaml` includes.
    """

    def __init__(self, line: int, message: str, path: str = "") -> None:
        self.line = line
        self.message = message
        self.path = path
        super().__init__(message)


class InputError(BuilderError):
    """The input has `faults`, sorted and without duplicates."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(sorted(set(faults)))
        super().__init__("\n".join(str(fault) for fault in self.faults))


class HistoryError(InputError):
    """A database among the input cannot be read; no option leaves a database out.

    A database may be the only copy of its releases.
    """


class ArgumentError(BuilderError, TypeError):
    """An argument of a Python function has a wrong type or value."""


class OutputError(BuilderError):
    """A file or a folder cannot be written; an older database is unchanged."""


class DatabaseError(BuilderError):
    """A file is not a database of this program, is damaged, or cannot be read or
    served.
    """


def faults_of(path: str) -> AbstractContextManager[None]:
    """Turn exceptions while a file is read into an InputError.

    These are a LineFault, and unexpected exceptions: a bug in the reader of one file
    should not hide the faults of others.
    """
    return _FaultsOf(path)


class _FaultsOf(AbstractContextManager[None]):
    """A class, because a build enters it twice for each of 100,000 pages: a generator
    (`contextmanager`) takes five times as long.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Raise an InputError instead of an exception."""
        if isinstance(error, LineFault):
            found = Fault(error.path or self._path, error.line, error.message)
            raise InputError([found]) from None
        if not isinstance(error, Exception) or isinstance(error, BuilderError):
            return
        if os.environ.get(TRACEBACK):
            return
        raise InputError([Fault(self._path, 0, unexpected(error))]) from error


def unexpected(error: BaseException) -> str:
    """Return a message for an unexpected exception."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    message = f"unexpected {type(error).__name__}: {reason(error)}"
    return f"{message}; please report it (--traceback shows where)"


def reason(error: BaseException) -> str:
    """Return the message of an exception on one line, without its path.

    For example `Permission denied`, or `KeyError` for an exception without a message.
    """
    text = str(error)
    # The text of an OSError has a number and a path too: `[Errno 13] …: 'x.db'`.
    if isinstance(error, OSError) and error.strerror:
        text = str(error.strerror)
    return one_line(text) or type(error).__name__


def printable(text: str) -> str:
    r"""Return text on one line, with escapes for its control characters: `a\nb`."""
    if text.isprintable():
        return text
    escaped = ""
    for character in text:
        if character.isprintable():
            escaped += character
        else:
            escaped += repr(character).strip("'")
    return escaped


def one_line(text: str) -> str:
    """Return text on one line, with one blank for each gap between its words."""
    return " ".join(text.split())


def counted(number: int, word: str, words: str | None = None) -> str:
    """Return a number and its word, such as `1 page` and `2,000 pages`.

    Args:
        number: the number.
        word: the word for one.
        words: the word for other numbers; None if it is `word` with an s.
    """
    if number == 1:
        return f"1 {word}"
    return f"{number:,} {words or f'{word}s'}"


def bytes_text(size: int) -> str:
    """Return a number of bytes with three digits, such as `39.2 kB` and `212 MB`."""
    # Take the next unit at 999.5, which would be shown as 1,000, and one decimal below
    # 99.95, which would be shown as 100.0.
    value = float(size)
    unit, *larger_units = _UNITS
    decimals = 0
    while value >= 999.5 and larger_units:
        value /= 1000
        unit = larger_units.pop(0)
        decimals = 1 if value < 99.95 else 0
    return f"{value:,.{decimals}f} {unit}"


def cut(text: str, longest: int, mark: str = "…") -> str:
    """Return text with at most `longest` characters; one that is cut ends in `mark`."""
    if len(text) <= longest:
        return text
    return text[: longest - len(mark)] + mark


def first_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return a list of at most `most` texts, and the number of the others.

    For example `a, b` or `a, b and 7 more`; see `series` for the end of a sentence.
    """
    shown = separator.join(texts[:most])
    hidden_count = len(texts) - most
    return f"{shown} and {hidden_count:,} more" if hidden_count > 0 else shown


def series(texts: Sequence[str], most: int) -> str:
    """Return texts as a part of a sentence, at most `most` of them and the number of
    the others.

    For example `a`, `a and b`, `a, b and c`, or `a, b and 7 more`.
    """
    parts = list(texts[:most])
    hidden_count = len(texts) - len(parts)
    if hidden_count:
        parts.append(f"{hidden_count:,} more")
    if len(parts) < 2:
        return "".join(parts)
    *first_parts, last_part = parts
    return f"{', '.join(first_parts)} and {last_part}"
