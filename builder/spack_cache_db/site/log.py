"""The site's log: one line on standard error for each event."""

from __future__ import annotations

import os
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from spack_cache_db.errors import TRACEBACK, printable

LONGEST = 500
"""Limit of characters of a text that a visitor may have chosen."""

_STANDARD_ERROR = 2
"""The file descriptor. One call of `os.write` keeps the lines of processes apart."""


def log(text: str) -> None:
    """Write a line with the time to standard error."""
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    line = f"{now} {printable(text)}\n"
    # The program that reads standard error may have ended.
    with suppress(OSError):
        os.write(_STANDARD_ERROR, line.encode())


def log_error(address: str, error: BaseException) -> None:
    """Write one line about an unexpected exception: the address, the error, its place.

    For example `error: '/package/zlib': KeyError('x') in pages/package.py:99`. With the
    option `--traceback` of the command, the traceback follows.
    """
    shown_address = repr(address[:LONGEST])
    shown_error = repr(error)[:LONGEST]
    place = _place_of(error)
    log(f"error: {shown_address}: {shown_error}{place}")
    # The environment variable that the option sets.
    if TRACEBACK in os.environ:
        traceback.print_exception(error, file=sys.stderr)


def _place_of(error: BaseException) -> str:
    """Return where an exception was raised, such as ` in pages/package.py:99`.

    Empty for an exception without a traceback.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    innermost = frames[-1]
    folder_and_name = Path(innermost.filename).parts[-2:]
    file = "/".join(folder_and_name)
    return f" in {file}:{innermost.lineno}"
