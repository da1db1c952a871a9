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


def log(text: str) -> None:
    """Write a line with the time to standard error, whose reader may have ended."""
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    with suppress(OSError):
        os.write(2, f"{now} {printable(text)}\n".encode())


def log_error(address: str, error: BaseException) -> None:
    """Write one line about an unexpected exception: the address, the error, and its
    place.

    With the option `--traceback` of the command, the traceback follows.
    """
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        place = f" in {'/'.join(Path(frame.filename).parts[-2:])}:{frame.lineno}"
    log(f"error: {address[:LONGEST]!r}: {error!r:.500}{place}")
    if TRACEBACK in os.environ:
        traceback.print_exception(error, file=sys.stderr)
