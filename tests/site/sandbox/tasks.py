"""Tasks for processes of the sandbox, which import this module: so it imports little."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from pathlib import Path


def grow(_: sqlite3.Connection, size: int) -> int:
    """Take memory."""
    return len(bytearray(size))


def sleep(_: sqlite3.Connection, seconds: float) -> None:
    """Do nothing, where no statement can be interrupted."""
    time.sleep(seconds)


def stay(_: sqlite3.Connection, path: str) -> None:
    """Say by one file that it has begun, and wait for another before it ends."""
    Path(f"{path}.begun").touch()
    while not Path(f"{path}.end").exists():
        time.sleep(0.01)


def fail(_: sqlite3.Connection) -> None:
    """Have a bug."""
    raise ZeroDivisionError


def ignore_the_alarm(_: sqlite3.Connection) -> None:
    """Hang for longer than any task may take, whatever the kernel says."""
    for each in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(each, signal.SIG_IGN)
    time.sleep(600)


def process_id(_: sqlite3.Connection) -> int:
    """Say which process this is."""
    return os.getpid()
