"""One line of log for each thing that an operator should know."""

from __future__ import annotations

import os
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from spack_cache_db.errors import TRACEBACK, printable

LONGEST = 500
"""Characters of a text that a visitor may have chosen."""

_STANDARD_ERROR = 2


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
    log(f"error: {address[:LONGEST]!r}: {error!r:.500}{_where_raised(error)}")
    if TRACEBACK in os.environ:
        traceback.print_exception(error, file=sys.stderr)


def _where_raised(error: BaseException) -> str:
    """Return ` in <folder>/<file>:<line>`; empty for an exception without traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    innermost = frames[-1]
    file = "/".join(Path(innermost.filename).parts[-2:])
    return f" in {file}:{innermost.lineno}"
