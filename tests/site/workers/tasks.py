"""Tasks for worker processes, which import this module: so it imports little."""

import os
import signal
import time
from pathlib import Path

from spack_cache_db.site.answers import Answer, Site


def grow(_: Site, size: int) -> Answer:
    """Take memory."""
    return Answer(bytes(bytearray(size)))


def sleep(_: Site, seconds: float) -> Answer:
    """Do nothing, where no statement can be interrupted."""
    time.sleep(seconds)
    return Answer(b"")


def stay(_: Site, path: str) -> Answer:
    """Say by one file that it has begun, and wait for another before it ends."""
    Path(f"{path}.begun").touch()
    while not Path(f"{path}.end").exists():
        time.sleep(0.01)
    return Answer(b"")


def fail(_: Site) -> None:
    """Have a bug."""
    raise ZeroDivisionError


def ignore_the_alarm(_: Site) -> None:
    """Hang for longer than any task may take, whatever the kernel says."""
    signal.signal(signal.SIGPROF, signal.SIG_IGN)
    time.sleep(600)


def process_id(_: Site) -> Answer:
    """Say which process this is."""
    return Answer(str(os.getpid()).encode())
