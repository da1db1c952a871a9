"""What happens when a command is stopped, or its output is full."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_cleanups: list[Callable[[], str]] = []


def heed_signals() -> None:
    """Let signals end this process; ignored signals (`nohup`) stay ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    # Python's tracker of processes that are not forked would warn of each semaphore it
    # removes.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")


@contextmanager
def when_stopped(cleanup: Callable[[], str]) -> Iterator[None]:
    """Call `cleanup` if a signal ends the process within this context.

    It returns a text for the message. It runs between any two steps of the program, and
    must neither print nor import anything.
    """
    _cleanups.append(cleanup)
    try:
        yield
    finally:
        _cleanups.remove(cleanup)


def write_error(text: str) -> None:
    """Write to standard error without Python's buffers."""
    with suppress(OSError):
        os.write(2, text.encode())


def end_full(error: OSError) -> None:
    """End with status 2 if standard output is full; errors of files have a name.

    Python would try to write the buffer at its exit, and print a traceback.
    """
    if error.errno in _FULL and error.filename is None:
        write_error(f"Error: the output cannot be written: {error.strerror}\n")
        os._exit(2)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for other in SIGNALS:
        # A second signal does not wait for the cleanups.
        if signal.getsignal(other) is _end:
            signal.signal(other, signal.SIG_DFL)
    texts = [f"Error: stopped by {signal.Signals(number).name}"]
    texts += filter(None, [cleanup() for cleanup in reversed(_cleanups)])
    write_error("; ".join(texts) + "\n")
    # End by the signal itself, so that a shell or a script sees it (bash manual,
    # 3.7.5).
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    # The first process of a container survives signals that it does not handle.
    os._exit(128 + number)
